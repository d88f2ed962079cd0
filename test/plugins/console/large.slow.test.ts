import test from 'ava';
import { z } from 'zod';
import { definePlugin } from '../../../src/core/host/plugin/definition.ts';
import { door } from '../../support/door.ts';
import { watchTurns } from '../../support/turns.ts';
import { ConsoleRig } from './console-rig.ts';

const DOORS = 400;
const ROUNDS = 8_000;
/** Longer than the event loop may be held up at a time, milliseconds of this thread's work. */
const MOST_MS = 60;

const doors = definePlugin({
  name: 'test',
  options: z.strictObject({}),
  register(context) {
    context.actor(door);
    for (const type of ['bell.ring', 'lamp.on'])
      context.effect(type, () => undefined, { onRecovery: 'fail' });
  },
});

test('[C15] questions about a long log hold up nothing else', async (t) => {
  t.timeout(600_000);
  const rig = await ConsoleRig.start(t, { others: [doors()] });
  const { actors, log } = rig.runtime.services;
  for (let round = 0; round < ROUNDS; round += 1) {
    const key = `door-${round % DOORS}`;
    actors.send(door, key, { type: 'OPEN', by: `guest-${round}` });
    actors.send(door, key, { type: 'CLOSE' });
    actors.send(door, 'busy', { type: 'KNOCK' });
    if (round % 200 === 199) await log.whenDurable(log.lastSeq());
  }
  const last = await rig.durable();
  t.true(last > 40_000, `${last} records`);
  await rig.ask('/api/actors?limit=1'); // loads everything
  const measured: Record<string, string> = {};
  const middle = Math.floor(last / 2);
  for (const path of [
    '/api/overview',
    `/api/overview?at=${middle}`,
    '/api/records?text=nobody%20of%20this%20name',
    '/api/records?failed=true',
    '/api/stories',
    '/api/stories?text=guest-7',
    '/api/density',
    `/api/actors?at=${middle + 50}`,
    `/api/actors?at=${middle + 51}`,
    `/api/actors/test.door%2Fbusy?at=${last - 20}`,
    `/api/compare?from=${middle - 5_000}&to=${middle + 5_000}`,
    `/api/records/${middle}`,
  ]) {
    const [turns, began] = [watchTurns(), performance.now()];
    await rig.ask(path);
    const stall = turns.longest();
    measured[path] = `${stall} ms at a time, ${Math.round(performance.now() - began)} ms in all`;
    t.true(stall < MOST_MS, `${path}: ${stall} ms`);
  }
  const openings = new Set<number>();
  for (let before = ''; ; ) {
    const { records, next } = await rig.ask(`/api/records?event=OPEN&limit=500${before}`);
    for (const { seq } of records) openings.add(seq);
    if (next === undefined) break;
    before = `&before=${next}`;
  }
  t.is(openings.size, ROUNDS, 'a search that goes on finds every record');
  const rare = [...openings.values()].sort((a, b) => a - b)[1_000] ?? 0;
  const found: number[] = [];
  // Just behind the part of the log that is searched first.
  for (let before = ''; ; ) {
    const query = `event=OPEN&text=guest-1000&at=${rare + 10_000}${before}`;
    const { records, next } = await rig.ask(`/api/records?${query}`);
    found.push(...records.map(({ seq }: { seq: number }) => seq));
    if (next === undefined) break;
    before = `&before=${next}`;
  }
  t.deepEqual(found, [rare]);
  const turns = watchTurns();
  const { status, body } = await rig.send('/api/what-if', { method: 'POST', body: { drop: [1_000] } });
  t.is(status, 200);
  t.true(body.decidedAgain > 10_000);
  t.true(turns.longest() < MOST_MS);
  t.log(JSON.stringify(measured, null, 1));
});
