import test from 'ava';
import { RecurringWork } from '../../../src/core/host/recurring-work.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

interface Rig {
  readonly clock: VirtualClock;
  readonly work: RecurringWork<number>;
  /** When runs began, milliseconds since the start. */
  readonly began: number[];
  readonly failures: number[];
  /** Ends the run that is under way. */
  end(error?: Error): void;
}

function rig(times: { readonly firstMs?: number; readonly everyMs?: number } = {}): Rig {
  const clock = new VirtualClock();
  const began: number[] = [];
  const failures: number[] = [];
  let run = Promise.withResolvers<number>();
  const work = new RecurringWork({
    ...times,
    clock,
    retryMs: (failed) => failed * 100,
    work(signal) {
      began.push(clock.monotonic());
      run = Promise.withResolvers<number>();
      signal.addEventListener('abort', () => run.reject(signal.reason), { once: true });
      return run.promise;
    },
    onFailure: (_error, failed) => failures.push(failed),
  });
  const end = (error?: Error) => (error ? run.reject(error) : run.resolve(began.length));
  return { clock, work, began, failures, end };
}

test('work begins after its first delay, and again so long after each end', async (t) => {
  const { clock, began, end } = rig({ firstMs: 50, everyMs: 1_000 });
  await clock.advance(49);
  t.deepEqual(began, []);
  await clock.advance(1);
  t.deepEqual(began, [50]);
  await clock.advance(5_000);
  t.deepEqual(began, [50], 'one at a time');
  end();
  await clock.advance(1_000);
  t.deepEqual(began, [50, 6_050]);
});

test('a run that failed is told and tried again, later with each failure, until one succeeds', async (t) => {
  const { clock, began, failures, end } = rig({ firstMs: 0, everyMs: 10_000 });
  await clock.advance(0);
  end(new Error('broken'));
  await clock.advance(100);
  t.deepEqual(began, [0, 100]);
  end(new Error('broken'));
  await clock.advance(199);
  t.is(began.length, 2);
  await clock.advance(1);
  t.deepEqual(failures, [1, 2]);
  end();
  await clock.advance(10_000);
  t.deepEqual(began, [0, 100, 300, 10_300]);
  end(new Error('broken'));
  await clock.advance(0);
  t.deepEqual(failures, [1, 2, 1], 'a success starts the count anew');
});

test('work that throws before it awaits anything is tried again, too', async (t) => {
  const clock = new VirtualClock();
  let runs = 0;
  const work = new RecurringWork<void>({
    ...{ clock, firstMs: 0, retryMs: () => 100, onFailure: () => {} },
    work() {
      runs += 1;
      throw new Error('broken');
    },
  });
  await clock.advance(100);
  t.is(runs, 2);
  await work.stop();
});

test('a run that is asked for comes in place of the next, and is shared with whoever asks meanwhile', async (t) => {
  const { clock, work, began, end } = rig({ firstMs: 500, everyMs: 1_000 });
  t.true(work.isDue);
  const runs = [work.run(), work.run()];
  t.false(work.isDue);
  await clock.advance(0);
  end();
  t.deepEqual(await Promise.all(runs), [1, 1]);
  await clock.advance(999);
  t.deepEqual(began, [0]);
  await clock.advance(1);
  t.deepEqual(began, [0, 1_000]);
});

test('without times of its own it runs only when asked, and again after a failure', async (t) => {
  const { clock, work, began, end } = rig();
  await clock.advance(1_000_000);
  t.deepEqual(began, []);
  const failing = t.throwsAsync(work.run(), { message: 'broken' });
  end(new Error('broken'));
  await failing;
  t.true(work.isDue);
  await clock.advance(100);
  end();
  await clock.advance(1_000_000);
  t.is(began.length, 2);
});

test('a stop ends what is under way without telling a failure, and begins nothing new', async (t) => {
  const { clock, work, began, failures } = rig({ firstMs: 0, everyMs: 1_000 });
  await clock.advance(0);
  await work.stop();
  await clock.advance(1_000_000);
  t.deepEqual([began, failures], [[0], []]);
  t.is(clock.armed, 0);
  await t.throwsAsync(work.run());
  t.is(began.length, 1);
});

test('a stop between two runs leaves no timer', async (t) => {
  const { clock, work, began, end } = rig({ firstMs: 0, everyMs: 1_000 });
  await clock.advance(0);
  end();
  await clock.advance(0);
  t.is(clock.armed, 1);
  await work.stop();
  t.is(clock.armed, 0);
  t.deepEqual(began, [0]);
});
