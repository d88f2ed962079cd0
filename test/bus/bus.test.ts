import test from 'ava';
import { filter, map } from 'rxjs';
import { z } from 'zod';
import { Bus, type SubscriberFailure, subscriberFailed } from '../../src/bus/bus.ts';
import { defineTopic } from '../../src/bus/topic.ts';

const doorbell = defineTopic('test.doorbell', z.object({ times: z.int() }), 'Somebody rings.');
const lamp = defineTopic('test.lamp', z.object({ on: z.boolean() }), 'The lamp changes.');

function open(): { bus: Bus; failures: SubscriberFailure[] } {
  let count = 0;
  const bus = new Bus(() => `story-${++count}`);
  const failures: SubscriberFailure[] = [];
  bus.subscribe(subscriberFailed, 'test', ({ payload }) => void failures.push(payload));
  return { bus, failures };
}

test('[C1] a message reaches every subscriber of its topic, with correlation and cause, in order', (t) => {
  const { bus } = open();
  const seen: unknown[] = [];
  bus.subscribe(
    doorbell,
    'a',
    ({ payload, correlation, cause }) => void seen.push(['a', payload.times, correlation, cause]),
  );
  bus.subscribe(doorbell, 'b', ({ payload }) => void seen.push(['b', payload.times]));
  bus.subscribe(lamp, 'c', () => void seen.push('never'));
  t.is(bus.publish(doorbell, { times: 1 }), 'story-1');
  t.is(bus.publish(doorbell, { times: 2 }, { correlation: 'mine', cause: 7 }), 'mine');
  t.deepEqual(seen, [
    ['a', 1, 'story-1', undefined],
    ['b', 1],
    ['a', 2, 'mine', 7],
    ['b', 2],
  ]);
});

test('[C1] one failing subscriber harms no other, stays subscribed, and is reported by name', async (t) => {
  const { bus, failures } = open();
  const seen: number[] = [];
  bus.subscribe(doorbell, 'bad', () => {
    throw new Error('no bell');
  });
  bus.subscribe(doorbell, 'worse', () => Promise.reject(new Error('later')));
  bus.subscribe(doorbell, 'good', ({ payload }) => void seen.push(payload.times));
  t.notThrows(() => bus.publish(doorbell, { times: 1 }));
  bus.publish(doorbell, { times: 2 });
  await new Promise((resolve) => setImmediate(resolve));
  t.deepEqual(seen, [1, 2]);
  t.deepEqual(failures.map(({ owner, fault, message }) => [owner, fault, message]).sort(), [
    ['bad', 'subscriber', 'no bell'],
    ['bad', 'subscriber', 'no bell'],
    ['worse', 'subscriber', 'later'],
    ['worse', 'subscriber', 'later'],
  ]);
});

test('[C1] a stream composes with RxJS; an observer of it that throws is reported, and the process lives', async (t) => {
  const { bus, failures } = open();
  const seen: number[] = [];
  const loud = bus.stream(doorbell, 'loud').pipe(
    map(({ payload }) => payload.times),
    filter((times) => times > 1),
  );
  loud.subscribe((times) => seen.push(times));
  bus.stream(doorbell, 'bad').subscribe(() => {
    throw new Error('no bell');
  });
  bus.publish(doorbell, { times: 1 });
  bus.publish(doorbell, { times: 3 });
  await new Promise((resolve) => setTimeout(resolve, 10));
  t.deepEqual(seen, [3]);
  t.deepEqual(
    failures.map(({ owner, message }) => [owner, message]),
    [
      ['stream', 'no bell'],
      ['stream', 'no bell'],
    ],
  );
});

test('[C1] a payload that does not fit its topic is reported and not delivered', (t) => {
  const { bus, failures } = open();
  bus.subscribe(doorbell, 'a', () => t.fail());
  bus.publish(doorbell, { times: 'many' } as never);
  t.like(failures[0], { fault: 'payload', topic: 'test.doorbell' });
});

test("[C1] releasing an owner ends its subscriptions and streams, and nobody else's", (t) => {
  const { bus } = open();
  const seen: string[] = [];
  bus.subscribe(doorbell, 'a', () => void seen.push('a'));
  bus.stream(doorbell, 'a').subscribe({ complete: () => seen.push('a ended') });
  bus.subscribe(doorbell, 'b', () => void seen.push('b'));
  bus.release('a');
  bus.publish(doorbell, { times: 1 });
  t.deepEqual(seen, ['a ended', 'b']);
});

test('[C1] subscribers that answer each other in a loop are cut off and reported', (t) => {
  const { bus, failures } = open();
  bus.subscribe(doorbell, 'a', () => void bus.publish(lamp, { on: true }));
  bus.subscribe(lamp, 'b', () => void bus.publish(doorbell, { times: 1 }));
  bus.publish(doorbell, { times: 1 });
  t.true(failures.some(({ message }) => message.includes('loop')));
});

test('[C1] a failing listener of the failure topic is not reported to itself for ever', (t) => {
  const { bus } = open();
  bus.subscribe(subscriberFailed, 'bad', () => {
    throw new Error('again');
  });
  bus.subscribe(doorbell, 'worse', () => {
    throw new Error('first');
  });
  t.notThrows(() => bus.publish(doorbell, { times: 1 }));
});
