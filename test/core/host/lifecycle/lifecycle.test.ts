import test from 'ava';
import fc from 'fast-check';
import { transition } from 'xstate';
import {
  type LifecycleContext,
  type LifecycleEvent,
  lifecycle,
} from '../../../../src/core/host/lifecycle/machine.ts';
import { HOST } from '../../../../src/core/host/lifecycle/records.ts';
import { lifecycleActor } from '../../../../src/core/host/lifecycle/run.ts';
import { given, impurities } from '../../../../src/core/host/testing/index.ts';
import { openBench } from '../../../support/actors.ts';
import { tempDir } from '../../../support/temp.ts';

const first = { pid: 10, startedAt: 1_000, version: '1.0.0' };
const second = { pid: 20, startedAt: 2_000, version: '1.1.0' };
const booted = (run: typeof first): LifecycleEvent => ({ type: 'BOOTED', ...run });
const stopping: LifecycleEvent = { type: 'STOPPING', reason: 'SIGTERM', stoppedAt: 1_500 };

test('[C3] the machine of the lifecycle uses nothing that replay could not repeat', (t) => {
  t.deepEqual(impurities(lifecycle), []);
});

test('[R29] the first start has no run before it', (t) => {
  t.notThrows(() =>
    given(lifecycle)
      .initially({ state: 'new', context: { runs: 0 } })
      .when(booted(first))
      .then({ state: 'running', context: { runs: 1, current: first, last: undefined, ending: undefined } }),
  );
});

test('[R29] a run that said why it stopped is remembered with its reason', (t) => {
  t.notThrows(() =>
    given(lifecycle, { events: [booted(first)] })
      .when(stopping)
      .then({ state: 'stopped', context: { current: first, last: undefined } })
      .when(booted(second))
      .then({
        state: 'running',
        context: {
          runs: 2,
          current: second,
          last: { ...first, reason: 'SIGTERM', stoppedAt: 1_500 },
          ending: undefined,
        },
      }),
  );
});

test('[R29] a run that never said so was killed', (t) => {
  t.notThrows(() =>
    given(lifecycle, { events: [booted(first)] })
      .when(booted(second))
      .then({
        state: 'running',
        context: { runs: 2, current: second, last: { ...first, reason: 'killed' } },
      }),
  );
});

test('[R29] a kill after a graceful stop is not told with the reason of that stop', (t) => {
  t.notThrows(() =>
    given(lifecycle, { events: [booted(first), stopping, booted(second)] })
      .when(booted(first))
      .then({ state: 'running', context: { runs: 3, last: { ...second, reason: 'killed' } } }),
  );
});

test('only a running runtime can stop', (t) => {
  t.notThrows(() => given(lifecycle).when(stopping).then({ state: 'new', ignored: true }));
  t.notThrows(() =>
    given(lifecycle, { events: [booted(first), stopping] })
      .when({ type: 'STOPPING', reason: 'again' })
      .then({ state: 'stopped', ignored: true }),
  );
});

test('[C9] the newest checkpoint is kept in every state', (t) => {
  const checkpoint = (seq: number) => ({ seq, digest: `d${seq}`, count: 3 });
  t.notThrows(() =>
    given(lifecycle)
      .when({ type: 'CHECKPOINT', ...checkpoint(5) })
      .then({ state: 'new', context: { checkpoint: checkpoint(5) } })
      .when(booted(first))
      .then({ state: 'running', context: { checkpoint: checkpoint(5) } })
      .when({ type: 'CHECKPOINT', ...checkpoint(9) })
      .then({ state: 'running', context: { checkpoint: checkpoint(9) } })
      .when(stopping)
      .then({ state: 'stopped' })
      .when({ type: 'CHECKPOINT', ...checkpoint(12) })
      .then({ state: 'stopped', context: { checkpoint: checkpoint(12) } }),
  );
});

const event = fc.oneof(
  fc
    .record({ pid: fc.nat(), startedAt: fc.nat(), version: fc.string() })
    .map((run): LifecycleEvent => ({ type: 'BOOTED', ...run })),
  fc.string().map((reason): LifecycleEvent => ({ type: 'STOPPING', reason })),
  fc.nat().map((seq): LifecycleEvent => ({ type: 'CHECKPOINT', seq, digest: 'd', count: 1 })),
);

test('[R29] whatever happens, the run before is told as it ended', (t) => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 30 }), (events) => {
      let snapshot: any = lifecycle.getInitialSnapshot({} as never);
      let current: { pid: number } | undefined;
      let reason: string | undefined;
      let runs = 0;
      for (const happened of events) {
        [snapshot] = transition(lifecycle, snapshot, happened);
        const context: LifecycleContext = snapshot.context;
        if (happened.type === 'STOPPING' && current) reason ??= happened.reason;
        if (happened.type === 'BOOTED') {
          runs += 1;
          t.is(context.last?.pid, current?.pid);
          t.is(context.last?.reason, current && (reason ?? 'killed'));
          current = happened;
          reason = undefined;
        }
        t.is(context.runs, runs);
        t.is(context.current?.pid, current?.pid);
      }
    }),
  );
});

test('[R29] a runtime that is killed says so at its next start, from the log alone', async (t) => {
  const dir = tempDir(t);
  const run = async (events: LifecycleEvent[]) => {
    const bench = await openBench(dir, [lifecycleActor]);
    for (const happened of events) bench.actors.deliver(HOST, happened as never);
    await bench.settled();
    const context = bench.actors.snapshot(HOST)?.context as unknown as LifecycleContext;
    await bench.close();
    return context;
  };
  t.is((await run([booted(first)])).last, undefined);
  t.like((await run([booted(second), stopping])).last, { ...first, reason: 'killed' });
  t.like((await run([booted(first)])).last, { ...second, reason: 'SIGTERM', stoppedAt: 1_500 });
});
