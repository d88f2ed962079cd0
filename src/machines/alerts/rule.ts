import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';
import {
  type Args,
  breached,
  type Evaluated,
  overdueFor,
  restarted,
  ruleAlert,
  settled,
} from './evaluation.ts';
import { AGAIN_MS, type RuleContext, type RuleEvent, type RuleSettings } from './rule-shapes.ts';

type Verdict = 'ok' | 'pending' | 'firing' | 'noData';

const raise = { type: 'alert.raise', params: (args: Args) => ruleAlert(args, 'firing') } as const;
const resolve = { type: 'alert.raise', params: (args: Args) => ruleAlert(args, 'resolved') } as const;

/** A look's result moves the rule to its verdict; a person is told where that begins or ends a firing. */
function verdictsFrom(verdict: Verdict) {
  const wasFiring = verdict === 'firing';
  const end = wasFiring ? (['note', resolve] as const) : (['note'] as const);
  const begin = wasFiring ? (['note'] as const) : (['note', raise] as const);
  return [
    { guard: 'fires', target: '#alerts-rule.firing', actions: begin },
    { guard: 'lasts', target: '#alerts-rule.pending', actions: ['note', 'wait'] },
    { guard: 'silent', target: '#alerts-rule.noData', actions: end },
    { target: '#alerts-rule.ok.resting', actions: end },
  ] as const;
}

/** Between two looks it rests; while it asks, the verdict is the one of the look before. */
function verdict(name: Verdict) {
  return {
    initial: 'resting',
    states: {
      resting: { after: { due: { target: 'asking' } }, on: { LOOK: { target: 'asking' } } },
      asking: {
        entry: { type: 'alerts.evaluate', params: ({ context }: Args) => ({ rule: context.name }) },
        on: {
          EVALUATED: verdictsFrom(name),
          // Nothing was seen, so nothing is said: neither that it is well nor that it is not.
          UNSEEN: { target: 'resting', actions: 'miss' },
          'effect.failed': { target: 'resting', actions: 'miss' },
        },
      },
    },
  } as const;
}

/**
 * One rule over the signals (O17, R28): looks at its interval, tells missing data from zero, and says so when a
 * condition has lasted. Who is told, and whether somebody is at it already, is the business of the machine `alert`.
 */
export const alertRule = setup({
  types: {
    context: {} as RuleContext,
    events: {} as RuleEvent,
    input: {} as RuleSettings | undefined,
  },
  delays: {
    due: ({ context }) => (context.misses > 0 ? Math.min(context.everyMs, AGAIN_MS) : context.everyMs),
  },
  guards: {
    fires: (args) => breached(args) && overdueFor(args),
    lasts: (args) => breached(args),
    silent: ({ event }) => event.type === 'EVALUATED' && event.value === undefined,
    isFiring: ({ context }) => context.firingSince !== undefined,
  },
  actions: {
    'alert.raise': effect<Alert>(),
    'alerts.evaluate': effect<{ rule: string }>(),
    define: assign(({ event }) =>
      event.type === 'DEFINE' ? { ...blank, ...event.settings, watchingSince: event.at, restarts: 0 } : {},
    ),
    watch: assign((args) => restarted(args)),
    note: assign((args) => settled(args as Args & { event: Evaluated })),
    wait: assign({ firingSince: undefined }),
    miss: assign(({ context, event }) => ({
      misses: context.misses + 1,
      missed: event.type === 'UNSEEN' ? event.reason : 'the look did not end in time',
    })),
    forget: assign({ firingSince: undefined, breachSince: undefined, value: undefined }),
  },
}).createMachine({
  id: 'alerts-rule',
  context: ({ input }) => ({
    ...blank,
    ...(input ?? undefinedRule),
    watchingSince: 0,
    restarts: 0,
    seen: false,
    looks: 0,
    misses: 0,
  }),
  initial: 'ok',
  on: {
    // A rule that is changed is looked at anew, with what it last found.
    DEFINE: [
      { guard: 'isFiring', target: '.firing.asking', actions: 'define' },
      { target: '.ok.asking', actions: 'define' },
    ],
    WATCH: { actions: 'watch' },
    REMOVE: [
      { guard: 'isFiring', target: '.removed', actions: [resolve, 'forget'] },
      { target: '.removed', actions: 'forget' },
    ],
  },
  states: {
    ok: { ...verdict('ok'), initial: 'asking' },
    pending: verdict('pending'),
    firing: verdict('firing'),
    noData: verdict('noData'),
    removed: { on: { REMOVE: {}, WATCH: {} } },
  },
});

const undefinedRule: RuleSettings = {
  name: '',
  title: '',
  severity: 'warning',
  condition: { kind: 'above', than: 0 },
  window: '1h',
  windowMs: 3_600_000,
  everyMs: 3_600_000,
  forMs: 0,
  onNoData: 'ok',
  onNeverSeen: 'fire',
  labels: {},
};

/** Settings that a later definition may leave out. */
const blank = { runbook: undefined };
