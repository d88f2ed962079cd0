import test from 'ava';
import { z } from 'zod';
import { Bus } from '../../../../src/bus/bus.ts';
import { defineTopic } from '../../../../src/bus/topic.ts';
import { startSchedules } from '../../../../src/core/host/runtime/schedules.ts';
import { newCorrelation } from '../../../../src/core/kernel/clock.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;
const due = defineTopic('test.due', z.object({}), 'A test.');

/** A schedule, and how long it was truly since the start at each of its runs. */
function scheduled(cron: string, from: string) {
  const clock = new VirtualClock(Date.parse(`2026-06-01T${from}:00Z`));
  const bus = new Bus(newCorrelation);
  const runs: { readonly after: number; readonly wall: string }[] = [];
  bus.subscribe(due, 'test', () => {
    runs.push({ after: clock.monotonic(), wall: new Date(clock.now()).toISOString().slice(11, 16) });
  });
  let jumped = () => {};
  const stop = startSchedules([{ owner: 'test', cron, topic: due }], bus, clock, (listener) => {
    jumped = listener;
  });
  return {
    runs,
    stop,
    clock,
    set(ms: number) {
      clock.set(ms);
      jumped();
    },
  };
}

test('[C3] a schedule follows a clock that is set, so that it runs at its time of the day', (t) => {
  const { runs, clock, set } = scheduled('0 3 * * *', '12:00');
  set(2 * HOUR);
  clock.jump(13 * HOUR);
  set(-4 * HOUR);
  clock.jump(DAY);
  t.deepEqual(
    runs.map(({ wall }) => wall),
    ['03:00'],
    'and not a second time, four hours later',
  );
  clock.jump(DAY);
  t.deepEqual(
    runs.map(({ wall }) => wall),
    ['03:00', '03:00'],
  );
});

test('[C3] a schedule whose time a clock passed over when it was set runs at once, and only once', (t) => {
  const { runs, clock, set } = scheduled('0 3 * * *', '02:30');
  set(HOUR);
  t.deepEqual(runs, [{ after: 0, wall: '03:30' }]);
  clock.jump(10 * MINUTE);
  set(-HOUR);
  clock.jump(DAY);
  t.is(runs.length, 1, 'its time comes again by the clock that is right');
  clock.jump(HOUR);
  t.is(runs.length, 2);
});

for (const by of [YEAR, -YEAR, HOUR, -HOUR]) {
  for (const cron of ['0 3 * * *', '*/5 * * * *', '17 * * * *', '0 3 * * 1']) {
    test(`[C3] ${cron} with a clock that is set by ${by / HOUR} h at any time, and back: half an interval to one and a half lie between its runs`, (t) => {
      const interval = {
        '0 3 * * *': DAY,
        '*/5 * * * *': 5 * MINUTE,
        '17 * * * *': HOUR,
        '0 3 * * 1': 7 * DAY,
      }[cron] as number;
      for (let part = 0; part < 12; part += 1) {
        const { runs, clock, set, stop } = scheduled(cron, '03:00');
        clock.jump(2 * interval + (part * interval) / 12);
        set(by);
        clock.jump(interval / 3);
        set(-by);
        clock.jump(4 * interval);
        stop();
        const between = runs.slice(1).map(({ after }, index) => after - (runs[index]?.after ?? 0));
        for (const ms of between)
          t.true(ms >= interval / 2 && ms <= interval * 1.5, `${part}: ${ms / interval}`);
        t.true(runs.length >= 5, `${part}: ${runs.length} runs`);
        t.is(clock.armed, 0);
      }
    });
  }
}
