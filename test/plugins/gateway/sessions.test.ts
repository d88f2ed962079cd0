import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { credentialFree } from '../../../src/plugins/gateway/index.ts';
import { keyActor, keyId } from '../../../src/plugins/gateway/keys/virtual-keys.ts';
import { startSessionServer, startUpstream, type Upstream } from '../../support/mcp-upstream.ts';
import { resultFor, startScripted } from '../../support/scripted-upstream.ts';
import { tempDir } from '../../support/temp.ts';
import { admission, initialize, Rig, rpc } from './rig.ts';
import { talker } from './talkers.ts';

const routesTo = (upstream: Upstream) => [
  credentialFree({ name: 'wiki', url: upstream.url }),
  credentialFree({ name: 'atlas', url: upstream.url }),
];

function keyFile(t: ExecutionContext<unknown>): string {
  const file = join(tempDir(t), 'session-key');
  writeFileSync(file, randomBytes(32), { mode: 0o600 });
  return file;
}

async function open(rig: Rig, key: string): Promise<Record<string, string>> {
  const answer = await rig.post('/wiki/mcp', initialize, admission(key));
  return { ...admission(key), 'mcp-session-id': answer.headers.get('mcp-session-id') ?? '' };
}

const echo = rpc('tools/call', { name: 'wiki-echo', arguments: { text: 'still here' } });

async function works(t: ExecutionContext<unknown>, rig: Rig, session: Record<string, string>): Promise<void> {
  const answer = await rig.post('/wiki/mcp', echo, session);
  t.is(answer.status, 200);
  t.regex(await answer.text(), /still here/);
}

test('[G18] a session goes on after a restart', async (t) => {
  const routes = routesTo(await startUpstream(t));
  const dataDir = tempDir(t);
  const first = await Rig.start(t, { routes }, dataDir);
  const session = await open(first, await first.mint({ servers: ['wiki'] }));
  await first.runtime.stop('test');
  await works(t, await Rig.start(t, { routes }, dataDir), session);
});

test('[G18] a session goes on in another process that has the same session key file', async (t) => {
  const routes = routesTo(await startUpstream(t));
  const sessionKeyFiles = [keyFile(t)];
  const [here, there] = await Promise.all([
    Rig.start(t, { routes, sessionKeyFiles }),
    Rig.start(t, { routes, sessionKeyFiles }),
  ]);
  const key = await here.mint({ servers: ['wiki'] });
  await there.mint({ servers: ['wiki'] }, key);
  const session = await open(here, key);
  await works(t, there, session);
  await works(t, here, session);
});

test('[G18] an id that is unknown, changed, of another key or another route is 404, and never goes up', async (t) => {
  const upstream = await startUpstream(t);
  const rig = await Rig.start(t, { routes: routesTo(upstream) });
  const key = await rig.mint({ servers: ['wiki', 'atlas'] });
  const session = await open(rig, key);
  const id = session['mcp-session-id'] ?? '';
  const asked = upstream.asked.length;
  const refused = async (path: string, headers: Record<string, string>) => {
    const answer = await rig.post(path, echo, headers);
    t.is(answer.status, 404);
    t.like(await answer.json(), { id: 7, error: { code: -32_001 } });
  };
  const changed = `${id.slice(0, -4)}${id.at(-4) === 'A' ? 'B' : 'A'}${id.slice(-3)}`;
  for (const foreign of [
    'x',
    randomBytes(80).toString('base64url'),
    changed,
    id.slice(0, 40),
    'y'.repeat(9_000),
  ]) {
    await refused('/wiki/mcp', { ...session, 'mcp-session-id': foreign });
  }
  await refused('/atlas/mcp', session);
  await refused('/wiki/mcp', { ...session, ...admission(await rig.mint({ servers: ['wiki'] })) });
  t.is(upstream.asked.length, asked);
});

