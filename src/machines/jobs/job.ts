import { assign, setup } from 'xstate';
import { classify, clearsAfter, joined, retention } from './failure.ts';

/** What goes into and comes out of a job: context, events, and what is known of its pod. Times are epoch milliseconds. */

/** What a pod's status said, as long as there was a pod. */
export interface PodFacts {
  readonly name: string;
  readonly phase?: string | undefined;
  /** Of the pod itself, e.g. `Evicted`. */
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  /** Why its container does not run yet, e.g. `ImagePullBackOff`. */
  readonly waiting?: string | undefined;
  /** Whether its container ever ran. */
  readonly ran?: boolean | undefined;
  readonly exitCode?: number | undefined;
  /** Of the container's end, e.g. `OOMKilled`. */
  readonly ended?: string | undefined;
  /** The end of its output, where the pod keeps it. */
  readonly output?: string | undefined;
}

/** What a Job's object says, and the CronJob that made it. */
export interface JobFacts {
  readonly namespace: string;
  readonly name: string;
  readonly phase: 'active' | 'succeeded' | 'failed';
  readonly createdAt: number;
  readonly endedAt?: number | undefined;
  /** Of its condition, e.g. `DeadlineExceeded`. */
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  readonly ttlSeconds?: number | undefined;
  /** The CronJob that made it, as it is now. */
  readonly owner?:
    | {
        readonly name: string;
        readonly ttlSeconds?: number | undefined;
        readonly failedLimit: number;
        /** Failed Jobs of it that came after this one. */
        readonly newerFailed: number;
      }
    | undefined;
  readonly pod?: PodFacts | undefined;
}

export type CauseKind = 'exit' | 'oom' | 'deadline' | 'image' | 'eviction' | 'unknown' | 'unseen';

/** Why a run did not succeed. */
export interface Cause {
  readonly kind: CauseKind;
  readonly text: string;
  readonly exitCode?: number | undefined;
}

/** Why a finished Job is still there, and until when if anything takes it away. */
export interface Retention {
  readonly why: 'ttl' | 'ttl-overdue' | 'older-than-ttl' | 'no-ttl';
  readonly text: string;
  readonly until?: number | undefined;
}

export interface JobContext {
  /** Whether this process ran it, or a cluster. */
  readonly source: 'own' | 'cluster';
  readonly namespace: string;
  readonly name: string;
  /** The schedule that it is a run of, where one made it. */
  readonly job?: string | undefined;
  readonly startedAt: number;
  readonly endedAt?: number | undefined;
  /** When it was last heard of. */
  readonly seenAt: number;
  /** Everything that its pod ever showed: the pod itself goes away. */
  readonly pod?: PodFacts | undefined;
  readonly cause?: Cause | undefined;
  readonly retention?: Retention | undefined;
  readonly goneAt?: number | undefined;
  /** When the alert on it ends, once it is gone. */
  readonly clearsAt?: number | undefined;
}

export type JobEvent =
  | { type: 'STARTED'; at: number; job: string }
  | { type: 'ENDED'; at: number; job: string; outcome: 'succeeded' | 'failed'; cause?: string; text?: string }
  /** The process that ran it is another one now. */
  | { type: 'ORPHANED'; at: number }
  | { type: 'OBSERVED'; at: number; facts: JobFacts }
  | { type: 'GONE'; at: number };

/** As `ttlSecondsAfterFinished` of the watchdog's Job, for our own runs too. */
export const TTL_MS = 300_000;
/** Jobs of this process are said to be in this namespace. */
export const OWN_NAMESPACE = 'holdfast';

const MINUTE_MS = 60_000;

const ended = [
  { guard: 'succeeds', target: 'succeeded', actions: 'end' },
  { target: 'failed', actions: 'end' },
] as const;
const observed = [
  { guard: 'isActive', target: 'active', actions: 'observe' },
  { guard: 'isWell', target: 'succeeded', actions: 'observe' },
  { guard: 'hasTime', target: 'failed', actions: 'observe' },
  { target: 'retained', actions: 'observe' },
] as const;

/**
 * One run of a schedule, of a cluster or of this process (O13, O19): how it ended and why, why it is still there, and
 * when the alert on it ends. A run that succeeded says nothing of what it looked at.
 */
