import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';

/** What is wrong with the collector's config, in words without secrets. */
interface Finding {
  /** One of a small set, e.g. `auth_not_enforced`. */
  readonly code: string;
  readonly severity: 'warning' | 'critical';
  /** The config's file. */
  readonly place: string;
  readonly text: string;
  readonly remedy: string;
}

export interface CollectorFindingContext {
  readonly finding?: Finding;
}

export type CollectorFindingEvent =
  | ({ readonly type: 'FOUND' } & Finding)
  /** The config was read, and has it no more. */
  | { readonly type: 'GONE' };

interface Args {
  readonly context: CollectorFindingContext;
  readonly event: CollectorFindingEvent;
}

const firing = ({ context, event }: Args): Alert => {
  const { code, severity, place, text, remedy } = findingOf({ context, event });
  return {
    name: `collector.${code}`,
    severity,
    text: `${place}: ${text} ${remedy}`,
    labels: { place, state: 'firing' },
  };
};

const resolved = ({ context, event }: Args): Alert => {
  const { code, place } = findingOf({ context, event });
  return {
    name: `collector.${code}`,
    severity: 'info',
    text: `${place} is fixed: this is not found in it any more.`,
    labels: { place, state: 'resolved' },
  };
};

/**
 * One thing that can be wrong with the collector's effective config (O8): a person is told when it lasts, for a config
 * that is being replaced may be half a one for a moment, and when it is fixed.
 */
export const collectorFinding = setup({
  types: { context: {} as CollectorFindingContext, events: {} as CollectorFindingEvent },
  delays: { patience: 60_000 },
  guards: {
    other: ({ context, event }) => event.type === 'FOUND' && event.text !== context.finding?.text,
  },
  actions: {
    'alert.raise': effect<Alert>(),
    note: assign((args) => ({ finding: findingOf(args) })),
  },
}).createMachine({
  id: 'collector-finding',
  context: {},
  initial: 'gone',
  states: {
    gone: { on: { FOUND: { target: 'found', actions: 'note' } } },
    found: {
      after: { patience: { target: 'told', actions: { type: 'alert.raise', params: firing } } },
      on: { FOUND: { actions: 'note' }, GONE: 'gone' },
    },
    told: {
      on: {
        FOUND: [
          { guard: 'other', actions: ['note', { type: 'alert.raise', params: firing }] },
          { actions: 'note' },
        ],
        GONE: { target: 'gone', actions: { type: 'alert.raise', params: resolved } },
      },
    },
  },
});

function findingOf({ context, event }: Args): Finding {
  if (event.type !== 'FOUND') return context.finding as Finding;
  const { type: _, ...finding } = event;
  return finding;
}
