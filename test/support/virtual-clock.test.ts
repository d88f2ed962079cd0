import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { VirtualClock } from './virtual-clock.ts';

test('virtual time fires timers at their due time, in order of due time and then of arming', async (t) => {
  const clock = new VirtualClock(1000);
  const fired: [string, number][] = [];
  const note = (name: string) => () => fired.push([name, clock.now()]);
  t.is(clock.untilNext, undefined);
  clock.after(20, note('b'));
  clock.after(10, note('a'));
  t.is(clock.untilNext, 10);
  clock.after(20, note('c'));
  clock.after(21, note('late'));

  await clock.advance(20);

  t.deepEqual(fired, [
    ['a', 1010],
    ['b', 1020],
    ['c', 1020],
  ]);
  t.is(Number(clock.now()), 1020);
  t.is(clock.armed, 1);
  t.is(clock.untilNext, 1);
});

test('virtual time unfolds awaits between timers, and a cancelled timer never fires', async (t) => {
  const clock = new VirtualClock(0);
  const seen: number[] = [];
  const wait = (ms: number) => new Promise<void>((resolve) => clock.after(ms, resolve));
  const work = async () => {
    for (let i = 0; i < 3; i += 1) {
      await wait(10);
      seen.push(clock.now());
    }
  };
  const done = work();
  const cancel = clock.after(15, () => seen.push(-1));
  cancel();

  await clock.advance(30);
  await done;

  t.deepEqual(seen, [10, 20, 30]);
  t.is(clock.armed, 0);
});

test('a synchronous jump fires timers that callbacks arm on the way', (t) => {
  const clock = new VirtualClock(0);
  const seen: number[] = [];
  clock.after(5, () => {
    seen.push(clock.now());
    clock.after(5, () => seen.push(clock.now()));
  });
  clock.jump(10);
  t.deepEqual(seen, [5, 10]);
});

test('a timer that arms itself anew without a delay is reported instead of hanging the test', (t) => {
  const clock = new VirtualClock(0);
  const again = () => void clock.after(0, again);
  clock.after(0, again);
  t.throws(() => clock.jump(1), { message: /more than 100000 timers/ });
});

test('virtual time passes until work that waits for it has ended, or failed', async (t) => {
  const clock = new VirtualClock(0);
  const wait = (ms: number) => new Promise<void>((resolve) => clock.after(ms, resolve));
  const outside = async () => {
    await delay(5);
    await wait(350);
    await delay(5);
    return wait(50).then(() => 'done');
  };
  t.is(await clock.passUntil(outside()), 'done');
  t.true(clock.now() >= 400);
  const failed = clock.passUntil(wait(10).then(() => Promise.reject(new Error('refused'))));
  await t.throwsAsync(failed, { message: 'refused' });
  const before = clock.now();
  t.is(await clock.passUntil(Promise.resolve('now')), 'now');
  t.is(clock.now(), before, 'no time passes for what needs none');
});
