import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';

/** The values that are wrong; the bound itself is not one of them. */
export interface Condition {
  readonly kind: 'above' | 'below';
  readonly than: number;
}

/** The settings of a rule that its machine needs; the query stays in the plugin. */
export interface RuleSettings {
  readonly name: string;
  /** For people. */
  readonly title: string;
  readonly severity: 'info' | 'warning' | 'critical';
  readonly condition: Condition;
  /** The time that a query covers, as configured, e.g. `1d`. */
  readonly window: string;
  readonly windowMs: number;
  readonly everyMs: number;
  /** How long it must last before it fires, milliseconds. */
  readonly forMs: number;
  /** What missing data means. */
  readonly onNoData: 'fire' | 'ok';
  /** What it means before the first sample has ever come. */
  readonly onNeverSeen: 'fire' | 'ok';
  readonly labels: Readonly<Record<string, string>>;
  readonly runbook?: string | undefined;
}

export interface RuleContext extends RuleSettings {
  /** Since when signals could have arrived (epoch ms): missing data of a shorter time means nothing. */
  readonly watchingSince: number;
  /** Starts of the runtime while data has been missing. */
  readonly restarts: number;
  /** An evaluation has given a value. */
  readonly seen: boolean;
  readonly evaluations: number;
  /** When the newest evaluation ended (epoch ms). */
  readonly evaluatedAt?: number | undefined;
  /** Its value; undefined when there was no data, which is not zero. */
  readonly value?: number | undefined;
  /** What else the evaluation found that explains the value. */
  readonly finding?: string | undefined;
  readonly breachSince?: number | undefined;
  readonly firingSince?: number | undefined;
  /** Evaluations in a row that failed, and why the last one did. */
  readonly failures: number;
  readonly failure?: string | undefined;
}

export type RuleEvent =
  | { readonly type: 'DEFINE'; readonly at: number; readonly settings: RuleSettings }
  /** The runtime starts: what was sent while it was down may be lost. */
  | { readonly type: 'WATCH'; readonly at: number }
  | { readonly type: 'REMOVE'; readonly at: number }
  /** An operator asks for an evaluation now. */
  | { readonly type: 'EVALUATE'; readonly at: number }
  | {
      readonly type: 'EVALUATED';
      readonly at: number;
      /** Absent when the window holds no data. */
      readonly value?: number;
      readonly finding?: string;
    }
  /** The database could not be queried. */
  | { readonly type: 'EVALUATION_FAILED'; readonly at: number; readonly reason: string }
  | { readonly type: 'effect.failed' };

/** Restarts that extend the wait for data. Without a limit, a runtime that restarts all the time would hide missing data. */
const RESTARTS_FORGIVEN = 3;

/** The longest wait after a failed evaluation, milliseconds. */
const RETRY_MS = 30_000;

type Verdict = 'ok' | 'pending' | 'firing' | 'noData';

const raise = { type: 'alerts.raise', params: (args: Args) => ruleAlert(args, 'firing') } as const;
const resolve = { type: 'alerts.raise', params: (args: Args) => ruleAlert(args, 'resolved') } as const;

/** The result of an evaluation moves the rule to its verdict, and raises an alert where that begins or ends a firing. */
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

