import { join } from 'node:path';
import test from 'ava';
import { pointDigest } from '../../../src/core/contracts/point-digest.ts';
import { inTransaction, openDatabase, tableOf } from '../../../src/plugins/memory-store/engine/database.ts';
import { Readings } from '../../../src/plugins/memory-store/engine/readings.ts';
import { DIGESTS_PAGE, MOST_READINGS } from '../../../src/plugins/memory-store/limits.ts';
import { tempDir } from '../../support/temp.ts';
import { fill, rest, startMemory, storePoints, vectorOf } from './rig.ts';

const SIZE = 4;

/** A store's database with so many points, and what `Readings` gives of it. */
function stored(t: Parameters<typeof tempDir>[0], count: number) {
  const dataDir = tempDir(t);
  storePoints(dataDir, count, SIZE);
  const file = join(dataDir, 'memory', 'memory.db');
  const db = openDatabase(file);
  const readings = new Readings(file);
  t.teardown(() => {
    readings.closeAll();
    db.close();
  });
  const table = tableOf({ place: 1 });
  return { db, table, readings };
}

test('[B4] all digests of one reading are of one moment, and are taken of the rows', (t) => {
  const count = DIGESTS_PAGE.points + 10;
  const { db, table, readings } = stored(t, count);
  const reading = readings.open('memory');
  const first = readings.page(reading);
  t.is(first.length, DIGESTS_PAGE.points);
  inTransaction(db, () => {
    db.exec(
      `UPDATE ${table} SET payload = '{}' WHERE id = ${count}; DELETE FROM ${table} WHERE id = ${count - 1}`,
    );
    db.exec(`INSERT INTO ${table} SELECT ${count + 1}, vector, payload FROM ${table} WHERE id = 1`);
  });
  const second = readings.page(reading);
  t.deepEqual(
    [...first, ...second].map(({ id }) => id),
    Array.from({ length: count }, (_, index) => index + 1),
  );
  const text = `Memory ${count}: what was said, by whom, and when, in about as many words as one has.`;
  const vector = vectorOf(count, SIZE);
  t.is(second.at(-1)?.digest, pointDigest({ payload: { number: count, text }, vector }));
  t.deepEqual(readings.page(reading), []);

  const again = readings.open('memory');
  readings.page(again);
  const now = readings.page(again);
  t.deepEqual(now.map(({ id }) => id).slice(-3), [count - 2, count, count + 1]);
  t.is(now.at(-2)?.digest, pointDigest({ payload: {}, vector }));
  t.is(now.at(-1)?.digest, first[0]?.digest, 'a digest is of payload and vector alone');
});

test('a few readings are open at a time, and one that is closed frees its place', (t) => {
  const { readings } = stored(t, 1);
  t.throws(() => readings.open('none'), { message: /HF_MEMORY_STORE_COLLECTION_MISSING/ });
  const open = Array.from({ length: MOST_READINGS }, () => readings.open('memory'));
  t.throws(() => readings.open('memory'), { message: /HF_MEMORY_STORE_BUSY/ });
  t.true(readings.close(open[0] as number));
  t.false(readings.close(open[0] as number));
  t.throws(() => readings.page(open[0] as number), {
    message: /HF_MEMORY_STORE_FAILED.*the reading has ended/,
  });
  t.is(readings.page(readings.open('memory')).length, 1);
});

test('[B4] the digest of a point counts every number and every key, whoever takes it', (t) => {
  const vector = [0.1, 0.2, 1 / 3];
  const digest = pointDigest({ payload: { a: 1, b: [null] }, vector });
  t.regex(digest, /^[0-9a-f]{64}$/);
  t.is(pointDigest({ payload: { b: [null], a: 1 }, vector }), digest);
  t.is(pointDigest({}), pointDigest({ payload: {}, vector: [] }));
  t.is(pointDigest({ vector: Float32Array.of(0.5, -0) }), pointDigest({ vector: [0.5, 0] }));
  const named = { text: [1, 2], image: { indices: [1], values: [0.5] } };
  const others = [
    pointDigest({ payload: { a: 1, b: [null] }, vector: [0.1, 0.2, 1 / 3 + 2 ** -54] }),
    pointDigest({ payload: { a: 1, b: [] }, vector }),
    pointDigest({ payload: { a: 1, b: [null] } }),
    pointDigest({ vector: [[0.1, 0.2], [1 / 3]] }),
    pointDigest({ vector: named }),
    pointDigest({ vector: { ...named, text: [1, 2.5] } }),
    pointDigest({ vector: { ...named, image: { indices: [2], values: [0.5] } } }),
    pointDigest({ vector: [1, null] }),
  ];
  t.is(new Set([digest, ...others]).size, others.length + 1);
});

test('[B4] digests come as JSON lines with an end, and a client that is gone leaves no reading open', async (t) => {
  const { url } = await startMemory(t);
  await fill(url, DIGESTS_PAGE.points * 2);
  const path = '/collections/memory/digests';
  const lines = (await (await fetch(url + path)).text()).split('\n').map((line) => line && JSON.parse(line));
  t.deepEqual(
    lines.map(({ length }) => length),
    [DIGESTS_PAGE.points, DIGESTS_PAGE.points, 0, 0],
  );
  t.like(await rest(url, 'GET', '/collections/none/digests'), { status: 404 });
  for (let left = 0; left < 2 * MOST_READINGS; left += 1) {
    const given = new AbortController();
    const answer = await fetch(url + path, { signal: given.signal });
    t.is(answer.status, 200);
    given.abort();
    await t.throwsAsync(answer.text(), { name: 'AbortError' });
  }
  t.is((await (await fetch(url + path)).text()).trimEnd().split('\n').at(-1), '[]');
});
