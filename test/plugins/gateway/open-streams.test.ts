import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { credentialFree } from '../../../src/plugins/gateway/index.ts';
import { listen, startUpstream } from '../../support/mcp-upstream.ts';
import { admission, initialize, MEDIA, Rig, rpc } from './rig.ts';

/** A key with an open stream of a server's notifications. */
async function setUp(t: ExecutionContext) {
  const upstream = await startUpstream(t);
  const { url } = upstream;
  const rig = await Rig.start(t, {
    routes: [credentialFree({ name: 'repo_wiki', url }), credentialFree({ name: 'memory', url })],
  });
  const scope = { object_permission: { mcp_servers: ['repo_wiki', 'memory'] } };
  const { body } = await rig.admin('POST', '/key/generate', scope);
  const open = async (key: string) => {
    const first = await rig.post('/repo_wiki/mcp', initialize, admission(key));
    const session = { ...admission(key), 'mcp-session-id': first.headers.get('mcp-session-id') ?? '' };
    await first.text();
    const stream = await fetch(`${rig.url}/repo_wiki/mcp`, { headers: { ...session, accept: MEDIA } });
    t.is(stream.status, 200);
    return { stream, session };
  };
  return { rig, upstream, key: body.key as string, id: body.key_id as string, open };
}

/** Resolves when a stream has ended, however. */
const ended = (stream: Response) =>
  stream.text().then(
    () => true,
    () => true,
  );

test('[G14,G24] an open stream ends when its key is revoked, and what comes after is refused', async (t) => {
  const { rig, key, id, open } = await setUp(t);
  const { stream, session } = await open(key);
  await rig.admin('POST', '/key/delete', { keys: [id] });
  t.true(await ended(stream));
  const { status } = await rig.post('/repo_wiki/mcp', rpc('tools/list'), session);
  t.is(status, 401);
  const outcomes = (await rig.records()).filter(
    ({ event }) => event.type === 'CALL_ENDED' && event.outcome === 'cut',
  );
  t.is(outcomes.length, 1);
});

test('[G14,G12] a revoked key ends its streams of the aggregate too, of both transports', async (t) => {
  const { rig, key, id } = await setUp(t);
  const first = await rig.post('/mcp/', initialize, admission(key));
  const session = { ...admission(key), 'mcp-session-id': first.headers.get('mcp-session-id') ?? '' };
  await first.text();
  const streams = await Promise.all([
    fetch(`${rig.url}/mcp/`, { headers: { ...session, accept: MEDIA } }),
    fetch(`${rig.url}/mcp/sse`, { headers: { ...admission(key), accept: MEDIA } }),
  ]);
  for (const stream of streams) t.is(stream.status, 200);
  await rig.admin('POST', '/key/delete', { keys: [id] });
  for (const stream of streams) t.true(await ended(stream));
});

test('[G24] a stream ends when its server leaves the scope, and goes on when another one does', async (t) => {
  const { rig, key, open } = await setUp(t);
  const { stream } = await open(key);
  const others = { mcp_servers: ['repo_wiki'] };
  await rig.admin('POST', '/key/update', { key, object_permission: others });
  const still = Symbol('still open');
  const end = ended(stream);
  t.is(await Promise.race([end, rig.records().then(() => still)]), still);
  await rig.admin('POST', '/key/update', { key, object_permission: { mcp_servers: ['memory'] } });
  t.true(await end);
});

test('[G24] a stream ends with its key: at its expiry, and after the overlap of a rotation', async (t) => {
  const { rig, key, id, open } = await setUp(t);
  const { stream } = await open(key);
  const rotated = await rig.admin('POST', '/key/rotate', { key, overlap: '0s' });
  t.true(await ended(stream));
  const next = await open(rotated.body.key);
  const expiry = { type: 'KEY_UPDATED', at: Date.now(), set: { expiresAt: Date.now() + 200 } };
  await rig.runtime.services.actors.deliver(`gateway.key/${id}`, expiry).durable();
  t.true(await ended(next.stream));
});

const EVENT = `data: ${'x'.repeat(64 * 1024)}\n\n`;

