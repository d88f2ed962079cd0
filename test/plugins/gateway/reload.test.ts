import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { startUpstream } from '../../support/mcp-upstream.ts';
import { tempDir } from '../../support/temp.ts';
import { PATIENCE_MS } from '../../support/until.ts';
import { FileRig } from './file-rig.ts';
import { rpc } from './rig.ts';

const free = (name: string, url: string) => `credentialFree({ name: '${name}', url: '${url}' }),`;

test('[G24] a changed file is noticed and swapped in, and a session goes on', async (t) => {
  const upstream = await startUpstream(t);
  const rig = await FileRig.open(t, free('repo_wiki', upstream.url));
  const key = await rig.mint({ servers: ['repo_wiki', 'memory'] });
  const client = await rig.connect(t, 'repo_wiki', key);
  rig.write(free('repo_wiki', upstream.url) + free('memory', upstream.url));
  const deadline = Date.now() + PATIENCE_MS;
  while (!('memory' in (await rig.serving())) && Date.now() < deadline)
    await new Promise((done) => setTimeout(done, 20));
  t.deepEqual(Object.keys(await rig.serving()), ['memory', 'repo_wiki']);
  const answer = await client.callTool({ name: 'repo_wiki-echo', arguments: { text: 'still here' } });
  t.deepEqual(answer.content, [{ type: 'text', text: 'still here' }]);
  const other = await rig.connect(t, 'memory', key);
  t.is((await other.listTools()).tools.length, 2);
  const calls = (await rig.records()).filter(({ event }) => event.type === 'CALL');
  t.is(calls[0]?.event.table, 1);
  t.is(calls.at(-1)?.event.table, 2);
});

test('[G2,G24] a bad file and bad entries leave the last good routes serving, and say what is wrong', async (t) => {
  const rig = await FileRig.open(
    t,
    free('library_docs', 'http://127.0.0.1:9/one') + free('repo_wiki', 'http://127.0.0.1:9/two'),
  );
  const good = { library_docs: 'http://127.0.0.1:9/one', repo_wiki: 'http://127.0.0.1:9/two' };
  const broken = await rig.reload('credentialFree({');
  t.is(broken.status, 422);
  t.regex(broken.body.details.reason, /could not be loaded/);
  t.false(broken.body.details.reason.includes('fresh='));
  t.deepEqual(await rig.serving(), good);
  t.like(rig.runtime.health().gateway, { ok: false });

  const entries = await rig.reload(
    free('library-docs', 'http://127.0.0.1:9/one') +
      free('repo_wiki', 'ftp://127.0.0.1/') +
      free('memory', 'http://127.0.0.1:9/three') +
      free('cluster', 'http://127.0.0.1:9/a') +
      free('cluster', 'http://127.0.0.1:9/b'),
  );
  t.is(entries.status, 200);
  t.deepEqual(await rig.serving(), { ...good, memory: 'http://127.0.0.1:9/three' });
  const reasons = Object.fromEntries(entries.body.rejected.map(({ name, reason }: any) => [name, reason]));
  t.regex(reasons['library-docs'], /name: .*write _ instead of -/);
  t.regex(reasons.repo_wiki, /url: /);
  t.regex(reasons.cluster, /2 entries have this name/);
  const { reason } = rig.runtime.health().gateway as { reason: string };
  t.regex(reason, /route library-docs: /);

  const fixed = await rig.reload(free('repo_wiki', 'http://127.0.0.1:9/two'));
  t.deepEqual(fixed.body.rejected, []);
  t.like(rig.runtime.health().gateway, { ok: true });
  t.regex(
    String((rig.runtime.health().gateway as { text?: string }).text),
    /^\d+ routes?, \d+ with an upstream/,
  );
});

test('[G2] at a first start a bad entry is left out and listed, and the others serve', async (t) => {
  const rig = await FileRig.open(
    t,
    free('web-search', 'http://127.0.0.1:9/') + free('memory', 'http://127.0.0.1:9/'),
  );
  t.deepEqual(await rig.serving(), { memory: 'http://127.0.0.1:9/' });
  const { body } = await rig.control('/gateway/routes');
  t.is(body.rejected[0].name, 'web-search');
});

