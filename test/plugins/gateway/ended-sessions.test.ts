import test from 'ava';
import { Bus } from '../../../src/bus/bus.ts';
import { newCorrelation } from '../../../src/core/kernel/clock.ts';
import { EndedSessions, sessionsEnded } from '../../../src/plugins/gateway/session/ended-sessions.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

test('[C13,G18] a client that ends thousands of sessions at once costs the other hosts some messages, and each hears of all', async (t) => {
  const [bus, clock] = [new Bus(newCorrelation), new VirtualClock()];
  const ended = new EndedSessions({ bus, clock, actors: { get: () => undefined } });
  const told: (readonly string[])[] = [];
  bus.subscribe(sessionsEnded, 'test', ({ payload }) => {
    told.push(payload.sessions);
  });
  const names = Array.from({ length: 4_001 }, (_, i) => `session-${i}`);
  for (const name of names) ended.end(name);
  t.deepEqual(told, [['session-0']], 'one alone is told at once');
  await clock.advance(99);
  t.is(told.length, 1);
  await clock.advance(10_000);
  t.is(told.length, 1 + 8);
  t.deepEqual(told.flat(), names);
  ended.end('later');
  ended.end('last');
  ended.stop();
  t.deepEqual(told.slice(9), [['later'], ['last']], 'a host that stops keeps nothing back');
  t.true(names.every((name) => ended.has(name)));
});
