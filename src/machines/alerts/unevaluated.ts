import { assign, setup } from 'xstate';
import { type ClockSet, moved } from '../clock-set.ts';
import { type Alert, effect } from '../effect.ts';

/** The evaluations of a rule fail. */
interface FailingRule {
  /** Since when, epoch milliseconds. */
  readonly since: number;
  readonly reason: string;
}

export interface UnevaluatedContext {
  /** By the rule's name. */
  readonly failing: Readonly<Record<string, FailingRule>>;
  /** The time of the newest event. */
  readonly at: number;
}

export type UnevaluatedEvent =
  | { readonly type: 'FAILED'; readonly at: number; readonly rule: string; readonly reason: string }
  /** It was evaluated again, or is no longer listed. */
  | { readonly type: 'RECOVERED'; readonly at: number; readonly rule: string }
  | ClockSet;

interface Args {
  readonly context: UnevaluatedContext;
  readonly event: UnevaluatedEvent;
}

/** How long a rule may not be evaluated before somebody should know, milliseconds. */
const OVERDUE_MS = 3_600_000;
/** Rules that the alert names. */
const NAMED = 5;

const raise = { type: 'alerts.raise', params: (args: Args) => alertOf(args, 'firing') } as const;
const resolve = { type: 'alerts.raise', params: (args: Args) => alertOf(args, 'resolved') } as const;

/**
 * The rules that cannot be evaluated. Such a rule can't fire, and without this nobody would hear of it: its last verdict says
 * nothing of the present. One alert names all of them, because they mostly fail for one reason.
 */
export const alertsUnevaluated = setup({
  types: { context: {} as UnevaluatedContext, events: {} as UnevaluatedEvent },
  delays: {
    overdue: ({ context: { failing, at } }) => {
      const earliest = Math.min(...Object.values(failing).map(({ since }) => since));
      return Number.isFinite(earliest) ? Math.max(0, Math.min(earliest, at) + OVERDUE_MS - at) : OVERDUE_MS;
    },
  },
  guards: {
    hasFailing: ({ context }) => Object.keys(context.failing).length > 0,
    isNew: ({ context, event }) => event.type === 'FAILED' && !Object.hasOwn(context.failing, event.rule),
    isLast: ({ context, event }) =>
      event.type === 'RECOVERED' && Object.keys(context.failing).every((rule) => rule === event.rule),
  },
  actions: {
    'alerts.raise': effect<Alert>(),
    followClock: assign(({ context, event }) => {
      if (event.type !== 'CLOCK_SET') return {};
      const failing = Object.entries(context.failing).map(
        ([rule, each]) => [rule, { ...each, ...moved(each, event.byMs, 'since') }] as const,
      );
      return { ...moved(context, event.byMs, 'at'), failing: Object.fromEntries(failing) };
    }),
    note: assign(({ context, event }) => {
      if (event.type === 'CLOCK_SET') return {};
      const { [event.rule]: known, ...others } = context.failing;
      if (event.type === 'RECOVERED') return { failing: others, at: event.at };
      const { at, rule, reason } = event;
      return { failing: { ...others, [rule]: { since: known?.since ?? at, reason } }, at };
    }),
  },
}).createMachine({
  id: 'alerts-unevaluated',
  context: { failing: {}, at: 0 },
  initial: 'fine',
  on: { CLOCK_SET: { guard: 'hasFailing', actions: 'followClock' } },
  states: {
    fine: { on: { FAILED: { target: 'failing', actions: 'note' } } },
    failing: {
      after: { overdue: { target: 'reported', actions: raise } },
      on: {
        FAILED: { actions: 'note' },
        RECOVERED: [
          { guard: 'isLast', target: 'fine', actions: 'note' },
          { target: 'failing', reenter: true, actions: 'note' },
        ],
      },
    },
    reported: {
      on: {
        FAILED: [{ guard: 'isNew', actions: ['note', raise] }, { actions: 'note' }],
        RECOVERED: [{ guard: 'isLast', target: 'fine', actions: [resolve, 'note'] }, { actions: 'note' }],
      },
    },
  },
});

function alertOf({ context: { failing } }: Args, state: 'firing' | 'resolved'): Alert {
  const rules = Object.entries(failing).sort(([, a], [, b]) => a.since - b.since);
  const names = rules.slice(0, NAMED).map(([rule]) => rule);
  const more = rules.length > NAMED ? ` and ${rules.length - NAMED} more` : '';
  const reason = rules[0]?.[1].reason ?? 'unknown';
  return {
    name: 'alerts.rules_unevaluated',
    severity: state === 'firing' ? 'warning' : 'info',
    text:
      state === 'firing'
        ? `The alert rules ${names.join(', ')}${more} cannot be evaluated, so they cannot fire: ${reason}.`
        : 'Every alert rule can be evaluated again.',
    labels: { state },
  };
}
