import { assign, setup, stateIn } from 'xstate';
import { type ClockSet, moved } from '../clock-set.ts';
import { effect } from '../effect.ts';

/** A check that failed. */
export interface Failure {
  readonly check: 'database' | 'ingest' | 'engine' | 'result';
  /** What was queried and what came back, as parts of a sentence. */
  readonly query: string;
  readonly found: string;
}

export type Outcome = 'delivered' | 'undelivered' | 'unhealthy' | 'killed';

/** How a run ended. */
export interface RunReport {
  readonly outcome: Outcome;
  /** The lines to print. */
  readonly lines: readonly string[];
  /** Exit code of the one-shot command: it says how the run went, not how the stack is. */
  readonly exitCode: number;
  /** When the run began, epoch milliseconds. */
  readonly startedAt: number;
}

/** How a table gets its rows, by the times of its newest row (epoch ms). */
export interface Arrival {
  /** Since when no gap was longer than an hour. */
  readonly since: number;
  readonly newestAt: number;
  /** It came for a day, and is required from then on. */
  readonly steady: boolean;
}

export interface WatchdogContext {
  readonly startedAt: number;
  /** The deadline that was given for this run, milliseconds; `DEADLINE_MS` unless present. */
  readonly deadlineMs?: number | undefined;
  /** What was left of it when the run began, milliseconds; all of it unless present. */
  readonly remainingMs?: number | undefined;
  /** Since when each check fails, ISO 8601, by check. */
  readonly failing: Readonly<Record<string, string>>;
  readonly stale: number;
  readonly drift: number;
  /** Watched tables that have had rows: from then on it is a fault when one has none. */
  readonly produced?: readonly string[] | undefined;
  /** How each watched table gets its rows. */
  readonly arrivals?: Readonly<Record<string, Arrival>> | undefined;
  /** What was seen of signals that are not required yet, as sentences. */
  readonly unknown?: readonly string[] | undefined;
  /** How long the checks took, milliseconds. */
  readonly tookMs: number;
  readonly last?: RunReport | undefined;
  /** When the newest heartbeat was delivered, and its message. */
  readonly deliveredAt?: number | undefined;
  readonly deliveredMsg?: string | undefined;
}

export type WatchdogEvent =
  /** The runtime starts. */
  | { type: 'START'; at: number }
  | ClockSet
  /** `deadlineMs` is a deadline that was given for this run; a process that had to start first has used some of it. */
  | { type: 'RUN'; at: number; deadlineMs?: number; remainingMs?: number }
  /**
   * `time` is `at` as ISO 8601, because a machine has no calendar; `stale` is in seconds; `produced` lists tables that were
   * seen with rows for the first time; `ages` has the age of the newest row of each watched table that has any, seconds;
   * `unknown` says what was seen of signals that are not required yet.
   */
  | {
      type: 'CHECKED';
      at: number;
      time: string;
      tookMs: number;
      stale: number;
      drift: number;
      failures: readonly Failure[];
      produced?: readonly string[];
      ages?: Readonly<Record<string, number>>;
      unknown?: readonly string[];
      /** How many runs it stands for, itself included, where others before it were only counted; and their arrivals. */
      looks?: number;
      arrivals?: WatchdogContext['arrivals'];
    }
  | { type: 'PUSHED'; at: number; status: number }
  | { type: 'PUSH_REFUSED'; at: number; status: number; msg?: string; body: string; exitStatus: number }
  | { type: 'PUSH_FAILED'; at: number; reason: string; exitStatus: number }
  | { type: 'effect.failed'; effect: string; code: string; message: string }
  | { type: 'effect.lost'; effect: string };

interface Args {
  readonly context: WatchdogContext;
  readonly event: WatchdogEvent;
}

/** As `schedule` of the job: a cron pattern, in UTC. */
export const SCHEDULE = '*/5 * * * *';
/** As `activeDeadlineSeconds` of the job. */
export const DEADLINE_MS = 120_000;
/** The first run waits until the other plugins have started. */
export const WARM_UP_MS = 10_000;
/** Exit status of `timeout`. */
export const KILLED_EXIT = 124;

/** Reports how the run ended, and remembers it. */
function ends(
  name: 'delivered' | 'undelivered' | 'unhealthy' | 'overdue' | 'overdueWhilePushing' | 'broken',
) {
  const reports = {
    delivered: ofContext(delivered),
    undelivered,
    unhealthy,
    overdue: ofContext((context) => overdue(context, '')),
    overdueWhilePushing: ofContext((context) =>
      overdue(context, '; its heartbeat had been sent, and whether it arrived is not known'),
    ),
    broken,
  };
  return [
    { type: 'watchdog.report', params: (args: Args): RunReport => reports[name](args) },
    { type: 'remember', params: (args: Args): RunReport => reports[name](args) },
  ] as const;
}