for (const [title, events] of [
  ['more than fits between here and the client', Number.POSITIVE_INFINITY],
  ['no more than the kernel takes', 24],
] as const) {
  test(`[G14,G23] a revoked key resets the stream of a client that has stopped reading: ${title}`, async (t) => {
    const left = Promise.withResolvers<void>();
    const stalled = Promise.withResolvers<void>();
    const talker = createServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).on('close', left.resolve);
      let written = performance.now();
      let count = 0;
      const send = () => {
        if (count === events) return;
        count += 1;
        written = performance.now();
        response.write(EVENT);
      };
      response.on('drain', send);
      send();
      // All is sent, or nobody between here and the client takes any more.
      const look = setInterval(() => performance.now() - written > 300 && stalled.resolve(), 50);
      response.on('close', () => clearInterval(look));
    });
    await listen(talker);
    t.teardown(() => talker.close());
    const url = `http://127.0.0.1:${(talker.address() as AddressInfo).port}/mcp`;
    const rig = await Rig.start(t, { routes: [credentialFree({ name: 'talker', url })] });
    const key = await rig.mint({ servers: ['talker'] });
    const body = JSON.stringify(initialize);
    const socket = connect(Number(new URL(rig.url).port), '127.0.0.1');
    t.teardown(() => socket.destroy());
    const head = [
      'POST /talker/mcp HTTP/1.1',
      'host: localhost',
      `x-gateway-api-key: Bearer ${key}`,
      `accept: ${MEDIA}`,
      'content-type: application/json',
      `content-length: ${body.length}`,
    ];
    socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
    await once(socket, 'readable');
    await stalled.promise;
    await rig.admin('POST', '/key/delete', { keys: [key] });
    await left.promise;
    const ends = (await rig.records()).filter(({ event }) => event.type === 'CALL_ENDED');
    t.deepEqual(
      ends.map(({ event }) => event.outcome),
      ['cut'],
    );
    const failure = Promise.withResolvers<NodeJS.ErrnoException | undefined>();
    socket.on('error', failure.resolve).on('close', () => failure.resolve(undefined));
    let received = 0;
    socket.on('data', (chunk) => {
      received += chunk.length;
    });
    t.is((await failure.promise)?.code, 'ECONNRESET');
    // What the client's own kernel had taken before can't be taken back.
    t.true(received < 1024 * 1024, `${received} bytes`);
  });
}

test('[G14,G23] a revoked key ends the stream of a client that reads as a whole answer', async (t) => {
  const { rig, id, key, open } = await setUp(t);
  const { stream } = await open(key);
  const text = stream.text();
  await rig.admin('POST', '/key/delete', { keys: [id] });
  await t.notThrowsAsync(text);
});

test('[G14] a call that its upstream has not answered yet is refused when its key is revoked', async (t) => {
  let arrived = () => {};
  const asked = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  const silent = createServer(() => arrived());
  await listen(silent);
  t.teardown(() => {
    silent.closeAllConnections();
    silent.close();
  });
  const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/mcp`;
  const rig = await Rig.start(t, { routes: [credentialFree({ name: 'repo_wiki', url })] });
  const key = await rig.mint({ servers: ['repo_wiki'] });
  const answer = rig.post('/repo_wiki/mcp', initialize, admission(key));
  await asked;
  await rig.admin('POST', '/key/delete', { keys: [key] });
  const { status } = await answer;
  t.is(status, 401);
});

test('[G24] a session goes on under the value that its key was rotated to, and under no other key', async (t) => {
  const { rig, key, open } = await setUp(t);
  const { stream, session } = await open(key);
  const rotated = await rig.admin('POST', '/key/rotate', { key, overlap: '1h' });
  const list = (value: string) =>
    rig.post('/repo_wiki/mcp', rpc('tools/list'), { ...session, ...admission(value) });
  for (const value of [rotated.body.key, key]) t.is((await list(value)).status, 200);
  t.is((await list(await rig.mint({ servers: ['repo_wiki'] }))).status, 404);
  await stream.body?.cancel();
});