test('[G18] session keys are rotated with an overlap: old sessions go on until the old file is taken out', async (t) => {
  const routes = routesTo(await startUpstream(t));
  const [old, fresh] = [keyFile(t), keyFile(t)];
  const dataDir = tempDir(t);
  const before = await Rig.start(t, { routes, sessionKeyFiles: [old] }, dataDir);
  const key = await before.mint({ servers: ['wiki'] });
  const session = await open(before, key);
  await before.runtime.stop('test');
  const during = await Rig.start(t, { routes, sessionKeyFiles: [fresh, old] }, dataDir);
  await works(t, during, session);
  const newer = await open(during, key);
  await during.runtime.stop('test');
  const then = await Rig.start(t, { routes, sessionKeyFiles: [fresh] }, dataDir);
  await works(t, then, newer);
  t.is((await then.post('/wiki/mcp', echo, session)).status, 404);
});

test('[G18] when its upstream forgot the session, the client hears 404 and begins another one', async (t) => {
  const upstream = await startUpstream(t);
  const rig = await Rig.start(t, { routes: routesTo(upstream) });
  const key = await rig.mint({ servers: ['wiki'] });
  const session = await open(rig, key);
  upstream.forget();
  t.is((await rig.post('/wiki/mcp', echo, session)).status, 404);
  await works(t, rig, await open(rig, key));
});

test('[G18] an upstream that answers 400 to a session it has forgotten is 404 for the client, and another 400 stays one', async (t) => {
  const wiki = await startSessionServer(t, { serve: () => talker('wiki', [], []), unknown: 400 });
  const strict = await startScripted(t, (response, heard) => {
    const { method } = JSON.parse(heard.text || '{}') as { method?: string };
    response.setHeader('mcp-session-id', 'one').setHeader('content-type', 'application/json');
    if (method === 'tools/call') response.writeHead(400);
    response.end(resultFor(heard, { protocolVersion: '2025-06-18', capabilities: {} }));
  });
  const rig = await Rig.start(t, {
    routes: [
      credentialFree({ name: 'wiki', url: wiki.url }),
      credentialFree({ name: 'strict', url: strict.url }),
    ],
  });
  const key = await rig.mint({ servers: ['wiki', 'strict'] });
  const session = await open(rig, key);
  wiki.forget();
  const answer = await rig.post('/wiki/mcp', rpc('tools/list'), session);
  t.is(answer.status, 404);
  t.regex(await answer.text(), /Session not found/);
  t.is((await rig.post('/wiki/mcp', rpc('tools/list'), await open(rig, key))).status, 200);
  const begun = await rig.post('/strict/mcp', initialize, admission(key));
  const other = { ...admission(key), 'mcp-session-id': begun.headers.get('mcp-session-id') ?? '' };
  t.is((await rig.post('/strict/mcp', rpc('tools/call', { name: 'strict-echo' }), other)).status, 400);
  t.is(strict.heard.filter(({ text }) => text.includes('tools/call')).length, 1);
});

test('[G18] an upstream whose session is longer than what can be sealed is refused, and not only after a restart', async (t) => {
  const upstream = await startScripted(t, (response, heard) =>
    response
      .writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 's'.repeat(1_025) })
      .end(resultFor(heard, {})),
  );
  const rig = await Rig.start(t, { routes: [credentialFree({ name: 'wiki', url: upstream.url })] });
  const answer = await rig.post('/wiki/mcp', initialize, admission(await rig.mint({ servers: ['wiki'] })));
  t.is(answer.status, 502);
  t.regex(await answer.text(), /names a session too long to keep/);
});

test('[G6,G18] a client without a session hears first that its key was revoked', async (t) => {
  const { url } = await startUpstream(t, true);
  const rig = await Rig.start(t, { routes: [credentialFree({ name: 'notes', url })] });
  const value = await rig.mint({ servers: ['notes'] });
  const list = async () => (await rig.post('/notes/mcp', rpc('tools/list'), admission(value))).status;
  t.is(await list(), 400);
  const revoked = { type: 'KEY_REVOKED' as const, at: Date.now() };
  await rig.runtime.services.actors.send(keyActor, keyId(value), revoked).durable();
  t.is(await list(), 401);
  const [refused] = (await rig.records()).filter(({ event }) => event.type === 'CALL');
  t.like(refused?.effects[0], { type: 'gateway.answer', params: { rule: 'revoked' } });
});