/** The states of one verdict: `resting` between evaluations, and `evaluating`, during which the verdict stays. */
function verdict(name: Verdict) {
  return {
    initial: 'resting',
    states: {
      resting: { after: { due: { target: 'evaluating' } }, on: { EVALUATE: { target: 'evaluating' } } },
      evaluating: {
        entry: { type: 'alerts.evaluate', params: ({ context }: Args) => ({ rule: context.name }) },
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
    due: ({ context }) => (context.failures > 0 ? Math.min(context.everyMs, RETRY_MS) : context.everyMs),
  },
  guards: {
    fires: (args) => breached(args) && overdueFor(args),
    lasts: (args) => breached(args),
    silent: ({ event }) => event.type === 'EVALUATED' && event.value === undefined,
  },
  actions: {
    'alerts.raise': effect<Alert>(),
    'alerts.evaluate': effect<{ rule: string }>(),
    define: assign(({ event }) =>
      event.type === 'DEFINE' ? { ...blank, ...event.settings, watchingSince: event.at, restarts: 0 } : {},
    ),
    watch: assign((args) => restarted(args)),
    note: assign((args) => evaluated(args)),
    wait: assign({ firingSince: undefined }),
    countFailure: assign(({ context, event }) => ({
      failures: context.failures + 1,
      failure: event.type === 'EVALUATION_FAILED' ? event.reason : 'the evaluation did not end in time',
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
    evaluations: 0,
    failures: 0,
  }),
  initial: 'ok',
  on: {
    // A changed rule is evaluated at once. A rule that fires keeps firing until that evaluation has ended.
    DEFINE: { target: '.ok.evaluating', actions: 'define' },
    WATCH: { actions: 'watch' },
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

interface Args {
  readonly context: RuleContext;
  readonly event: RuleEvent;
}

/** Whether the value is wrong; what missing data means is the rule's choice, and never zero (O17). */
function breached({ context, event }: Args): boolean {
  if (event.type !== 'EVALUATED') return false;
  if (event.value === undefined) {
    // Data counts as missing only after a whole window in which it could have arrived.
    const watchedLongEnough = event.at - context.watchingSince >= context.windowMs;
    const expected = context.onNoData === 'fire' && (context.seen || context.onNeverSeen === 'fire');
    return expected && (context.firingSince !== undefined || watchedLongEnough);
  }
  const { kind, than } = context.condition;
  return kind === 'above' ? event.value > than : event.value < than;
}

/** Whether it has lasted long enough by now. */
function overdueFor({ context, event }: Args): boolean {
  if (event.type !== 'EVALUATED') return false;
  return event.at - Math.min(context.breachSince ?? event.at, event.at) >= context.forMs;
}

/** A start of the runtime: missing data is given the time of the window again, but not for ever. */
function restarted({ context, event }: Args): Partial<RuleContext> {
  if (event.type !== 'WATCH') return {};
  if (context.watchingSince === 0) return { watchingSince: event.at };
  const restarts = context.restarts + 1;
  return restarts > RESTARTS_FORGIVEN ? {} : { watchingSince: event.at, restarts };
}

/** The result of an evaluation. */
function evaluated(args: Args): Partial<RuleContext> {
  const { context, event } = args;
  if (event.type !== 'EVALUATED') return {};
  const wrong = breached(args);
  return {
    evaluations: context.evaluations + 1,
    evaluatedAt: event.at,
    // After a clock was set back, the time of watching begins anew.
    watchingSince: event.at < context.watchingSince ? event.at : context.watchingSince,
    ...(event.value !== undefined && { seen: true, restarts: 0 }),
    value: event.value,
    finding: event.finding,
    failures: 0,
    failure: undefined,
    breachSince: wrong ? (context.breachSince ?? event.at) : undefined,
    firingSince: wrong ? (context.firingSince ?? event.at) : undefined,
  };
}

/** e.g. `above 0` */
function conditionText({ kind, than }: Condition): string {
  return `${kind} ${than}`;
}

/** The alert of a rule. */
function ruleAlert({ context, event }: Args, state: 'firing' | 'resolved'): Alert {
  const { name, title, severity, condition, window, labels, runbook } = context;
  const { value, finding } = event.type === 'EVALUATED' ? event : context;
  const seen = value === undefined ? `no data in ${window}` : `${value} in ${window}`;
  const why =
    state === 'firing'
      ? `${seen}; it is wrong when ${conditionText(condition)}${value === undefined ? ' or silent' : ''}`
      : event.type === 'REMOVE'
        ? 'the rule is no longer listed'
        : seen;
  return {
    name: `rule.${name}`,
    severity: state === 'firing' ? severity : 'info',
    text: `${title}: ${why}${finding === undefined ? '' : `; ${finding}`}.`,
    labels: { ...labels, rule: name, state },
    measured: {
      title,
      ...(value !== undefined && { value }),
      threshold: conditionText(condition),
      window,
      ...(runbook !== undefined && { runbook }),
    },
  };
}
