import { existsSync, readdirSync, readFileSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { QdrantClient } from '@qdrant/js-client-rest';
import test from 'ava';
import { fill, type MemoryRig, rest, somePoints, startMemory } from './rig.ts';

const POINTS = '/collections/memory/points';
const SNAPSHOTS = '/collections/memory/snapshots';
const UUID = '0b3f6c1e-52ad-4c1d-9a8e-0e4fd8f4f001';

/** One store for the file: every test has a collection or a name of its own. */
let rig: MemoryRig;
const stopping: (() => unknown)[] = [];
test.before(async (t) => {
  const scope = { teardown: (end: () => unknown) => void stopping.push(end), log: t.log };
  rig = await startMemory(scope);
  await fill(rig.url, 50);
});
test.after.always(async () => {
  for (const end of stopping.reverse()) await end();
});

test.serial('[B1] the official client works against the embedded store', async (t) => {
  const client = new QdrantClient({ url: rig.url });
  t.like(await client.versionInfo(), { title: 'holdfast - memory store' });
  await client.createCollection('official', { vectors: { size: 3, distance: 'Cosine' } });
  t.true((await client.collectionExists('official')).exists);
  await t.throwsAsync(client.createCollection('official', { vectors: { size: 3, distance: 'Cosine' } }), {
    message: /Conflict/,
  });
  const points = [
    { id: 7, vector: [1, 0, 0], payload: { kind: 'fact', tags: ['a', 'b'] } },
    { id: UUID, vector: [0, 3, 4], payload: { kind: 'person' } },
  ];
  t.is((await client.upsert('official', { points })).status, 'completed');
  await client.upsert('official', {
    batch: { ids: [9], vectors: [[1, 1, 0]], payloads: [{ kind: 'fact' }] },
  });
  t.is((await client.count('official', { exact: true })).count, 3);
  t.is((await client.getCollection('official')).points_count, 3);
  t.deepEqual(await client.retrieve('official', { ids: [UUID, 404], with_vector: true }), [
    { id: UUID, payload: { kind: 'person' }, vector: [0, Math.fround(0.6), Math.fround(0.8)] },
  ] as any);
  const first = await client.scroll('official', { limit: 2 });
  t.deepEqual(
    first.points.map(({ id }) => id),
    [7, 9],
  );
  t.is(first.next_page_offset, UUID);
  const found = await client.query('official', { query: [1, 0.1, 0], limit: 2, with_payload: true });
  t.deepEqual(
    found.points.map(({ id }) => id),
    [7, 9],
  );
  t.true(found.points[0]!.score > 0.99);
  const filter = { must: [{ key: 'tags', match: { value: 'b' } }] };
  t.deepEqual(
    (await client.query('official', { query: UUID, filter })).points.map(({ id }) => id),
    [7],
  );
  await client.delete('official', { points: [9] });
  t.is((await client.count('official')).count, 2);
  const made = await client.createSnapshot('official');
  t.deepEqual(
    (await client.listSnapshots('official')).map(({ name }) => name),
    [made!.name],
  );
  await client.delete('official', { filter: { must: [{ has_id: [7] }] } });
  const location = `${rig.url}/collections/official/snapshots/${made!.name}`;
  t.true(await client.recoverSnapshot('official', { location, priority: 'snapshot' }));
  t.is((await client.count('official')).count, 2);
  t.true(await client.deleteSnapshot('official', made!.name));
  t.deepEqual(await client.listSnapshots('official'), []);
  t.true(await client.deleteCollection('official'));
  t.deepEqual((await client.getCollections()).collections, [{ name: 'memory' }]);
});

test.serial('[B1] snapshots have the documented name, and two of one second differ', async (t) => {
  const made = await Promise.all([rest(rig.url, 'POST', SNAPSHOTS), rest(rig.url, 'POST', SNAPSHOTS)]);
  const names = made.map(({ body }) => body.result.name);
  t.is(new Set(names).size, 2);
  for (const name of names) t.regex(name, /^memory-\d+-\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d\.snapshot$/);
  const { body } = await rest(rig.url, 'GET', SNAPSHOTS);
  t.deepEqual(body.result.map((one: any) => one.name).toSorted(), names.toSorted());
  t.regex(body.result[0].checksum, /^[0-9a-f]{64}$/);
  const path = join(rig.dataDir, 'memory', 'snapshots', 'memory', names[0]);
  utimesSync(path, 1, 1);
  const again = await rest(rig.url, 'GET', SNAPSHOTS);
  t.deepEqual(again.body.result, body.result, 'a file that was touched is as old as its name says');
  const file = await fetch(`${rig.url}${SNAPSHOTS}/${names[0]}`);
  t.is((await file.arrayBuffer()).byteLength, body.result[0].size);
});

test.serial('what is wrong is told as the real store tells it', async (t) => {
  const refused = async (method: string, path: string, body: unknown, status: number, text: RegExp) => {
    const answer = await rest(rig.url, method, path, body);
    t.is(answer.status, status, `${method} ${path}`);
    t.regex(answer.body.status.error, text);
    t.false('result' in answer.body);
  };
  await refused('GET', '/collections/none', undefined, 404, /Collection `none` doesn't exist/);
  await refused('POST', '/collections/none/snapshots', undefined, 404, /Collection `none` doesn't exist/);
  t.false(existsSync(join(rig.dataDir, 'memory', 'snapshots', 'none')), 'nor is a folder made for it');
  await refused('PUT', POINTS, '{"points":', 400, /Format error in JSON body/);
  await refused('PUT', POINTS, { points: [{ id: 1, vector: [1, 2] }] }, 400, /expected dim: 4, got 2/);
  await refused(
    'PUT',
    POINTS,
    { points: [{ id: 1, vector: { named: [1, 2, 3, 4] } }] },
    400,
    /beyond this store/,
  );
  await refused('PUT', POINTS, { points: [{ id: -1, vector: [1, 2, 3, 4] }] }, 400, /points.0.id/);
  await refused('POST', `${POINTS}/scroll`, { limit: 0 }, 422, /limit/);
  await refused('PUT', '/collections/b', { vectors: { size: 2, distance: 'Dot' } }, 400, /only Cosine/);
  await refused(
    'PUT',
    '/collections/..%2fx',
    { vectors: { size: 2, distance: 'Cosine' } },
    422,
    /named with/,
  );
  await refused(
    'GET',
    `${SNAPSHOTS}/memory-1-2026-01-01-00-00-00.snapshot`,
    undefined,
    404,
    /does not exist/,
  );
  await refused('DELETE', `${SNAPSHOTS}/..%2f..%2fmemory.db`, undefined, 404, /does not exist/);
  await refused('POST', `${POINTS}/search`, { vector: [1, 2, 3, 4], using: 'x' }, 400, /using/);
  t.is((await rest(rig.url, 'POST', `${POINTS}/count`, { exact: true })).body.result.count, 50);
});

test.serial('[B4] every key of a payload is kept, also one that JavaScript has a meaning for', async (t) => {
  const point = '{"id":1,"vector":[1,0,0,0],"payload":{"__proto__":{"x":1},"constructor":2}}';
  await rest(rig.url, 'PUT', '/collections/keys', { vectors: { size: 4, distance: 'Cosine' } });
  t.is((await rest(rig.url, 'PUT', '/collections/keys/points', `{"points":[${point}]}`)).status, 200);
  const answer = await fetch(`${rig.url}/collections/keys/points`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"ids":[1]}',
  });
  t.true((await answer.text()).includes('"payload":{"__proto__":{"x":1},"constructor":2}'));
  const filter = { must: [{ key: 'toString', match: { any: ['', 1] } }] };
  t.is((await rest(rig.url, 'POST', '/collections/keys/points/count', { filter })).body.result.count, 0);
  await rest(rig.url, 'DELETE', '/collections/keys');
});

test.serial('an answer that nobody could hold is refused, and the store goes on', async (t) => {
  await rest(rig.url, 'PUT', '/collections/large', { vectors: { size: 4, distance: 'Cosine' } });
  const points = [{ id: 1, vector: [1, 0, 0, 0], payload: { text: 'x'.repeat(8_000_000) } }];
  t.is((await rest(rig.url, 'PUT', '/collections/large/points', { points })).status, 200);
  const many = await rest(rig.url, 'POST', '/collections/large/points', { ids: Array(10_000).fill(1) });
  t.is(many.status, 400);
  t.regex(many.body.status.error, /ask for fewer/);
  t.is((await rest(rig.url, 'POST', '/collections/large/points', { ids: [1] })).status, 200);
  await rest(rig.url, 'DELETE', '/collections/large');
});

test.serial('[B5] snapshots are fetched from its own origin and folder only', async (t) => {
  const { body: made } = await rest(rig.url, 'POST', SNAPSHOTS);
  const own = join(rig.dataDir, 'memory', 'snapshots', 'memory', made.result.name);
  const recover = (location: string) => rest(rig.url, 'PUT', `${SNAPSHOTS}/recover`, { location });
  writeFileSync(join(rig.dataDir, 'outside.snapshot'), 'x');
  for (const location of [
    'file:///etc/passwd',
    `file://${join(rig.dataDir, 'outside.snapshot')}`,
    `file://${join(rig.dataDir, 'memory', 'snapshots', '..', 'memory.db')}`,
    'http://169.254.169.254/latest/meta-data',
    'http://localhost:1/collections/memory/snapshots/a.snapshot',
    `${rig.url.replace('://', '://user:word@')}/collections`,
    'ftp://127.0.0.1/x',
  ]) {
    t.is((await recover(location)).status, 403, location);
  }
  t.is((await recover('nothing')).status, 400);
  t.is((await recover(`${rig.url}${SNAPSHOTS}/none.snapshot`)).body.code, 'HF_MEMORY_STORE_FETCH');
  t.is((await recover(`file://${own}`)).status, 200);
});

test.serial(
  '[B4] a snapshot that is cut short, damaged or foreign is refused, and the collection is as it was',
  async (t) => {
    const { body: made } = await rest(rig.url, 'POST', SNAPSHOTS);
    const folder = join(rig.dataDir, 'memory', 'snapshots', 'memory');
    const whole = readFileSync(join(folder, made.result.name));
    await rest(rig.url, 'PUT', POINTS, { points: somePoints(1, 4, 1_000) });
    const offered: Record<string, Buffer> = {
      short: whole.subarray(0, whole.length - 4_096),
      head: whole.subarray(0, 50),
      empty: Buffer.alloc(0),
      torn: Buffer.concat([whole.subarray(0, 12_000), Buffer.alloc(whole.length - 12_000, 0xff)]),
      // Every row can be read, and its list of free pages names one that is in use.
      pages: Buffer.concat([whole.subarray(0, 32), Buffer.of(0, 0, 0, 2, 0, 0, 0, 1), whole.subarray(40)]),
    };
    const foreign = join(folder, 'foreign.snapshot');
    const db = new DatabaseSync(foreign);
    db.exec('CREATE TABLE points (id PRIMARY KEY, vector BLOB NOT NULL, payload TEXT)');
    db.close();
    for (const [name, bytes] of Object.entries(offered))
      writeFileSync(join(folder, `${name}.snapshot`), bytes);
    writeFileSync(join(folder, 'trigger.snapshot'), whole);
    const added = new DatabaseSync(join(folder, 'trigger.snapshot'));
    added.exec('CREATE VIEW v AS SELECT 1');
    added.close();
    for (const name of [...Object.keys(offered), 'foreign', 'trigger']) {
      const { status, body } = await rest(rig.url, 'PUT', `${SNAPSHOTS}/recover`, {
        location: `${rig.url}${SNAPSHOTS}/${name}.snapshot`,
        priority: 'snapshot',
      });
      t.is(status, 400, `${name}: ${JSON.stringify(body)}`);
      t.is((await rest(rig.url, 'POST', `${POINTS}/count`, {})).body.result.count, 51);
      await rest(rig.url, 'DELETE', `${SNAPSHOTS}/${name}.snapshot`);
    }
    await rest(rig.url, 'PUT', '/collections/wide', { vectors: { size: 8, distance: 'Cosine' } });
    const wide = await rest(rig.url, 'PUT', '/collections/wide/snapshots/recover', {
      location: `${rig.url}${SNAPSHOTS}/${made.result.name}`,
    });
    t.regex(wide.body.status.error, /vector size 8, snapshot vector size 4/);
    const wrong = await rest(rig.url, 'PUT', `${SNAPSHOTS}/recover`, {
      location: `${rig.url}${SNAPSHOTS}/${made.result.name}`,
      checksum: '0'.repeat(64),
    });
    t.regex(wrong.body.status.error, /checksum mismatch/);
    await rest(rig.url, 'DELETE', '/collections/wide');
  },
);

test.serial('[B4] an uploaded snapshot takes the place of the collection', async (t) => {
  const { body: made } = await rest(rig.url, 'POST', SNAPSHOTS);
  const file = await (await fetch(`${rig.url}${SNAPSHOTS}/${made.result.name}`)).blob();
  const upload = async (blob: Blob) => {
    const form = new FormData();
    form.append('snapshot', blob, 'a.snapshot');
    const path = `/collections/uploaded/snapshots/upload?priority=snapshot&checksum=${made.result.checksum}`;
    const answer = await fetch(rig.url + path, { method: 'POST', body: form });
    return { status: answer.status, body: (await answer.json()) as any };
  };
  t.is((await upload(file.slice(0, file.size - 10))).status, 400);
  t.deepEqual((await upload(file)).body.result, true);
  const { body } = await rest(rig.url, 'POST', '/collections/uploaded/points/count', {});
  t.is(body.result.count, (await rest(rig.url, 'POST', `${POINTS}/count`, {})).body.result.count);
  t.deepEqual(readdirSync(join(rig.dataDir, 'memory', 'incoming')), []);
  await rest(rig.url, 'DELETE', '/collections/uploaded');
});

test.serial(
  '[B6] a scratch instance is a store of its own, found again by its id, and leaves nothing',
  async (t) => {
    const signal = AbortSignal.timeout(60_000);
    const { scratch, stores, dataDir } = rig;
    const [one, again] = await Promise.all([
      scratch.create('drill-1', 'empty', signal),
      scratch.create('drill-1', 'empty', signal),
    ]);
    t.is(one.url, again.url);
    t.not(one.url, rig.url);
    const store = stores.at(one.url);
    t.not((await store.about()).instance, (await stores.live.about()).instance);
    const made = await stores.live.createSnapshot('memory');
    await store.recover('memory', stores.live.snapshotUrl('memory', made.name));
    t.is(await store.count('memory'), await stores.live.count('memory'));
    t.deepEqual(await store.points('memory', [1, 2]), await stores.live.points('memory', [1, 2]));
    t.deepEqual(
      (await scratch.list(signal)).map(({ id }) => id),
      ['drill-1'],
    );
    await scratch.remove('drill-1', signal);
    await scratch.remove('drill-1', signal);
    t.false(await store.ready());
    t.deepEqual(readdirSync(join(dataDir, 'scratch')), []);
  },
);

test.serial('[B10] a copy of the volume opens with what was there, while writes go on', async (t) => {
  const signal = AbortSignal.timeout(60_000);
  const { scratch, stores } = rig;
  let writing = true;
  const writes = (async () => {
    for (let id = 5_000; writing; id += 1) await stores.live.upsert('memory', somePoints(1, 4, id));
  })();
  const copy = await scratch.create('copy', 'volume-copy', signal);
  writing = false;
  await writes;
  const count = await stores.at(copy.url).count('memory');
  t.true(count >= 51 && count <= (await stores.live.count('memory')));
  t.deepEqual(await stores.at(copy.url).points('memory', [1]), await stores.live.points('memory', [1]));
  await scratch.remove('copy', signal);
});

test('[B6] a start sweeps scratch instances whose time is over and keeps the others', async (t) => {
  const first = await startMemory(t, { store: { scratchTtlMs: 1_000 } });
  const signal = AbortSignal.timeout(60_000);
  await first.scratch.create('old', 'empty', signal);
  await first.runtime.stop('test');
  const { dataDir } = first;
  t.true(existsSync(join(dataDir, 'scratch', 'old')));
  const marker = join(dataDir, 'scratch', 'old', 'scratch.json');
  const mark = JSON.parse(readFileSync(marker, 'utf8'));
  const kept = await startMemory(t, { dataDir, store: { scratchTtlMs: 3_600_000 } });
  await kept.scratch.create('young', 'empty', signal);
  await kept.runtime.stop('test');
  writeFileSync(
    join(dataDir, 'scratch', 'young', 'scratch.json'),
    JSON.stringify({ ...mark, id: 'young', expiresAt: Date.now() + 1e6 }),
  );
  if (existsSync(marker)) writeFileSync(marker, JSON.stringify({ ...mark, expiresAt: 1 }));
  const last = await startMemory(t, { dataDir });
  t.deepEqual(
    (await last.scratch.list(signal)).map(({ id }) => id),
    ['young'],
  );
});

test('what was stored is there after a restart; halves of an interrupted run are not', async (t) => {
  const first = await startMemory(t);
  await fill(first.url, 10);
  const { body: made } = await rest(first.url, 'POST', SNAPSHOTS);
  await first.runtime.stop('test');
  const folder = join(first.dataDir, 'memory', 'snapshots', 'memory');
  writeFileSync(join(folder, `${made.result.name}.part`), 'half');
  const db = new DatabaseSync(join(first.dataDir, 'memory', 'memory.db'));
  db.exec('CREATE TABLE points_77 (id PRIMARY KEY, vector BLOB NOT NULL, payload TEXT)');
  db.close();
  const second = await startMemory(t, { dataDir: first.dataDir });
  t.is(await second.stores.live.count('memory'), 10);
  t.deepEqual(
    (await second.stores.live.snapshots('memory')).map(({ name }) => name),
    [made.result.name],
  );
  t.false(existsSync(join(folder, `${made.result.name}.part`)));
  const looked = new DatabaseSync(join(first.dataDir, 'memory', 'memory.db'), { readOnly: true });
  t.is(looked.prepare("SELECT count(*) AS n FROM sqlite_schema WHERE name = 'points_77'").get()?.n, 0);
  looked.close();
  truncateSync(join(folder, made.result.name), 100);
  const location = second.stores.live.snapshotUrl('memory', made.result.name);
  await t.throwsAsync(second.stores.live.recover('memory', location), {
    message: /HF_MEMORY_REFUSED.*400.*bytes of/,
  });
});
