import { chmodSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { readTokenFile } from '../../../src/core/host/secrets/token-file.ts';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { isCoded } from '../../../src/core/kernel/errors/holdfast-error.ts';
import { RestClient } from '../../../src/plugins/memory/rest-client.ts';
import { RestStore, RestStores } from '../../../src/plugins/memory/rest-store.ts';
import { tempDir } from '../../support/temp.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { somePoints, startMemory } from '../memory-store/rig.ts';

type Answer = (request: IncomingMessage, response: ServerResponse, body: string) => void;

/** A store that behaves as real ones do on a bad day. */
async function misbehaving(t: ExecutionContext, answer: Answer): Promise<string> {
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    answer(request, response, Buffer.concat(parts).toString());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const json = (
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
) => response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
const ok = (result: unknown) => ({ result, status: 'ok', time: 0.001 });
const storeAt = (t: ExecutionContext, url: string, clock = systemClock) => {
  const client = new RestClient({ url, clock, apiKey: async () => undefined });
  t.teardown(() => client.close());
  return new RestStore({ client });
};

test('[B1, B4] the adapter keeps its contract over the embedded store', async (t) => {
  const { stores, url } = await startMemory(t);
  const { live, collection } = stores;
  t.is(live.url, url);
  t.true(await live.ready());
  t.like(await live.about(), { title: 'holdfast - memory store' });
  t.is(await live.collection(collection), undefined);
  await t.throwsAsync(live.count(collection), { message: /HF_MEMORY_REFUSED.*404.*doesn't exist/ });
  await live.createCollection(collection, 4);
  t.deepEqual(await live.collection(collection), {
    status: 'green',
    pointsCount: 0,
    vectors: { size: 4, distance: 'Cosine' },
  });
  await live.upsert(collection, somePoints(5));
  t.is(await live.count(collection), 5);
  t.deepEqual(
    (await live.points(collection, [2, 99])).map(({ id, payload }) => ({ id, payload })),
    [{ id: 2, payload: { text: 'memory 2' } }],
  );
  const pages = await Array.fromAsync(live.digests(collection));
  t.deepEqual(
    pages.flat().toSorted((a, b) => Number(a.id) - Number(b.id)),
    (await live.points(collection, [1, 2, 3, 4, 5])).map(({ id, digest }) => ({ id, digest })),
    'a point has one digest, whether the store takes it or the adapter',
  );
  const first = await live.scroll(collection, { limit: 3, vectors: true });
  t.deepEqual([first.points.length, first.next], [3, 4]);
  const rest = await live.scroll(collection, { from: first.next, limit: 3, vectors: false });
  t.deepEqual([rest.points.map(({ id }) => id), rest.next], [[4, 5], undefined]);
  const made = await live.createSnapshot(collection);
  t.deepEqual(await live.snapshots(collection), [made]);
  await live.upsert(collection, somePoints(1, 4, 77));
  await live.recover(collection, live.snapshotUrl(collection, made.name));
  t.is(await live.count(collection), 5);
  await live.deleteSnapshot(collection, made.name);
  await t.throwsAsync(live.recover(collection, live.snapshotUrl(collection, made.name)), {
    message: /HF_MEMORY_REFUSED.*400.*Failed to download/,
  });
  await t.throwsAsync(live.recover(collection, 'http://192.0.2.1/x'), { message: /403.*Forbidden location/ });
});

test('a key is asked for where one is set, sent by the adapter, and handed to a scratch store for the live one only', async (t) => {
  const apiKeyFile = join(tempDir(t), 'key');
  writeFileSync(apiKeyFile, 'the-key-of-the-store\n');
  chmodSync(apiKeyFile, 0o600);
  const { stores, url, scratch } = await startMemory(t, { store: { auth: 'token', tokenFile: apiKeyFile } });
  t.is((await fetch(`${url}/collections`)).status, 401);
  t.is((await fetch(`${url}/healthz`)).status, 200);
  t.is(
    (await fetch(`${url}/collections`, { headers: { authorization: 'Bearer the-key-of-the-store' } })).status,
    200,
  );
  await stores.live.createCollection('memory', 4);
  await stores.live.upsert('memory', somePoints(3));
  const made = await stores.live.createSnapshot('memory');
  const signal = AbortSignal.timeout(60_000);
  const { url: at } = await scratch.create('keyed', 'empty', signal);
  await stores.at(at).recover('memory', stores.live.snapshotUrl('memory', made.name), signal);
  t.is(await stores.at(at).count('memory'), 3);

  const bodies: string[] = [];
  const other = await misbehaving(t, (request, response, body) => {
    bodies.push(body + JSON.stringify(request.headers));
    json(response, 200, ok(true));
  });
  const keyed = new RestStores({
    kind: 'remote',
    collection: 'memory',
    clock: systemClock,
    url: () => url,
    apiKey: async () => readTokenFile(apiKeyFile),
  });
  t.teardown(() => keyed.close());
  await keyed.at(other).recover('memory', 'http://elsewhere:6333/collections/memory/snapshots/a');
  t.false(bodies.join().includes('the-key-of-the-store'));
});

test('[B2,B4,B9] points are counted exactly, a snapshot has priority over what is there, and `result` must be true', async (t) => {
  const asked: [string | undefined, unknown][] = [];
  let result: unknown = true;
  const url = await misbehaving(t, (request, response, body) => {
    asked.push([request.url, JSON.parse(body)]);
    json(response, 200, ok(request.url?.endsWith('/count') ? { count: 7 } : result));
  });
  const store = storeAt(t, url);
  const location = 'http://live:6333/collections/memory/snapshots/memory-1.snapshot';
  t.is(await store.count('memory'), 7);
  await store.recover('memory', location);
  t.deepEqual(asked, [
    ['/collections/memory/points/count', { exact: true }],
    ['/collections/memory/snapshots/recover?wait=true', { location, priority: 'snapshot' }],
  ]);
  for (result of [false, null, {}, 'true']) {
    await t.throwsAsync(store.recover('memory', location), { message: /HF_MEMORY_ANSWER.*result/ });
  }
});

test('[B4] a checksum may be absent or null, and a count of points too', async (t) => {
  const file = { name: 'memory-1-2026-01-01-02-30-00.snapshot', size: 225_000 };
  const url = await misbehaving(t, (request, response) => {
    if (request.url === '/collections/memory') {
      return json(
        response,
        200,
        ok({ status: 'green', config: { params: { vectors: { size: 3 } } }, more: 1 }),
      );
    }
    json(response, 200, ok([{ ...file, creation_time: null, checksum: null }, file]));
  });
  const store = storeAt(t, url);
  const bare = { ...file, checksum: undefined, createdAt: undefined };
  t.deepEqual(await store.snapshots('memory'), [bare, bare]);
  t.is((await store.collection('memory'))?.pointsCount, 0);
});

test('a 429 is tried again when its Retry-After says, a few times, and not for ever', async (t) => {
  const clock = new VirtualClock();
  let asked = 0;
  let header = '3';
  const url = await misbehaving(t, (_request, response) => {
    asked += 1;
    if (asked === 3) return json(response, 200, ok({ count: 7 }));
    json(response, 429, { status: { error: 'slow down' }, time: 0 }, { 'retry-after': header });
  });
  const store = storeAt(t, url, clock);
  const wait = async (count: number) => {
    while (asked < count) {
      await clock.advance(1_000);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  const counted = store.count('memory');
  await wait(3);
  t.is(await counted, 7);
  t.true(clock.now() >= 1_767_225_600_000 + 6_000);
  const refused = t.throwsAsync(store.count('memory'), { message: /HF_MEMORY_REFUSED.*429: slow down/ });
  await wait(8);
  await refused;
  header = '3600';
  await t.throwsAsync(store.count('memory'), { message: /429/ });
  t.is(asked, 9);
});

test('[B4] digests that end too early, go on after their end or are out of order are no list of all points', async (t) => {
  let lines: readonly string[] = [];
  const url = await misbehaving(t, (request, response) => {
    if (request.url === '/') json(response, 200, { title: 'a store', version: '1', digests: true });
    else for (const line of [...lines, undefined]) line === undefined ? response.end() : response.write(line);
  });
  const store = storeAt(t, url);
  const one = '[{"id":1,"digest":"a"}]\n';
  const digests = async (...given: readonly string[]) => {
    lines = given;
    return (await Array.fromAsync(store.digests('memory'))).flat();
  };
  const fails = (message: RegExp, ...given: readonly string[]) =>
    t.throwsAsync(digests(...given), { message });
  t.deepEqual(await digests(one, '[{"id":', '2,"digest":"é"}]\n[]', '\n'), [
    { id: 1, digest: 'a' },
    { id: 2, digest: 'é' },
  ]);
  await fails(/HF_MEMORY_ANSWER.*its end is missing/, one);
  await fails(/HF_MEMORY_ANSWER.*its last line is cut short/, one, '[]');
  await fails(/HF_MEMORY_ANSWER.*something follows its end/, one, '[]\n', one);
  await fails(/HF_MEMORY_ANSWER.*out of order, at 1/, one, one, '[]\n');
  await fails(/HF_MEMORY_ANSWER.*a line is not JSON/, one, 'null,\n[]\n');
  await fails(/HF_MEMORY_ANSWER.*digest/, '[{"id":1}]\n[]\n');
});

test('what is garbled, refused, cut off or silent has a code, and the own text of the store', async (t) => {
  const clock = new VirtualClock();
  let answer: Answer = () => {};
  const url = await misbehaving(t, (...all) => answer(...all));
  const store = storeAt(t, url, clock);
  const fails = async (code: string, text: RegExp, next: Answer) => {
    answer = next;
    const error = await t.throwsAsync(store.count('memory'));
    t.true(isCoded(error) && error.code === code, String(error));
    t.regex(String(error), text);
  };
  await fails('HF_MEMORY_ANSWER', /not JSON/, (_request, response) => response.end('<html>'));
  await fails('HF_MEMORY_ANSWER', /no envelope/, (_request, response) => json(response, 200, { count: 3 }));
  await fails('HF_MEMORY_ANSWER', /result.count/, (_request, response) =>
    json(response, 200, ok({ count: -1 })),
  );
  await fails('HF_MEMORY_REFUSED', /403: Forbidden: key/, (_request, response) =>
    json(response, 403, { status: { error: 'Forbidden: key' }, time: 0 }),
  );
  await fails('HF_MEMORY_REFUSED', /507: No space/, (_request, response) =>
    json(response, 507, { status: { error: 'No space' }, time: 0 }),
  );
  await fails('HF_MEMORY_REFUSED', /502: Bad gateway/, (_request, response) =>
    response.writeHead(502).end('Bad gateway'),
  );
  await fails('HF_MEMORY_UNREACHABLE', /POST \/collections\/memory\/points\/count/, (request) =>
    request.socket.destroy(),
  );
  await fails('HF_MEMORY_REFUSED', /302/, (_request, response) =>
    response.writeHead(302, { location: 'http://169.254.169.254/' }).end(),
  );
  answer = () => setImmediate(() => void clock.advance(30_000));
  await t.throwsAsync(store.count('memory'), { message: /HF_MEMORY_UNREACHABLE.*nothing came within 30 s/ });
  const given = AbortSignal.abort(new Error('given up'));
  await t.throwsAsync(store.count('memory', given), { message: 'given up' });
  t.false(await storeAt(t, 'http://127.0.0.1:1').ready());
  await t.throwsAsync(storeAt(t, 'http://127.0.0.1:1').count('memory'), { message: /nothing listens there/ });
});

test('closing the stores breaks off what is under way in each of them', async (t) => {
  const asked = { live: Promise.withResolvers<void>(), scratch: Promise.withResolvers<void>() };
  const live = await misbehaving(t, () => asked.live.resolve());
  const scratch = await misbehaving(t, () => asked.scratch.resolve());
  const stores = new RestStores({
    ...{ kind: 'remote', collection: 'memory', url: () => live, apiKey: async () => undefined },
    clock: new VirtualClock(), // so that no deadline ends them
  });
  const counts = [stores.live.count('memory'), stores.at(scratch).count('memory')];
  const ended = Promise.allSettled(counts);
  await Promise.all([asked.live.promise, asked.scratch.promise]);
  await stores.close();
  const late = delay(5_000, 'under way', { ref: false });
  t.like(await Promise.race([ended, late]), [{ status: 'rejected' }, { status: 'rejected' }]);
});