function ofContext(make: (context: WatchdogContext) => RunReport) {
  return ({ context }: Args): RunReport => make(context);
}

/** A run begins from every state but `running`. */
const startsRun = { RUN: { target: '#watchdog-run.running', actions: 'begin' } } as const;

/**
 * The runs of the watchdog (O10–O14): checks, then a heartbeat only when everything is healthy. The heartbeat is the
 * verdict; how the run itself ended is reported beside it, never in its place.
 */
export const watchdogRun = setup({
  types: { context: {} as WatchdogContext, events: {} as WatchdogEvent },
  delays: {
    deadline: ({ context }) => context.remainingMs ?? context.deadlineMs ?? DEADLINE_MS,
    warmUp: WARM_UP_MS,
  },
  guards: {
    isPushing: stateIn({ running: 'pushing' }),
    hasFailures: ({ event }) => event.type === 'CHECKED' && event.failures.length > 0,
    isOfCheck: ({ event }) => 'effect' in event && event.effect === 'watchdog.check',
    isOfPush: ({ event }) => 'effect' in event && event.effect === 'watchdog.push',
  },
  actions: {
    'watchdog.check': effect(),
    'watchdog.push': effect<{ msg: string; ping: number }>(),
    'watchdog.report': effect<RunReport>(),
    begin: assign(({ context, event }) =>
      event.type === 'RUN'
        ? { startedAt: event.at, deadlineMs: event.deadlineMs, remainingMs: event.remainingMs }
        : { startedAt: context.startedAt, deadlineMs: undefined, remainingMs: undefined },
    ),
    /** A check that failed before keeps the time since when it fails. */
    noteFindings: assign(({ context, event }) => {
      if (event.type !== 'CHECKED') return {};
      const failing = Object.fromEntries(
        event.failures.map(({ check }) => [check, context.failing[check] ?? event.time]),
      );
      const { stale, drift, tookMs, at, produced } = event;
      const seen = produced && { produced: [...new Set([...(context.produced ?? []), ...produced])] };
      const { ages = {}, unknown } = event;
      const arrivals = arrivalsAfter(event.arrivals ?? context.arrivals, ages, at);
      return { failing, stale, drift, tookMs, startedAt: at - tookMs, ...seen, arrivals, unknown };
    }),
    followClock: assign(({ context, event }) => {
      if (event.type !== 'CLOCK_SET') return {};
      const arrivals = Object.entries(context.arrivals ?? {}).map(
        ([table, each]) => [table, { ...each, ...moved(each, event.byMs, 'since', 'newestAt') }] as const,
      );
      return {
        ...moved(context, event.byMs, 'deliveredAt'),
        ...(context.arrivals && { arrivals: Object.fromEntries(arrivals) }),
      };
    }),
    noteDelivery: assign(({ context, event }) =>
      event.type === 'PUSHED' ? { deliveredAt: event.at, deliveredMsg: verdict(context) } : {},
    ),
    remember: assign({ last: (_, report: RunReport) => report }),
  },
}).createMachine({
  id: 'watchdog-run',
  context: { startedAt: 0, failing: {}, stale: 0, drift: 0, tookMs: 0 },
  initial: 'idle',
  on: { CLOCK_SET: { actions: 'followClock' } },
  states: {
    idle: { on: { ...startsRun, START: 'soon' } },

    /** The runtime has just started. */
    soon: {
      after: { warmUp: { target: 'running', actions: 'begin' } },
      on: startsRun,
    },

    running: {
      initial: 'checking',
      after: {
        deadline: [
          { guard: 'isPushing', target: 'killed', actions: ends('overdueWhilePushing') },
          { target: 'killed', actions: ends('overdue') },
        ],
      },
      states: {
        checking: {
          entry: 'watchdog.check',
          on: {
            CHECKED: [
              {
                guard: 'hasFailures',
                target: '#watchdog-run.unhealthy',
                actions: ['noteFindings', ...ends('unhealthy')],
              },
              { target: 'healthy', actions: 'noteFindings' },
            ],
            'effect.failed': { guard: 'isOfCheck', target: '#watchdog-run.killed', actions: ends('broken') },
            'effect.lost': { guard: 'isOfCheck', target: '#watchdog-run.killed', actions: ends('broken') },
          },
        },
        healthy: { always: 'pushing' },
        pushing: {
          entry: {
            type: 'watchdog.push',
            params: ({ context }) => ({ msg: verdict(context), ping: context.tookMs }),
          },
          on: {
            PUSHED: { target: '#watchdog-run.delivered', actions: ['noteDelivery', ...ends('delivered')] },
            PUSH_REFUSED: { target: '#watchdog-run.pushFailed', actions: ends('undelivered') },
            PUSH_FAILED: { target: '#watchdog-run.pushFailed', actions: ends('undelivered') },
            'effect.failed': { guard: 'isOfPush', target: '#watchdog-run.killed', actions: ends('broken') },
            'effect.lost': { guard: 'isOfPush', target: '#watchdog-run.killed', actions: ends('broken') },
          },
        },
      },
    },

    delivered: { on: { ...startsRun, START: 'soon' } },
    /** Healthy, and the heartbeat did not arrive. */
    pushFailed: { on: { ...startsRun, START: 'soon' } },
    unhealthy: { on: { ...startsRun, START: 'soon' } },
    /** The run did not end by itself. */
    killed: { on: { ...startsRun, START: 'soon' } },
  },
});

