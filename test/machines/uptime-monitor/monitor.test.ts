import test from 'ava';
import fc from 'fast-check';
import { elapsed, given } from '../../../src/core/host/testing/index.ts';
import { MachineStepper, type Step } from '../../../src/core/kernel/actors/xstate.ts';
import { TIMER_CANCEL, TIMER_START } from '../../../src/core/kernel/log/record.ts';
import {
  CHANGES_KEPT,
  type MonitorContext,
  RESTARTS_FORGIVEN,
} from '../../../src/machines/uptime-monitor/diagnosis.ts';
import { monitor } from '../../../src/machines/uptime-monitor/monitor.ts';
import { runs } from '../../support/runs.ts';

const settings = {
  name: 'clickstack-watchdog',
  title: 'Watchdog',
  slug: 'clickstack-watchdog',
  intervalMs: 300_000,
  graceMs: 300_000,
  remindMs: 3_600_000,
};
const T = 1_000_000;
const watch = { type: 'WATCH', at: T, settings } as const;
const beat = (at: number, msg = 'stale=4s drift=0') => ({ type: 'BEAT', at, up: true, msg }) as const;
const labels = { monitor: 'clickstack-watchdog', slug: 'clickstack-watchdog' };
const firing = (text: string, more = {}) => ({
  type: 'alerts.raise',
  params: {
    name: 'uptime-monitor.down',
    severity: 'critical',
    text,
    labels: { ...labels, state: 'firing', ...more },
  },
});
const resolved = (text: string) => ({
  type: 'alerts.raise',
  params: { name: 'uptime-monitor.down', severity: 'info', text, labels: { ...labels, state: 'resolved' } },
});
const silent =
  'Watchdog is DOWN: no beat for 10 min; nothing says why: the sender, or its connection to this monitor, may be gone; the last good beat said: stale=4s drift=0.';

test('[O16] a monitor is late after its interval and DOWN after two missed beats, and a beat brings it back', (t) => {
  given(monitor, { input: settings, events: [watch] })
    .initially({ state: 'waiting', timers: { overdue: 300_000 } })
    .when(beat(T + 5))
    .then({ state: 'up', timers: { overdue: 300_000 }, context: { since: T + 5, beats: 1 } })
    .when(elapsed('overdue'))
    .then({ state: 'late', timers: { lost: 300_000 }, context: { since: T + 300_005 } })
    .when(elapsed('lost'))
    .then({
      state: { down: 'notified' },
      effects: [firing(silent)],
      timers: { reminder: 3_600_000 },
      context: { since: T + 600_005 },
    })
    .when(beat(T + 700_000))
    .then({
      state: 'up',
      effects: [resolved('Watchdog beats again.')],
      timers: { overdue: 300_000 },
      context: { since: T + 700_000, reminders: 0, trouble: undefined },
    });
  t.pass();
});

test('[O16] a late beat is none that anybody is told of, and silence from the first moment is', (t) => {
  given(monitor, { input: settings, events: [watch, beat(T)] })
    .when(elapsed('overdue'))
    .then({ state: 'late', timers: { lost: 300_000 } })
    .when(beat(T + 301_000))
    .then({ state: 'up', timers: { overdue: 300_000 } });
  given(monitor, { input: settings, events: [watch] })
    .when(elapsed('overdue'))
    .then({ state: 'late', timers: { lost: 300_000 } })
    .when(elapsed('lost'))
    .then({
      state: { down: 'notified' },
      effects: [
        firing(
          'Watchdog is DOWN: no beat has ever come, and one is due every 5 min; nothing says why: the sender, or its connection to this monitor, may be gone.',
        ),
      ],
      timers: { reminder: 3_600_000 },
    });
  t.pass();
});

test('[O16] the absence is joined with what the last run came to: checks, delivery or kill', (t) => {
  const cases = {
    unhealthy: 'its last run was made, and found: database unreachable',
    undelivered: 'its last run was healthy, and its push did not arrive: database unreachable',
    killed: 'its last run did not end by itself: database unreachable',
  } as const;
  for (const [outcome, words] of Object.entries(cases)) {
    const trouble = { at: T + 9, outcome: outcome as keyof typeof cases, text: 'database unreachable' };
    given(monitor, { input: settings, events: [watch, beat(T), { type: 'TROUBLE', trouble }] })
      .when(elapsed('overdue'))
      .then({ state: 'late', timers: { lost: 300_000 } })
      .when(elapsed('lost'))
      .then({
        state: { down: 'notified' },
        effects: [
          firing(
            `Watchdog is DOWN: no beat for 10 min; ${words}; the last good beat said: stale=4s drift=0.`,
          ),
        ],
        timers: { reminder: 3_600_000 },
      });
  }
  t.pass();
});

