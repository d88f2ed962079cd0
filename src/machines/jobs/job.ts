import { assign, setup } from 'xstate';
import { classify, joined } from './classify.ts';
import {
  type Cause,
  type CauseKind,
  type JobContext,
  type JobEvent,
  type JobFacts,
  OWN_NAMESPACE,
  type Retention,
  TTL_MS,
} from './job-shapes.ts';
import { clearsAfter, retention } from './retention.ts';

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
