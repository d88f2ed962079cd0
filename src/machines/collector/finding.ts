import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';

/** Something that is wrong with the collector's config, without secrets. */
interface Finding {
  /** One of a small set, e.g. `auth_not_enforced`. */
  readonly code: string;
  readonly severity: 'warning' | 'critical';
  /** The config's file. */
  readonly place: string;
  readonly text: string;
  readonly remedy: string;
}

export interface FindingContext {
  /** The newest finding; absent before the first. */
  readonly finding?: Finding;
}

export type FindingEvent =
  | ({ readonly type: 'FOUND' } & Finding)
  /** The config was read again and does not have this fault. */
  | { readonly type: 'GONE' };

interface Args {
  readonly context: FindingContext;
  readonly event: FindingEvent;
}

const UNKNOWN: Finding = { code: 'unknown', severity: 'warning', place: '', text: '', remedy: '' };

const firing = (args: Args): Alert => {
  const { code, severity, place, text, remedy } = findingOf(args);
  return {
    name: `collector.${code}`,
    severity,
    text: `${place}: ${text} ${remedy}`,
    labels: { place, state: 'firing' },
  };
};

const resolved = (args: Args): Alert => {
  const { code, place } = findingOf(args);
  return {
    name: `collector.${code}`,
    severity: 'info',
    text: `${place} is fixed: it does not have this fault any more.`,
    labels: { place, state: 'resolved' },
  };
};

/**
 * One thing that can be wrong with the collector's effective config (O8). It raises an alert when it lasts, since a config
 * that is being replaced may be incomplete for a moment, and resolves it when it is fixed.
 */
export const finding = setup({
  types: { context: {} as FindingContext, events: {} as FindingEvent },
  delays: { patience: 60_000 },
  guards: {
    isAnother: ({ context, event }) => event.type === 'FOUND' && event.text !== context.finding?.text,
  },
  actions: {
    'alerts.raise': effect<Alert>(),
    note: assign((args) => ({ finding: findingOf(args) })),
  },
}).createMachine({
  id: 'collector-finding',
  context: {},
  initial: 'absent',
  states: {
    absent: { on: { FOUND: { target: 'found', actions: 'note' } } },
    found: {
      after: { patience: { target: 'reported', actions: { type: 'alerts.raise', params: firing } } },
      on: { FOUND: { actions: 'note' }, GONE: 'absent' },
    },
    reported: {
      on: {
        FOUND: [
          { guard: 'isAnother', actions: ['note', { type: 'alerts.raise', params: firing }] },
          { actions: 'note' },
        ],
        GONE: { target: 'absent', actions: { type: 'alerts.raise', params: resolved } },
      },
    },
  },
});

function findingOf({ context, event }: Args): Finding {
  if (event.type !== 'FOUND') return context.finding ?? UNKNOWN;
  const { type: _, ...finding } = event;
  return finding;
}
