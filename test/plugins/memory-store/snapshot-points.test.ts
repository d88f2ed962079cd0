import { copyFileSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import test from 'ava';
import { fill, rest, startMemory } from './rig.ts';

const POINTS = '/collections/memory/points';
const SNAPSHOTS = '/collections/memory/snapshots';
const MB = 1024 * 1024;

const vector = (...numbers: number[]) => new Uint8Array(Float32Array.from(numbers).buffer);
const UNIT = vector(1, 0, 0, 0);
const text = (bytes: number) => JSON.stringify({ text: 'x'.repeat(bytes) });

/** What a file of somebody else may hold for a point, and how it is refused. */
const attacks: [title: string, row: [SQLInputValue, SQLInputValue, SQLInputValue], reason: RegExp][] = [
  ['a vector with NaN', [99n, vector(Number.NaN, 0, 0, 0), null], /point 99: its vector/],
  ['an infinite vector', [99n, vector(Number.POSITIVE_INFINITY, 0, 0, 0), null], /point 99: its vector/],
  ['a vector that is longer than 1', [99n, vector(100, 0, 0, 0), null], /point 99: its vector/],
  ['a vector of another size', [99n, vector(1, 0), null], /point 99: its vector has another size/],
  ['a vector that is text', [99n, 'xxxxxxxxxxxxxxxx', null], /its vector has another size/],
  ['an id that is a path', ['../../x', UNIT, null], /point '..\/..\/x': its id is no number or UUID/],
  ['a path as long as a UUID', [`../../${'x'.repeat(30)}`, UNIT, null], /point \.\.\/\.\.\/x+: its id/],
  ['a UUID in capitals', ['0B3F6C1E-52AD-4C1D-9A8E-0E4FD8F4F001', UNIT, null], /its id is no number or UUID/],
  ['a negative id', [-1n, UNIT, null], /its id is no number or UUID/],
  ['an id beyond what JSON holds', [2n ** 60n, UNIT, null], /its id is no number or UUID/],
  ['an id with a fraction', [1.5, UNIT, null], /its id is no number or UUID/],
  ['a payload of 100 MB', [99n, UNIT, text(100 * MB)], /point 99: its payload is larger than 8388608 bytes/],
  ['a payload just beyond the bound', [99n, UNIT, text(8 * MB)], /its payload is larger than 8388608 bytes/],
  ['a payload that is a list', [99n, UNIT, '[1]'], /its payload is no JSON object/],
  ['a payload that is no JSON', [99n, UNIT, '{'], /its payload is no JSON object/],
  ['a payload without end', [99n, UNIT, `{"a":${'['.repeat(80)}${']'.repeat(80)}}`], /nested deeper than 64/],
];

test.serial(
  '[B4] a snapshot with a point that no write could store is refused by its name, recovered or uploaded',
  async (t) => {
    t.timeout(180_000);
    const rig = await startMemory(t);
    await fill(rig.url, 20);
    const { body: made } = await rest(rig.url, 'POST', SNAPSHOTS);
    const folder = join(rig.dataDir, 'memory', 'snapshots', 'memory');
    const file = join(folder, 'foreign.snapshot');
    for (const [title, row, reason] of attacks) {
      copyFileSync(join(folder, made.result.name), file);
      const db = new DatabaseSync(file);
      db.prepare('INSERT INTO points VALUES (?, ?, ?)').run(...row);
      db.exec('UPDATE snapshot SET points = points + 1');
      db.close();
      const recovered = await rest(rig.url, 'PUT', `${SNAPSHOTS}/recover`, { location: `file://${file}` });
      const form = new FormData();
      form.append('snapshot', new Blob([readFileSync(file)]), 'foreign.snapshot');
      const upload = await fetch(`${rig.url}${SNAPSHOTS}/upload`, { method: 'POST', body: form });
      const uploaded = { status: upload.status, body: (await upload.json()) as any };
      for (const { status, body } of [recovered, uploaded]) {
        t.is(status, 400, title);
        t.is(body.code, 'HF_MEMORY_STORE_SNAPSHOT_INVALID', title);
        t.regex(body.status.error, reason, title);
      }
      t.is((await rest(rig.url, 'POST', `${POINTS}/count`, {})).body.result.count, 20, title);
      rmSync(file);
    }
    const { status } = await rest(rig.url, 'PUT', `${SNAPSHOTS}/recover`, {
      location: `file://${join(folder, made.result.name)}`,
    });
    t.is(status, 200, 'its own snapshot is taken');
  },
);

test.serial('[B4] one point holds at most 8 MiB, and a page of large points ends before 8 MiB', async (t) => {
  const rig = await startMemory(t);
  await fill(rig.url, 1);
  const put = (id: number, bytes: number) =>
    rest(rig.url, 'PUT', POINTS, {
      points: [{ id, vector: [1, 0, 0, 0], payload: { text: 'x'.repeat(bytes) } }],
    });
  const refused = await put(7, 8 * MB);
  t.is(refused.status, 400);
  t.regex(refused.body.status.error, /point 7: its payload is larger than 8388608 bytes/);
  for (const id of [2, 3, 4]) t.is((await put(id, 5 * MB)).status, 200);
  const { body } = await rest(rig.url, 'POST', `${POINTS}/scroll`, { limit: 10 });
  t.deepEqual(
    body.result.points.map(({ id }: { id: number }) => id),
    [1, 2],
  );
  t.is(body.result.next_page_offset, 3);
});
