import test from 'ava';
import { admission, initialize, Rig } from './rig.ts';

const turnedAway = async (rig: Rig) =>
  (await rig.records()).flatMap(({ event }) =>
    event.type === 'TURNED_AWAY' ? [event as { rule?: string; count?: number; path?: string }] : [],
  );

test('[G19,C2] a stranger who goes on and on is recorded to the last request, and does not fill the disk', async (t) => {
  const rig = await Rig.start(t, { routes: [] });
  const url = '/mcp/';
  const before = (await rig.records()).length;
  const guesses = Array.from({ length: 200 }, (_, index) =>
    rig.post(url, initialize, admission(`sk-guess-${index}`)),
  );
  const statuses = new Set((await Promise.all(guesses)).map(({ status }) => status));
  t.deepEqual([...statuses], [401]);
  const records = await turnedAway(rig);
  t.is(
    records.reduce((sum, { count = 1 }) => sum + count, 0),
    200,
  );
  t.true(records.length < 80, String(records.length));
  t.true((await rig.records()).length - before < 200);
  t.like(records.at(-1), { rule: 'unknown_key', path: url });
});

test('[G19] who is turned away by another rule, or beside a stranger, does not wait with it', async (t) => {
  const rig = await Rig.start(t, { routes: [] });
  await Promise.all(Array.from({ length: 60 }, () => rig.post('/mcp/', initialize, admission('sk-guess'))));
  t.is((await rig.post('/mcp/', initialize)).status, 401);
  t.deepEqual((await turnedAway(rig)).at(-1)?.rule, 'no_key');
  t.is((await turnedAway(rig)).at(-1)?.count, undefined);
});
