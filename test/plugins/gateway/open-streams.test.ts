import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
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

test('[G14,G23] a revoked key ends the stream of a client that has stopped reading', async (t) => {
  const left = Promise.withResolvers<void>();
  const stalled = Promise.withResolvers<void>();
  const event = `data: ${'x'.repeat(64 * 1024)}\n\n`;
  const endless = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).on('close', left.resolve);
    let written = performance.now();
    const send = () => {
      written = performance.now();
      response.write(event);
    };
    response.on('drain', send);
    send();
    // Nobody between here and the client takes any more.
    const look = setInterval(() => performance.now() - written > 300 && stalled.resolve(), 50);
    response.on('close', () => clearInterval(look));
  });
  await listen(endless);
  t.teardown(() => endless.close());
  const url = `http://127.0.0.1:${(endless.address() as AddressInfo).port}/mcp`;
  const rig = await Rig.start(t, { routes: [credentialFree({ name: 'endless', url })] });
  const key = await rig.mint({ servers: ['endless'] });
  const asked = request(`${rig.url}/endless/mcp`, {
    method: 'POST',
    agent: false,
    headers: { ...admission(key), accept: MEDIA, 'content-type': 'application/json' },
  }).end(JSON.stringify(initialize));
  const [stream] = await once(asked, 'response');
  const closed = new Promise((resolve) => stream.on('error', () => {}).on('close', resolve));
  t.is(stream.statusCode, 200);
  await stalled.promise;
  await rig.admin('POST', '/key/delete', { keys: [key] });
  await left.promise;
  const ends = (await rig.records()).filter(({ event }) => event.type === 'CALL_ENDED');
  t.deepEqual(
    ends.map(({ event }) => event.outcome),
    ['cut'],
  );
  stream.resume();
  await closed;
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
