import test from 'ava';
import fc from 'fast-check';
import { elapsed, given } from '../../../src/core/host/testing/index.ts';
import { MachineStepper, type Step } from '../../../src/core/kernel/actors/xstate.ts';
import { TIMER_CANCEL, TIMER_START } from '../../../src/core/kernel/log/record.ts';
import { heartbeat } from '../../../src/machines/reconciler/heartbeat.ts';
import { runs } from '../../support/runs.ts';

const input = { monitor: 'router-ula', idleMs: 240_000, batchMs: 250, retryMs: 15_000 };
const push = (heard: number) => ({
  type: 'reconciler.push_heartbeat',
  params: { monitor: 'router-ula', heard },
});
const pushed = { type: 'PUSHED', at: 9, status: 200 } as const;

test('[R27] a beat follows news, a storm of them shares one, and quiet has one every 240 s', (t) => {
  given(heartbeat, { input, events: [elapsed('warmUp'), pushed] })
    .initially({ state: 'quiet', timers: { idle: 240_000 } })
    .when(elapsed('idle'))
    .then({ state: 'pushing', effects: [push(0)], timers: {} })
    .when(pushed)
    .then({ state: 'quiet', timers: { idle: 240_000 } })
    .when({ type: 'HEARD' })
    .then({ state: 'batching', timers: { batch: 250 } })
    .when({ type: 'HEARD' })
    .then({ state: 'batching', timers: { batch: 250 } })
    .when(elapsed('batch'))
    .then({ state: 'pushing', effects: [push(2)], timers: {}, context: { heard: 0 } })
    .when({ type: 'HEARD' })
    .then({ state: 'pushing', timers: {} })
    .when(pushed)
    .then({ state: 'batching', timers: { batch: 250 } });
  t.pass();
});

test('[R27] a beat that does not arrive is tried again, and its reason is kept', (t) => {
  given(heartbeat, { input, events: [elapsed('warmUp')] })
    .when({ type: 'PUSH_REFUSED', at: 1, status: 404, msg: 'locked', body: '{}', exitStatus: 8 })
    .then({
      state: 'failing',
      timers: { retry: 15_000 },
      context: { fault: 'HTTP 404: locked', failures: 1 },
    })
    .when(elapsed('retry'))
    .then({ state: 'pushing', effects: [push(0)], timers: {} })
    .when({ type: 'effect.lost', effect: 'reconciler.push_heartbeat' })
    .then({ state: 'failing', timers: { retry: 15_000 } })
    .when({ type: 'START', settings: input })
    .then({ state: 'starting', timers: { warmUp: 5_000 } })
    .when(elapsed('warmUp'))
    .then({ state: 'pushing', effects: [push(0)], timers: {} })
    .when(pushed)
    .then({ state: 'quiet', timers: { idle: 240_000 }, context: { fault: undefined, failures: 0 } });
  t.pass();
});

test('[R27] whatever happens: every event has a beat after it, beats are never far apart, and never a storm', (t) => {
  const stepper = new MachineStepper(heartbeat);
  const deed = fc.record({
    waitMs: fc.constantFrom(0, 10, 300, 20_000, 250_000),
    events: fc.nat(40),
    delivered: fc.boolean(),
  });
  t.notThrows(() =>
    fc.assert(
      fc.property(fc.array(deed, { maxLength: 30 }), (deeds) => {
        let now = 0;
        let step: Step = stepper.initial(input);
        const timers = new Map<string, number>();
        let heardAt: number | undefined;
        const sent: number[] = [];
        let works = true;
        const take = (): void => {
          for (const { type, params } of step.effects) {
            const { timer, delayMs } = params as any;
            if (type === TIMER_START) timers.set(timer, now + delayMs);
            else if (type === TIMER_CANCEL) timers.delete(timer);
            else {
              sent.push(now);
              timers.set('answer', now + 5);
            }
          }
        };
        const send = (event: object): void => {
          step = stepper.next(step.snapshot, event as never);
          take();
        };
        const wait = (ms: number): void => {
          const end = now + ms;
          for (;;) {
            const [timer, due] = [...timers].sort(([, one], [, other]) => one - other)[0] ?? [];
            if (timer === undefined || due === undefined || due > end) break;
            now = due;
            timers.delete(timer);
            if (timer !== 'answer') send({ type: timer });
            else if (works) send({ type: 'PUSHED', at: now, status: 200 });
            else send({ type: 'PUSH_FAILED', at: now, reason: 'x', exitStatus: 4 });
          }
          now = end;
        };
        take();
        for (const { waitMs, events, delivered } of deeds) {
          works = delivered;
          for (let count = 0; count < events; count += 1) {
            send({ type: 'HEARD' });
            heardAt = now;
          }
          wait(waitMs);
        }
        works = true;
        wait(20_000);
        if (heardAt !== undefined && !sent.some((at) => at >= heardAt!))
          throw new Error('an event without a beat');
        const before = sent.length;
        wait(241_000);
        if (sent.length === before) throw new Error('too quiet');
        for (const [index, at] of sent.entries()) {
          if (index > 0 && at - sent[index - 1]! < 250) throw new Error('a storm');
        }
      }),
      { numRuns: runs(300) },
    ),
  );
});
