import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';
import { ruleAlert, unseenAlert } from './rule-alerts.ts';
import {
  breached,
  evaluated,
  followClock,
  isSilent,
  overdueFor,
  restarted,
  unseen,
} from './rule-evaluation.ts';
import type { RuleArgs, RuleContext, RuleEvent, RuleSettings } from './rule-shapes.ts';

/** The longest wait after a failed evaluation, milliseconds. */
const RETRY_MS = 30_000;

type Verdict = 'ok' | 'pending' | 'firing' | 'noData' | 'unseen';

const raise = { type: 'alerts.raise', params: (args: RuleArgs) => ruleAlert(args, 'firing') } as const;
const resolve = { type: 'alerts.raise', params: (args: RuleArgs) => ruleAlert(args, 'resolved') } as const;
const raiseUnseen = {
  type: 'alerts.raise',
  params: (args: RuleArgs) => unseenAlert(args, 'firing'),
} as const;
const resolveUnseen = {
  type: 'alerts.raise',
  params: (args: RuleArgs) => unseenAlert(args, 'resolved'),
} as const;

/** The result of an evaluation moves the rule to its verdict, and raises an alert where that begins or ends a firing. */
function verdictsFrom(verdict: Verdict) {
  const end = verdict === 'firing' ? [resolve] : [];
  const endUnseen = verdict === 'unseen' ? [resolveUnseen] : [];
  const begin = verdict === 'unseen' ? [] : [raiseUnseen];
  const firesOn =
    verdict === 'firing'
      ? [{ guard: 'firesUnchanged', target: '#alerts-rule.firing', actions: ['note'] } as const]
      : [];
  return [
    ...firesOn,
    { guard: 'fires', target: '#alerts-rule.firing', actions: ['note', ...endUnseen, raise] },
    { guard: 'lasts', target: '#alerts-rule.pending', actions: ['note', ...endUnseen, 'wait'] },
    { guard: 'unseen', target: '#alerts-rule.unseen', actions: ['note', ...end, ...begin] },
    { guard: 'silent', target: '#alerts-rule.noData', actions: ['note', ...end, ...endUnseen] },
    { target: '#alerts-rule.ok.resting', actions: ['note', ...end, ...endUnseen] },
  ] as const;
}

/** The states of one verdict: `resting` between evaluations, and `evaluating`, during which the verdict stays. */
function verdict(name: Verdict) {
  return {
    initial: 'resting',
    states: {
      resting: {
        after: { due: { target: 'evaluating' } },
        on: {
          EVALUATE: { target: 'evaluating' },
          EVALUATED: verdictsFrom(name).map((each) => ({ ...each, reenter: true })),
          EVALUATION_FAILED: { target: 'resting', reenter: true, actions: 'countFailure' },
        },
      },
      evaluating: {
        entry: { type: 'alerts.evaluate', params: ({ context }: RuleArgs) => ({ rule: context.name }) },
        on: {
          EVALUATED: verdictsFrom(name),
          // A failed evaluation changes no verdict.
          EVALUATION_FAILED: { target: 'resting', actions: 'countFailure' },
          'effect.failed': { target: 'resting', actions: 'countFailure' },
        },
      },
    },
  } as const;
}

/**
 * One rule over the signals (O17, R28): evaluates at its interval, distinguishes missing data from zero, and raises an alert
 * when a condition has lasted. Whom to notify, and when again, is decided by the machine `alert`.
 */
export const alertRule = setup({
  types: {
    context: {} as RuleContext,
    events: {} as RuleEvent,
    input: {} as RuleSettings | undefined,
  },
  delays: {
    due: ({ context: { everyMs, failures, reportMs } }) =>
      reportMs === undefined
        ? failures > 0
          ? Math.min(everyMs, RETRY_MS)
          : everyMs
        : Math.max(everyMs, reportMs),
  },
  guards: {
    fires: (args) => breached(args) && overdueFor(args),
    /** It goes on firing with the same finding, so its alert is not raised again. */
    firesUnchanged: (args) =>
      breached(args) &&
      overdueFor(args) &&
      args.event.type === 'EVALUATED' &&
      args.event.finding === args.context.finding,
    lasts: (args) => breached(args),
    unseen: (args) => unseen(args),
    silent: (args) => isSilent(args),
  },
  actions: {
    'alerts.raise': effect<Alert>(),
    'alerts.evaluate': effect<{ rule: string }>(),
    define: assign(({ context, event }) =>
      event.type === 'DEFINE'
        ? {
            ...blank,
            ...event.settings,
            // A log of an older version has none of them.
            comes: context.comes ?? false,
            steady: context.steady ?? false,
            places: context.places ?? [],
            watchingSince: event.at,
            lookedForSince: event.at,
            restarts: 0,
          }
        : {},
    ),
    watch: assign((args) => restarted(args)),
    note: assign((args) => evaluated(args)),
    wait: assign({ firingSince: undefined }),
    countFailure: assign(({ context, event }) => ({
      failures: context.failures + (event.type === 'EVALUATION_FAILED' ? (event.looks ?? 1) : 1),
      failure: event.type === 'EVALUATION_FAILED' ? event.reason : 'the evaluation did not end in time',
    })),
    followClock: assign(followClock),
    forget: assign({ firingSince: undefined, breachSince: undefined, value: undefined }),
  },
}).createMachine({
  id: 'alerts-rule',
  context: ({ input }) => ({
    ...blank,
    ...(input ?? undefinedRule),
    watchingSince: 0,
    lookedForSince: 0,
    restarts: 0,
    comes: false,
    steady: false,
    places: [],
    evaluations: 0,
    failures: 0,
  }),
  initial: 'ok',
  on: {
    // A changed rule is evaluated at once. A rule that fires keeps firing until that evaluation has ended.
    DEFINE: { target: '.ok.evaluating', actions: 'define' },
    WATCH: { actions: 'watch' },
    CLOCK_SET: { actions: 'followClock' },
    REMOVE: { target: '.removed', actions: 'forget' },
  },
  states: {
    ok: { ...verdict('ok'), initial: 'evaluating' },
    pending: verdict('pending'),
    firing: {
      ...verdict('firing'),
      on: {
        DEFINE: { target: '.evaluating', actions: 'define' },
        REMOVE: { target: 'removed', actions: [resolve, 'forget'] },
      },
    },
    noData: verdict('noData'),
    /** Its signal is not required yet, and has not come for so long that somebody should know. */
    unseen: {
      ...verdict('unseen'),
      on: {
        DEFINE: { target: '.evaluating', actions: 'define' },
        REMOVE: { target: 'removed', actions: [resolveUnseen, 'forget'] },
      },
    },
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
  expect: 'required',
  freshMs: 3_600_000,
  unseenAfterMs: 86_400_000,
  metric: '',
  labels: {},
};

/** Settings that a later definition may leave out. */
const blank = { runbook: undefined, firstStep: undefined, reads: undefined };