export const job = setup({
  types: { context: {} as JobContext, events: {} as JobEvent },
  delays: {
    /** Until its TTL takes it away. */
    ttl: ({ context: { retention, seenAt } }) =>
      Math.max(0, (retention?.until ?? seenAt + TTL_MS) - seenAt) || 0,
    clear: ({ context }) => Math.max(0, (context.clearsAt ?? 0) - (context.goneAt ?? 0)) || 0,
  },
  guards: {
    isOwn: ({ context }) => context.source === 'own',
    succeeds: ({ event }) => event.type === 'ENDED' && event.outcome === 'succeeded',
    isActive: ({ event }) => event.type === 'OBSERVED' && event.facts.phase === 'active',
    isWell: ({ event }) => event.type === 'OBSERVED' && event.facts.phase === 'succeeded',
    hasTime: ({ event }) => event.type === 'OBSERVED' && retention(event.facts, event.at).until !== undefined,
  },
  actions: {
    begin: assign(({ event }) => (event.type === 'STARTED' ? ownRun(event.job, event.at) : {})),
    end: assign(({ context, event }) => (event.type === 'ENDED' ? ending(context, event) : {})),
    orphan: assign(({ event }) =>
      event.type === 'ORPHANED'
        ? { ...over(event.at), cause: caused('unknown', 'unknown kill: the process ended while it ran') }
        : {},
    ),
    observe: assign(({ context, event }) =>
      event.type === 'OBSERVED' ? seen(context, event.facts, event.at) : {},
    ),
    overdue: assign(({ context }) => ({
      retention: {
        why: 'ttl-overdue' as const,
        text: `${context.retention?.text ?? 'its TTL'} is over, and it is still there`,
      },
    })),
    reap: assign(({ context, event }) => {
      const goneAt = event.type === 'GONE' ? event.at : (context.retention?.until ?? context.seenAt);
      return { goneAt, clearsAt: clearsAfter(goneAt), retention: undefined };
    }),
    lose: assign({ cause: caused('unseen', 'it was gone before its end was seen') }),
  },
}).createMachine({
  id: 'jobs-job',
  context: { source: 'own', namespace: OWN_NAMESPACE, name: '', startedAt: 0, seenAt: 0 },
  initial: 'waiting',
  on: { OBSERVED: observed.map((each) => ({ ...each, target: `.${each.target}` as const })) },
  states: {
    waiting: { on: { STARTED: { target: 'active', actions: 'begin' }, ENDED: ended } },
    active: {
      on: {
        ENDED: ended,
        ORPHANED: { target: 'failed', actions: 'orphan' },
        GONE: { target: 'reaped', actions: ['lose', 'reap'] },
      },
    },
    succeeded: {
      after: { ttl: { guard: 'isOwn', target: 'forgotten' } },
      on: { GONE: 'forgotten' },
    },
    /** Its TTL will take it away. */
    failed: {
      after: {
        ttl: [
          { guard: 'isOwn', target: 'reaped', actions: 'reap' },
          { target: 'retained', actions: 'overdue' },
        ],
      },
      on: {
        // Its plugin took it up again after a crash.
        STARTED: { target: 'active', actions: 'begin' },
        ENDED: ended,
        GONE: { target: 'reaped', actions: 'reap' },
      },
    },
    /** Nothing takes it away by itself. */
    retained: { on: { GONE: { target: 'reaped', actions: 'reap' } } },
    /** Gone, and the alert on it is not over yet. */
    reaped: { after: { clear: 'forgotten' } },
    forgotten: { type: 'final' },
  },
});

/** A run of this process, named as a CronJob names its Jobs: by the minute. */
function ownRun(name: string, at: number): JobContext {
  const run = `${name}-${Math.floor(at / MINUTE_MS)}`;
  return { source: 'own', namespace: OWN_NAMESPACE, name: run, job: name, startedAt: at, seenAt: at };
}

function ending(context: JobContext, event: Extract<JobEvent, { type: 'ENDED' }>): Partial<JobContext> {
  const begun = context.name === '' ? ownRun(event.job, event.at) : {};
  const { at, outcome, text = '' } = event;
  if (outcome === 'succeeded') return { ...begun, ...over(at), cause: undefined };
  const kind = event.cause === 'exit' || event.cause === 'deadline' ? event.cause : 'unknown';
  return { ...begun, ...over(at), cause: caused(kind, text || 'it does not say why') };
}

function over(endedAt: number): { endedAt: number; seenAt: number; retention: Retention } {
  const text = `its TTL of ${TTL_MS / 1_000} s takes it away`;
  const at = Number.isFinite(endedAt) ? endedAt : 0;
  return { endedAt: at, seenAt: at, retention: { why: 'ttl', text, until: at + TTL_MS } };
}

function seen(context: JobContext, facts: JobFacts, at: number): Partial<JobContext> {
  const { namespace, name, phase, createdAt, endedAt, owner } = facts;
  const pod = joined(context.pod, facts.pod);
  return {
    source: 'cluster',
    namespace,
    name,
    job: owner?.name,
    startedAt: createdAt,
    endedAt,
    seenAt: at,
    pod,
    cause: phase === 'failed' ? classify(facts, pod) : undefined,
    retention: phase === 'failed' ? retention(facts, at) : undefined,
  };
}

function caused(kind: CauseKind, text: string): Cause {
  return { kind, text };
}
