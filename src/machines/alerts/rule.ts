import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';

/** What goes into and comes out of an alert rule: settings, context and events. Times are epoch milliseconds. */

/** When a measured value is wrong; the bound itself is not. */
export interface Condition {
  readonly kind: 'above' | 'below';
  readonly than: number;
}

/** A rule as its machine needs it; what it asks of the database is the plugin's business. */
export interface RuleSettings {
  readonly name: string;
  /** For people. */
  readonly title: string;
  readonly severity: 'info' | 'warning' | 'critical';
  readonly condition: Condition;
  /** What it looks back over, in words, e.g. `1d`. */
  readonly window: string;
  readonly windowMs: number;
  readonly everyMs: number;
  /** It must last so long before anybody is told. */
  readonly forMs: number;
  /** What silence means. */
  readonly onNoData: 'fire' | 'ok';
  /** Whether it means that too before the first sample has ever come. */
  readonly onNeverSeen: 'fire' | 'ok';
  readonly labels: Readonly<Record<string, string>>;
  readonly runbook?: string | undefined;
}

export interface RuleContext extends RuleSettings {
  /** Since when signals could have been heard: silence of a shorter time says nothing. */
  readonly watchingSince: number;
  /** Own starts within this silence. */
  readonly restarts: number;
  /** Some look has given a value. */
  readonly seen: boolean;
  readonly looks: number;
  /** The newest look. */
  readonly lookedAt?: number | undefined;
  /** What it gave; undefined when there was no data, which is not zero. */
  readonly value?: number | undefined;
  /** What else was found that explains it. */
  readonly finding?: string | undefined;
  readonly breachSince?: number | undefined;
  readonly firingSince?: number | undefined;
  /** Looks in a row that saw nothing at all, and why. */
  readonly misses: number;
  readonly missed?: string | undefined;
}

export type RuleEvent =
  | { readonly type: 'DEFINE'; readonly at: number; readonly settings: RuleSettings }
  /** The runtime starts: what was sent while it was away may not have been heard. */
  | { readonly type: 'WATCH'; readonly at: number }
  | { readonly type: 'REMOVE'; readonly at: number }
  /** Somebody wants to know now. */
  | { readonly type: 'LOOK'; readonly at: number }
  | {
      readonly type: 'EVALUATED';
      readonly at: number;
      /** Absent when the window holds no data. */
      readonly value?: number;
      readonly finding?: string;
    }
  /** The database could not be asked. */
  | { readonly type: 'UNSEEN'; readonly at: number; readonly reason: string }
  | { readonly type: 'effect.failed' };

/** Own starts that lengthen one silence: a runtime that restarts all the time must not hide that nothing comes. */
export const RESTARTS_FORGIVEN = 3;

/** How long a database that could not be asked is left alone, milliseconds, where the rule itself waits longer. */
export const AGAIN_MS = 30_000;

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

export interface Args {
  readonly context: RuleContext;
  readonly event: RuleEvent;
}

export type Evaluated = Extract<RuleEvent, { type: 'EVALUATED' }>;

/** Whether what was found is wrong: missing data is what the rule says of it, and never zero (O17). */
export function breached({ context, event }: Args): boolean {
  if (event.type !== 'EVALUATED') return false;
  if (event.value === undefined) {
    // Nobody who has just begun to listen knows that it is silent.
    const heardLongEnough = event.at - context.watchingSince >= context.windowMs;
    const expected = context.onNoData === 'fire' && (context.seen || context.onNeverSeen === 'fire');
    return expected && (context.firingSince !== undefined || heardLongEnough);
  }
  const { kind, than } = context.condition;
  return kind === 'above' ? event.value > than : event.value < than;
}

/** Whether it has lasted long enough by now. */
export function overdueFor({ context, event }: Args): boolean {
  if (event.type !== 'EVALUATED') return false;
  return event.at - Math.min(context.breachSince ?? event.at, event.at) >= context.forMs;
}

/** A start of ours: what came meanwhile was not heard, so the silence is given its time again, but not for ever. */
export function restarted({ context, event }: Args): Partial<RuleContext> {
  if (event.type !== 'WATCH') return {};
  if (context.watchingSince === 0) return { watchingSince: event.at };
  const restarts = context.restarts + 1;
  return restarts > RESTARTS_FORGIVEN ? {} : { watchingSince: event.at, restarts };
}

/** What a look leaves behind. */
export function settled(args: Args & { event: Evaluated }): Partial<RuleContext> {
  const { context, event } = args;
  const wrong = breached(args);
  return {
    looks: context.looks + 1,
    lookedAt: event.at,
    // A clock that was ahead and is set back must not make it deaf.
    watchingSince: event.at < context.watchingSince ? event.at : context.watchingSince,
    ...(event.value !== undefined && { seen: true, restarts: 0 }),
    value: event.value,
    finding: event.finding,
    misses: 0,
    missed: undefined,
    breachSince: wrong ? (context.breachSince ?? event.at) : undefined,
    firingSince: wrong ? (context.firingSince ?? event.at) : undefined,
  };
}

/** e.g. `above 0` */
function conditionText({ kind, than }: Condition): string {
  return `${kind} ${than}`;
}

/** What people are told of a rule. */
export function ruleAlert({ context, event }: Args, state: 'firing' | 'resolved'): Alert {
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