/** A longer gap between two rows begins the day anew, for which a signal must come until it is required. */
const LONGEST_GAP_MS = 3_600_000;
const STEADY_MS = 86_400_000;

/** How tables get their rows after a check. @param ages of their newest rows, seconds; @param now epoch milliseconds */
export function arrivalsAfter(
  before: WatchdogContext['arrivals'],
  ages: Readonly<Record<string, number>>,
  now: number,
): WatchdogContext['arrivals'] {
  const after = Object.entries(ages).map(([table, age]) => [table, arrival(before?.[table], age, now)]);
  return after.length === 0 ? before : { ...before, ...Object.fromEntries(after) };
}

/** @param age of the newest row, seconds */
function arrival(before: Arrival | undefined, age: number, now: number): Arrival {
  const newestAt = now - Math.round(age * 1_000);
  // After the clock was set back, nothing is known of the time before.
  const begins = !before || newestAt - before.newestAt > LONGEST_GAP_MS || before.newestAt > now;
  const since = begins ? newestAt : before.since;
  const latest = begins ? newestAt : Math.max(newestAt, before.newestAt);
  return { since, newestAt: latest, steady: before?.steady === true || latest - since >= STEADY_MS };
}

/** The line of a healthy stack, on standard output and as the heartbeat's message. */
function verdict({ stale, drift }: WatchdogContext): string {
  return `stale=${stale}s drift=${drift}`;
}

function delivered(context: WatchdogContext): RunReport {
  return report(context, 'delivered', [verdict(context), '{"ok":true}', ...unknownLines(context)], 0);
}

/** Each failing check with what was asked, what came back and since when. */
function unhealthy({ context, event }: Args): RunReport {
  const failures = event.type === 'CHECKED' ? event.failures : [];
  const texts = failures.map(
    ({ check, query, found }: Failure) =>
      `${check}: asked ${query}, got ${found}, since ${context.failing[check] ?? 'now'}`,
  );
  const unknown = unknownLines({ unknown: event.type === 'CHECKED' ? event.unknown : undefined });
  return report(context, 'unhealthy', [`HEALTH CHECK FAILED: ${texts.join('; ')}`, ...unknown], 0);
}

function unknownLines({ unknown = [] }: Pick<WatchdogContext, 'unknown'>): string[] {
  return unknown.map((text) => `UNKNOWN: ${text}`);
}

/** The line ends like that of the job's former client, because searches of stored logs look for that text. */
function undelivered({ context, event }: Args): RunReport {
  const line = `PUSH DELIVERY FAILED: ${why(event)} (wget exit status ${exitStatus(event)})`;
  return report(context, 'undelivered', [line], 1);
}

function overdue(context: WatchdogContext, addition: string): RunReport {
  return report(context, 'killed', [deadlineLine(context.deadlineMs) + addition], KILLED_EXIT);
}

/** The line of a run that its deadline ended. @param deadlineMs the deadline that was given, milliseconds */
export function deadlineLine(deadlineMs: number = DEADLINE_MS): string {
  return `DEADLINE EXCEEDED: the run did not end within ${deadlineMs / 1_000} s`;
}

/** An effect of the run was lost with its process, or failed where it never should. */
function broken({ context, event }: Args): RunReport {
  const reason =
    event.type === 'effect.failed'
      ? `${event.effect} failed (${event.code}: ${event.message})`
      : 'the process ended while it ran';
  return report(context, 'killed', [`RUN KILLED: ${reason}`], KILLED_EXIT);
}

function why(event: Args['event']): string {
  switch (event.type) {
    case 'PUSH_REFUSED':
      return `HTTP ${event.status}: ${event.msg ?? (event.body || 'an empty body')}`.replace(/\s+/g, ' ');
    case 'PUSH_FAILED':
      return event.reason;
    default:
      return 'no answer';
  }
}

function exitStatus(event: Args['event']): number {
  return event.type === 'PUSH_REFUSED' || event.type === 'PUSH_FAILED' ? event.exitStatus : 1;
}

function report(
  { startedAt }: WatchdogContext,
  outcome: RunReport['outcome'],
  lines: readonly string[],
  exitCode: number,
): RunReport {
  return { outcome, lines, exitCode, startedAt };
}
