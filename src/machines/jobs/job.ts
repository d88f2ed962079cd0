import { assign, setup } from 'xstate';
import {
  type Cause,
  type CauseKind,
  classify,
  clearsAfter,
  type JobFacts,
  joinPods,
  type PodFacts,
  type Retention,
  retention,
} from './failure.ts';

export interface JobContext {
  /** Whether this process ran it, or a cluster. */
  readonly source: 'own' | 'cluster';
  readonly namespace: string;
  readonly name: string;
  /** The schedule that it is a run of, where one made it. */
  readonly job?: string | undefined;
  readonly startedAt: number;
  readonly endedAt?: number | undefined;
  /** When it was last seen. */
  readonly seenAt: number;
  /** Everything that its pod showed before it went away. */
  readonly pod?: PodFacts | undefined;
  readonly cause?: Cause | undefined;
  readonly retention?: Retention | undefined;
  readonly goneAt?: number | undefined;
  /** When the alert on it ends, once it is gone. */
  readonly clearsAt?: number | undefined;
}

export type JobEvent =
  /** `nth` of the runs of this job that began in the same minute, from 2 on. */
  | { type: 'STARTED'; at: number; job: string; nth?: number }
  | {
      type: 'ENDED';
      at: number;
      job: string;
      nth?: number;
      outcome: 'succeeded' | 'failed';
      cause?: string | undefined;
      text?: string | undefined;
    }
  /** The process that ran it has ended. */
  | { type: 'ORPHANED'; at: number }
  | { type: 'OBSERVED'; at: number; facts: JobFacts }
  | { type: 'GONE'; at: number };

/** `ttlSecondsAfterFinished` of the watchdog's Job, also for runs of this process. */
const TTL_MS = 300_000;
/** The namespace in which runs of this process are shown. */
const OWN_NAMESPACE = 'holdfast';

const MINUTE_MS = 60_000;

const ended = [
  { guard: 'succeeds', target: 'succeeded', actions: 'end' },
  { target: 'failed', actions: 'end' },
] as const;
const observed = [
  { guard: 'isActive', target: 'active', actions: 'observe' },
  { guard: 'isSucceeded', target: 'succeeded', actions: 'observe' },
  { guard: 'hasTime', target: 'failed', actions: 'observe' },
  { target: 'retained', actions: 'observe' },
] as const;

/**
 * One run of a schedule, of a cluster or of this process (O13, O19): how it ended and why, why it is still there, and
 * when the alert on it ends. That a run succeeded says nothing about what it checked.
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
    isSucceeded: ({ event }) => event.type === 'OBSERVED' && event.facts.phase === 'succeeded',
    hasTime: ({ event }) => event.type === 'OBSERVED' && retention(event.facts, event.at).until !== undefined,
  },
  actions: {
    begin: assign(({ event }) => (event.type === 'STARTED' ? ownRun(event) : {})),
    end: assign(({ context, event }) => (event.type === 'ENDED' ? endOf(context, event) : {})),
    orphan: assign(({ event }) =>
      event.type === 'ORPHANED'
        ? { ...endAt(event.at), cause: cause('unknown', 'unknown kill: the process ended while it ran') }
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
    lose: assign({ cause: cause('unseen', 'it was gone before its end was seen') }),
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

/** A run of this process, named as a CronJob names its Jobs: by the minute, and then by the number within it. */
function ownRun({ job, at, nth }: Extract<JobEvent, { readonly job: string }>): JobContext {
  const name = nth === undefined ? ownRunName(job, at) : `${ownRunName(job, at)}-${nth}`;
  return { source: 'own', namespace: OWN_NAMESPACE, name, job, startedAt: at, seenAt: at };
}

/** The name of the first run of a minute. @param at epoch milliseconds */
export function ownRunName(job: string, at: number): string {
  return `${job}-${Math.floor(at / MINUTE_MS)}`;
}

function endOf(context: JobContext, event: Extract<JobEvent, { type: 'ENDED' }>): Partial<JobContext> {
  const begun = context.name === '' ? ownRun(event) : {};
  const { at, outcome, text = '' } = event;
  if (outcome === 'succeeded') return { ...begun, ...endAt(at), cause: undefined };
  const kind = event.cause === 'exit' || event.cause === 'deadline' ? event.cause : 'unknown';
  return { ...begun, ...endAt(at), cause: cause(kind, text || 'it does not say why') };
}

function endAt(endedAt: number): { endedAt: number; seenAt: number; retention: Retention } {
  const text = `its TTL of ${TTL_MS / 1_000} s takes it away`;
  const at = Number.isFinite(endedAt) ? endedAt : 0;
  return { endedAt: at, seenAt: at, retention: { why: 'ttl', text, until: at + TTL_MS } };
}

function seen(context: JobContext, facts: JobFacts, at: number): Partial<JobContext> {
  const { namespace, name, phase, createdAt, endedAt, owner } = facts;
  const pod = joinPods(context.pod, facts.pod);
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

function cause(kind: CauseKind, text: string): Cause {
  return { kind, text };
}