test('[G24] a rollback restores entry and URL with its query, outlives a restart, and ends with the next change', async (t) => {
  const folder = tempDir(t);
  const upstream = await startUpstream(t);
  const first = `${upstream.url}?key=canary-query`;
  const rig = await FileRig.open(t, free('web_search', first), folder);
  await rig.reload(free('web_search', 'http://127.0.0.1:9/mcp'));
  const back = await rig.control('/gateway/rollback', { route: 'web_search' });
  t.is(back.status, 200);
  t.deepEqual(back.body.changes, [{ name: 'web_search', what: 'rolled_back', settings: ['url'] }]);
  const key = await rig.mint({ servers: ['web_search'] });
  t.is((await (await rig.connect(t, 'web_search', key)).listTools()).tools.length, 2);
  t.false(JSON.stringify(await rig.records()).includes('canary-query'));
  await rig.runtime.stop('restart');

  const again = await FileRig.open(t, free('web_search', 'http://127.0.0.1:9/mcp'), folder);
  t.deepEqual(await again.serving(), { web_search: upstream.url });
  t.is((await (await again.connect(t, 'web_search', key)).listTools()).tools.length, 2);
  await again.reload(free('web_search', 'http://127.0.0.1:9/other'));
  t.deepEqual(await again.serving(), { web_search: 'http://127.0.0.1:9/other' });
  const none = await again.control('/gateway/rollback', { route: 'memory' });
  t.is(none.status, 409);
  t.is(none.body.details.reason, 'there is no route memory');
});

test('[G1,G7,G19] a token of the secrets store is sent, shared by two routes, rotated, and never shown', async (t) => {
  const folder = tempDir(t);
  const token = join(folder, 'secrets', 'mcp', 'columnar', 'token');
  mkdirSync(join(token, '..'), { recursive: true });
  writeFileSync(token, 'canary-token', { mode: 0o600 });
  const upstream = await startUpstream(t);
  const entry = (name: string) =>
    `overwrite({ name: '${name}', url: '${upstream.url}', secret: 'mcp/columnar#token' }),`;
  const rig = await FileRig.open(t, entry('columnar_ro') + entry('columnar_rw'), folder);
  for (const name of ['columnar_ro', 'columnar_rw']) {
    const client = await rig.connect(t, name, await rig.mint({ servers: [name] }));
    t.is((await client.listTools()).tools.length, 2);
  }
  t.true(upstream.asked.every(({ headers }) => headers.authorization === 'Bearer canary-token'));
  const view = await rig.control('/gateway/routes');
  t.is(view.body.routes[0].secret, 'store:mcp/columnar#token');
  t.false(JSON.stringify([view.body, await rig.records()]).includes('canary-token'));
});

test('[G7] a stored token that carries the scheme is refused at load, and a missing one is a clear 503', async (t) => {
  const folder = tempDir(t);
  const secrets = join(folder, 'secrets', 'mcp');
  mkdirSync(secrets, { recursive: true });
  writeFileSync(join(secrets, 'prefixed'), 'Bearer canary', { mode: 0o600 });
  const entry = (name: string, secret: string) =>
    `overwrite({ name: '${name}', url: 'http://127.0.0.1:9/', secret: 'mcp#${secret}' }),`;
  const rig = await FileRig.open(t, entry('web_crawl', 'prefixed') + entry('media_gen', 'nothing'), folder);
  const { body } = await rig.control('/gateway/routes');
  t.is(body.rejected[0].name, 'web_crawl');
  t.regex(body.rejected[0].reason, /mcp#prefixed: .*begins with the word Bearer.*7 characters too long/);
  t.false(JSON.stringify(body).includes('canary'));
  const headers = { 'x-gateway-api-key': `Bearer ${await rig.mint({ servers: ['media_gen'] })}` };
  const answer = await rig.post(
    '/media_gen/mcp',
    rpc('initialize', { protocolVersion: '2025-06-18' }),
    headers,
  );
  t.is(answer.status, 503);
});

test('[G24] a rollback restores entry, environment entry and secret reference together', async (t) => {
  const folder = tempDir(t);
  const secrets = join(folder, 'secrets', 'mcp');
  mkdirSync(secrets, { recursive: true });
  for (const name of ['one', 'two']) writeFileSync(join(secrets, name), `token-${name}`, { mode: 0o600 });
  const upstream = await startUpstream(t);
  const variable = 'HOLDFAST_MCP_ROLLED_BACK_URL';
  const entry = (secret: string, more = '') =>
    `overwrite({ name: 'rolled_back', secret: 'mcp#${secret}'${more} }),`;
  t.teardown(() => delete process.env[variable]);
  process.env[variable] = upstream.url;
  const before = await FileRig.open(t, entry('one'), folder);
  await before.runtime.stop('restart');
  process.env[variable] = 'http://127.0.0.1:9/mcp';
  const rig = await FileRig.open(t, entry('two', ', timeoutMs: 1_000'), folder);
  t.deepEqual(await rig.serving(), { rolled_back: 'http://127.0.0.1:9/mcp' });

  const back = await rig.control('/gateway/rollback', { route: 'rolled_back' });
  t.deepEqual([...back.body.changes[0].settings].sort(), ['secret', 'timeoutMs', 'url']);
  const client = await rig.connect(t, 'rolled_back', await rig.mint({ servers: ['rolled_back'] }));
  t.is((await client.listTools()).tools.length, 2);
  t.is(upstream.asked.at(-1)?.headers.authorization, 'Bearer token-one');
});