test("[O16] the sender's own down counts at once", (t) => {
  given(monitor, { input: settings, events: [watch, beat(T)] })
    .when({ type: 'BEAT', at: T + 9, up: false, msg: 'disk full' })
    .then({
      state: { down: 'notified' },
      effects: [firing('Watchdog is DOWN: the sender says it is down: disk full.')],
      timers: { reminder: 3_600_000 },
      context: { since: T + 9 },
    });
  t.pass();
});

test('[O16] reminders come at their spacing, and an acknowledgement holds them back until it is over', (t) => {
  const again = (count: number) =>
    firing(silent.replace('is DOWN', `is still DOWN (reminder ${count})`), { reminder: String(count) });
  given(monitor, { input: settings, events: [watch, beat(T), elapsed('overdue'), elapsed('lost')] })
    .when(elapsed('reminder'))
    .then({ state: { down: 'notified' }, effects: [again(1)], timers: { reminder: 3_600_000 } })
    .when({ type: 'ACK', at: T + 1, by: 'ann', forMs: 7_200_000 })
    .then({ state: { down: 'acknowledged' }, timers: { acknowledged: 7_200_000 } })
    .when({ type: 'ACK', at: T + 2, by: 'ann', note: 'still', forMs: 60_000 })
    .then({ state: { down: 'acknowledged' }, timers: { acknowledged: 60_000 } })
    .when(elapsed('acknowledged'))
    .then({
      state: { down: 'notified' },
      effects: [again(2)],
      timers: { reminder: 3_600_000 },
      context: { ack: undefined },
    });
  given(monitor, { input: settings, events: [watch, beat(T)] })
    .when({ type: 'ACK', at: T, by: 'ann', forMs: 60_000 })
    .then({ state: 'up', ignored: true, timers: { overdue: 300_000 } });
  t.pass();
});

test('[O16] a paused monitor hears nothing and tells nobody; what was told is taken back', (t) => {
  given(monitor, { input: settings, events: [watch, beat(T), elapsed('overdue'), elapsed('lost')] })
    .when({ type: 'PAUSE', at: T + 1, by: 'ann' })
    .then({ state: 'paused', effects: [resolved('Watchdog was paused by ann.')], timers: {} })
    .when(beat(T + 2))
    .then({ state: 'paused', ignored: true, timers: {} })
    .when({ type: 'UNPAUSE', at: T + 3, by: 'ann' })
    .then({ state: 'waiting', timers: { overdue: 300_000 }, context: { since: T + 3 } })
    .when({ type: 'RELEASE', at: T + 4 })
    .then({ state: 'released', timers: {} })
    .when(watch)
    .then({ state: 'waiting', timers: { overdue: 300_000 } });
  t.pass();
});

test('[O16] an own restart gives a silence its time again, but not for ever', (t) => {
  const at = T + 900_000;
  given(monitor, { input: settings, events: [watch, beat(T)] })
    .when({ ...watch, at })
    .then({ state: 'up', timers: { overdue: 300_000 }, context: { restarts: 1, since: T } });
  const short = { ...settings, graceMs: 500 };
  given(monitor, {
    input: short,
    events: [{ ...watch, settings: short }, beat(T), elapsed('overdue')],
  })
    .when({ type: 'WATCH', at, settings: short })
    .then({ state: 'late', timers: { lost: 300_000 }, context: { restarts: 1 } });
  given(monitor, { input: short, events: [{ ...watch, settings: short }, beat(T)] })
    .when({ type: 'WATCH', at, settings: short })
    .then({ state: 'up', timers: { overdue: 300_000 }, context: { restarts: 1, lateMs: 500 } });
  const restarts = Array.from({ length: RESTARTS_FORGIVEN }, (_, n) => ({ ...watch, at: at + n }));
  given(monitor, { input: settings, events: [watch, beat(T), ...restarts] })
    .when({ ...watch, at: at + 99_000 })
    .then({ state: 'up', timers: { overdue: 300_000 }, context: { armedAt: at + 2 } });
  given(monitor, { input: settings, events: [watch, beat(T), elapsed('overdue'), elapsed('lost')] })
    .when({ ...watch, at })
    .then({ state: { down: 'notified' }, timers: { reminder: 3_600_000 } });
  t.pass();
});

