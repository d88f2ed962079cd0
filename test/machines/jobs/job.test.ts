import test from 'ava';
import fc from 'fast-check';
import { elapsed, given } from '../../../src/core/host/testing/index.ts';
import type { JobFacts, PodFacts } from '../../../src/machines/jobs/failure.ts';
import { classify, clearsAfter, joinPods, retention } from '../../../src/machines/jobs/failure.ts';
import { job } from '../../../src/machines/jobs/job.ts';
import { runs } from '../../support/runs.ts';

const HOUR = 3_600_000;
const facts = (more: Partial<JobFacts> = {}): JobFacts => ({
  namespace: 'stack',
  name: 'watchdog-1',
  phase: 'failed',
  createdAt: 0,
  endedAt: 10_000,
  ...more,
});
const pod = (more: Partial<PodFacts> = {}): PodFacts => ({ name: 'watchdog-1-a', ran: true, ...more });

test('[O13] the five ways to die are told apart, and what was not seen is an unknown kill', (t) => {
  const backoff = facts({ reason: 'BackoffLimitExceeded' });
  const late = facts({ reason: 'DeadlineExceeded' });
  const kind = (of: JobFacts, seen?: PodFacts) => classify(of, seen).kind;
  t.is(kind(backoff, pod({ exitCode: 1, ended: 'Error' })), 'exit');
  t.is(kind(backoff, pod({ exitCode: 137, ended: 'OOMKilled' })), 'oom');
  t.is(kind(backoff, pod({ reason: 'Evicted', exitCode: 137 })), 'eviction');
  t.is(kind(late, pod()), 'deadline');
  t.is(kind(late, pod({ exitCode: 143 })), 'deadline');
  t.is(kind(late, pod({ ran: false, waiting: 'ImagePullBackOff' })), 'image');
  t.is(kind(backoff, pod({ exitCode: 124 })), 'deadline');
  t.is(kind(late), 'unknown');
  t.is(kind(late, pod({ ran: false, waiting: 'ContainerCreating' })), 'unknown');
  t.is(kind(backoff), 'unknown');
  t.is(kind(facts()), 'unknown');
  t.regex(classify(backoff, pod({ exitCode: 137, ended: 'Error' })).text, /nobody wrote OOMKilled/);
});

test('[O13] what a pod showed stays known when it shows less, or is gone', (t) => {
  const early = pod({ ran: false, waiting: 'ErrImagePull', phase: 'Pending' });
  t.is(joinPods(early, undefined), early);
  t.like(joinPods(early, pod({ ran: false, phase: 'Pending' })), { waiting: 'ErrImagePull', ran: false });
  t.like(joinPods(pod(), pod({ ran: false, exitCode: 143 })), { ran: true, exitCode: 143 });
  t.like(joinPods(early, pod({ name: 'another' })), { name: 'another', ran: true });
});

test('[O13] a sample of a pod that vanished with its Job still tells the image from the deadline', (t) => {
  const seen = { type: 'OBSERVED', at: 1_000 } as const;
  const active = facts({ phase: 'active', endedAt: undefined });
  const late = facts({ reason: 'DeadlineExceeded', ttlSeconds: 300 });
  for (const [known, kind] of [
    [pod({ ran: false, waiting: 'ImagePullBackOff' }), 'image'],
    [pod(), 'deadline'],
  ] as const) {
    given(job)
      .when({ ...seen, facts: { ...active, pod: known } })
      .then({ state: 'active' })
      .when({ ...seen, at: 20_000, facts: late })
      .then({ state: 'failed', timers: { ttl: 290_000 } })
      .when({ type: 'GONE', at: 310_000 })
      .then({ state: 'reaped', timers: { clear: 2 * HOUR - 310_000 }, context: { clearsAt: 2 * HOUR } })
      .when(elapsed('clear'))
      .then({ state: 'forgotten', timers: {} });
    t.is(classify(late, known).kind, kind);
  }
});

test('[O19] an old failed Job says why it is still there, and what takes it away', (t) => {
  const owner = { name: 'watchdog', ttlSeconds: 300, failedLimit: 1, newerFailed: 0 };
  t.like(retention(facts({ ttlSeconds: 300 }), 20_000), { why: 'ttl', until: 310_000 });
  t.is(retention(facts({ ttlSeconds: 300 }), 400_000).why, 'ttl-overdue');
  const older = retention(facts({ owner }), 400_000);
  t.is(older.why, 'older-than-ttl');
  t.regex(
    older.text,
    /only for Jobs made after; failedJobsHistoryLimit 1 of watchdog keeps it until there is a newer failed Job/,
  );
  t.regex(older.text, /delete it by hand: kubectl delete job -n stack watchdog-1$/);
  t.regex(retention(facts(), 0).text, /it has no TTL; no CronJob owns it/);
  t.regex(retention(facts({ owner: { ...owner, newerFailed: 1 } }), 0).text, /no longer keeps it/);
  given(job)
    .when({ type: 'OBSERVED', at: 20_000, facts: facts({ ttlSeconds: 300 }) })
    .then({ state: 'failed', timers: { ttl: 290_000 } })
    .when(elapsed('ttl'))
    .then({ state: 'retained', timers: {} })
    .when({ type: 'OBSERVED', at: 400_000, facts: facts({ owner }) })
    .then({ state: 'retained', timers: {} });
});

test('[O19] the alert on a Job that is gone ends only after a whole hour of the clock without it', (t) => {
  t.is(clearsAfter(20 * 60_000), 2 * HOUR);
  fc.assert(
    fc.property(fc.nat(1e12), (at) => {
      const clears = clearsAfter(at);
      t.is(clears % HOUR, 0);
      t.true(clears - at > HOUR && clears - at <= 2 * HOUR);
    }),
    { numRuns: runs(200) },
  );
});

test('[O13,O19] a run of our own: it is reaped by its TTL, and one whose process ended is an unknown kill', (t) => {
  const started = { type: 'STARTED', at: 60_000, job: 'watchdog' } as const;
  const ended = { type: 'ENDED', at: 70_000, job: 'watchdog' } as const;
  given(job, { events: [started] })
    .when({ ...ended, outcome: 'failed', cause: 'exit', text: 'PUSH DELIVERY FAILED' })
    .then({ state: 'failed', timers: { ttl: 300_000 }, context: { name: 'watchdog-1', source: 'own' } })
    .when(elapsed('ttl'))
    .then({ state: 'reaped', timers: { clear: 2 * HOUR - 370_000 } });
  given(job, { events: [started] })
    .when({ type: 'ORPHANED', at: 90_000 })
    .then({
      state: 'failed',
      timers: { ttl: 300_000 },
      context: { cause: { kind: 'unknown', text: 'unknown kill: the process ended while it ran' } },
    });
  given(job, { events: [started] })
    .when({ ...ended, outcome: 'succeeded' })
    .then({ state: 'succeeded', timers: { ttl: 300_000 } })
    .when(elapsed('ttl'))
    .then({ state: 'forgotten', timers: {} });
  t.pass();
});
