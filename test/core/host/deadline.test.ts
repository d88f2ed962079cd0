import test from 'ava';
import { endsWithin, unlessAborted, withDeadline } from '../../../src/core/host/deadline.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const never = new Promise<string>(() => {});
const late = () => new Error('too late');

test('work that ends in time gives what it gives, and leaves no timer', async (t) => {
  const clock = new VirtualClock();
  t.is(await withDeadline({ ms: 1_000, clock, late }, async () => 'done'), 'done');
  const failing = withDeadline({ ms: 1_000, clock, late }, () => Promise.reject(new Error('broken')));
  await t.throwsAsync(failing, { message: 'broken' });
  t.is(clock.armed, 0);
});

test('work that ignores its signal is given up at the deadline, and its signal is aborted', async (t) => {
  const clock = new VirtualClock();
  let given: AbortSignal | undefined;
  const waiting = withDeadline({ ms: 1_000, clock, late }, (signal) => {
    given = signal;
    return never;
  });
  const refused = t.throwsAsync(waiting, { message: 'too late' });
  await clock.advance(999);
  t.false(given?.aborted);
  await clock.advance(1);
  await refused;
  t.true(given?.aborted);
});

test('the deadline is what a caller hears, not what the work makes of its signal', async (t) => {
  const clock = new VirtualClock();
  const work = (signal: AbortSignal) =>
    new Promise<never>((_, reject) =>
      signal.addEventListener('abort', () => reject(new Error('socket hang up'))),
    );
  const refused = t.throwsAsync(withDeadline({ ms: 1_000, clock, late }, work), { message: 'too late' });
  await clock.advance(1_000);
  await refused;
});

test('a signal gives the work up before the deadline, or keeps it from beginning', async (t) => {
  const clock = new VirtualClock();
  const stop = new AbortController();
  const { signal } = stop;
  const refused = t.throwsAsync(
    withDeadline({ ms: 1_000, clock, late, signal }, () => never),
    { message: 'stopped' },
  );
  stop.abort(new Error('stopped'));
  await refused;
  t.is(clock.armed, 0);
  let began = false;
  const work = async () => {
    began = true;
  };
  await t.throwsAsync(withDeadline({ ms: 1_000, clock, late, signal }, work), { message: 'stopped' });
  t.false(began);
});

test('a wait that is given up says so once, also when the signal was aborted before', async (t) => {
  const stop = new AbortController();
  let calls = 0;
  const count = () => {
    calls += 1;
  };
  const waiting = unlessAborted(never, stop.signal, count);
  stop.abort(new Error('stopped'));
  await t.throwsAsync(waiting, { message: 'stopped' });
  await t.throwsAsync(unlessAborted(never, stop.signal, count), { message: 'stopped' });
  t.is(calls, 2);
  t.is(await unlessAborted(Promise.resolve('done'), new AbortController().signal), 'done');
});

test('a bounded wait says whether the work ended in time, and throws what it threw', async (t) => {
  t.true(await endsWithin(60_000, Promise.resolve()));
  t.false(await endsWithin(1, never));
  await t.throwsAsync(endsWithin(60_000, Promise.reject(new Error('broken'))), { message: 'broken' });
});