test('[O16] who is told of a silence reads that the monitor itself was restarted meanwhile, once or more', (t) => {
  for (const count of [1, 2]) {
    const restarts = Array.from({ length: count }, (_, n) => ({ ...watch, at: T + 1 + n }));
    given(monitor, { input: settings, events: [watch, beat(T), ...restarts] })
      .when(elapsed('overdue'))
      .then({ state: 'late', timers: { lost: 300_000 } })
      .when(elapsed('lost'))
      .then({
        state: { down: 'notified' },
        effects: [
          firing(silent.replace(/\.$/, `; this monitor itself was restarted meanwhile (${count}×).`)),
        ],
        timers: { reminder: 3_600_000 },
      });
  }
  t.pass();
});

type Deed =
  | { do: 'beat'; up: boolean }
  | { do: 'wait'; ms: number }
  | { do: 'restart' | 'pause' | 'unpause' | 'ack' | 'trouble' };

test('[O16] whatever happens: silence is told once within its time, every alert has its end, and memory is bounded', (t) => {
  const deed: fc.Arbitrary<Deed> = fc.oneof(
    fc.record({ do: fc.constant('beat' as const), up: fc.boolean() }),
    fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom(1_000, 250_000, 301_000, 650_000) }),
    fc.record({
      do: fc.constantFrom(
        'restart' as const,
        'pause' as const,
        'unpause' as const,
        'ack' as const,
        'trouble' as const,
      ),
    }),
  );
  const stepper = new MachineStepper(monitor);
  t.notThrows(() =>
    fc.assert(
      fc.property(fc.array(deed, { maxLength: 60, size: 'max' }), (deeds) => {
        let now = T;
        let step: Step = stepper.initial(settings);
        let isFiring = false;
        const timers = new Map<string, number>();
        const take = (): void => {
          for (const { type, params } of step.effects) {
            const { timer, delayMs, labels } = params as any;
            if (type === TIMER_START) timers.set(timer, now + delayMs);
            else if (type === TIMER_CANCEL) timers.delete(timer);
            else if (labels.reminder) {
              if (!isFiring) throw new Error('a reminder of nothing');
            } else {
              if (isFiring === (labels.state === 'firing')) throw new Error(`told ${labels.state} twice`);
              isFiring = labels.state === 'firing';
            }
          }
        };
        const send = (event: object): void => {
          step = stepper.next(step.snapshot, event as never);
          take();
          const context = step.context as MonitorContext;
          if (context.changes.length > CHANGES_KEPT) throw new Error('changes grow');
          const isDown = typeof step.value === 'object';
          if (isDown !== isFiring) throw new Error(`${JSON.stringify(step.value)} and firing is ${isFiring}`);
          if (['waiting', 'up', 'late'].includes(String(step.value)) && timers.size !== 1) {
            throw new Error('nobody waits for its silence');
          }
        };
        const wait = (ms: number): void => {
          const end = now + ms;
          for (;;) {
            const [timer, due] = [...timers].sort(([, one], [, other]) => one - other)[0] ?? [];
            if (timer === undefined || due === undefined || due > end) break;
            now = due;
            timers.delete(timer);
            send({ type: timer });
          }
          now = end;
        };
        take();
        send({ type: 'WATCH', at: now, settings });
        for (const each of deeds) {
          if (each.do === 'wait') wait(each.ms);
          else if (each.do === 'beat') send({ type: 'BEAT', at: now, up: each.up, msg: 'm' });
          else if (each.do === 'restart') send({ type: 'WATCH', at: now, settings });
          else if (each.do === 'pause') send({ type: 'PAUSE', at: now, by: 'a' });
          else if (each.do === 'unpause') send({ type: 'UNPAUSE', at: now, by: 'a' });
          else if (each.do === 'ack') send({ type: 'ACK', at: now, by: 'a', forMs: 60_000 });
          else send({ type: 'TROUBLE', trouble: { at: now, outcome: 'killed', text: 'x' } });
        }
        if (step.value === 'paused') return;
        // From here on there is silence.
        wait(600_000);
        if (!isFiring) throw new Error('silence was read as health');
        send({ type: 'BEAT', at: now, up: true, msg: 'm' });
        if (isFiring || step.value !== 'up') throw new Error('a beat did not bring it back');
      }),
      { numRuns: runs(500) },
    ),
  );
});
