import { readFileSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { readRuntimeFile } from '../../../src/core/host/runtime/runtime-file.ts';
import { SqliteReader } from '../../../src/core/kernel/log/sqlite-reader.ts';
import { fakeDisk, startChild } from '../../support/disk.ts';
import { startUpstream } from '../../support/mcp-upstream.ts';
import { answerEmpty, startScripted } from '../../support/scripted-upstream.ts';
import { tempDir } from '../../support/temp.ts';
import { admission, initialize, MEDIA, rpc } from './rig.ts';

const binary = new URL('../../../bin/holdfast.js', import.meta.url);
const source = (path: string) => JSON.stringify(new URL(`../../../src/${path}`, import.meta.url).pathname);

/** A gateway in a process of its own, on a disk that the test holds and fills. */
async function startOn(t: ExecutionContext, upstream: string, data = {}) {
  const dir = tempDir(t);
  const config = join(dir, 'plugins.config.ts');
  writeFileSync(
    config,
    `import { defineConfig } from ${source('index.ts')};
     import { credentialFree, gateway } from ${source('plugins/gateway/index.ts')};
     const routes = [credentialFree({ name: 'repo_wiki', url: ${JSON.stringify(upstream)} })];
     const plugins = [gateway({ port: 0, probeEveryMs: 0, routes })];
     export default defineConfig({ plugins, data: ${JSON.stringify(data)} });`,
  );
  const disk = fakeDisk(dir);
  const dataDir = join(dir, 'data');
  const child = startChild(t, binary, ['start', '--data-dir', dataDir, '--config', config], disk.env);
  await child.line(/Holdfast is ready/);
  const url = readRuntimeFile(dataDir)?.surfaces.gateway?.url ?? '';
  const post = (path: string, body: object, headers: Record<string, string>) =>
    fetch(`${url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: MEDIA, ...headers },
      body: JSON.stringify(body),
    });
  const master = {
    authorization: `Bearer ${readFileSync(join(dataDir, 'secrets', 'master-key'), 'utf8').trim()}`,
  };
  const made = await post('/key/generate', { object_permission: { mcp_servers: ['repo_wiki'] } }, master);
  const { key } = (await made.json()) as { key: string };
  return { child, disk, dataDir, url, post, master, key };
}

test('[C5] while the disk of the log is full calls are refused with 503, none is decided unlogged, and all goes on after', async (t) => {
  const upstream = await startUpstream(t, true);
  const { child, disk, dataDir, post, master, key } = await startOn(t, upstream.url);
  const begin = () => post('/repo_wiki/mcp', initialize, admission(key));
  t.is((await begin()).status, 200);

  disk.fill();
  let refused = await begin();
  while (refused.status === 200) {
    await wait(20); // an admitted call is on its way to the log when it is passed on: the first ones find it open
    refused = await begin();
  }
  t.is(refused.status, 503);
  t.true(Number(refused.headers.get('retry-after')) > 0);
  t.regex(await refused.text(), /The log cannot be written: .*full/);
  const asked = upstream.asked.length;
  t.is((await begin()).status, 503);
  t.is(
    (await post('/repo_wiki/mcp', initialize, admission('nobody-knows-this-one'))).status,
    503,
    'nor is anybody turned away unlogged',
  );
  const change = await post('/key/update', { key, rpm_limit: 1 }, master);
  t.is(change.status, 503);
  t.like(((await change.json()) as { error: object }).error, { type: 'internal_server_error', code: '503' });
  t.is(upstream.asked.length, asked, 'what is refused is not passed on');

  disk.free();
  let after = await begin();
  while (after.status === 503) {
    await wait(50);
    after = await begin();
  }
  t.is(after.status, 200);
  t.is((await post('/key/update', { key, rpm_limit: 1 }, master)).status, 200);
  await child.kill('SIGTERM');
  const reader = new SqliteReader(dataDir);
  t.teardown(() => reader.close());
  const records = await Array.fromAsync(reader.read());
  const forwarded = records.filter(({ effects }) => effects.some(({ type }) => type === 'gateway.forward'));
  t.is(forwarded.length, upstream.asked.length, 'what the upstream was asked is in the log, each call of it');
  t.is(records.filter(({ event }) => event.type === 'KEY_UPDATED').length, 1);
});

test('[C5,G23] while the disk of the log hangs calls are refused with 503 in time, open streams go on, and all recovers by itself', async (t) => {
  const streams = new Set<ServerResponse>();
  const upstream = await startScripted(t, (response, heard, request) => {
    if (heard.method !== 'GET') return answerEmpty(response, heard, request);
    streams.add(response);
    return response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
  });
  const { child, disk, dataDir, url, post, master, key } = await startOn(t, upstream.url, {
    patienceMs: 3_000,
  });
  const first = await post('/repo_wiki/mcp', initialize, admission(key));
  await first.text();
  const session = { ...admission(key), 'mcp-session-id': first.headers.get('mcp-session-id') ?? '' };
  const stream = await fetch(`${url}/repo_wiki/mcp`, { headers: { ...session, accept: MEDIA } });
  const events = stream.body?.getReader();
  const heard = async (text: string) => {
    for (const one of streams) one.write(`data: ${text}\n\n`);
    const { value } = (await events?.read()) ?? {};
    return Buffer.from(value ?? []).toString();
  };
  t.is(await heard('before'), 'data: before\n\n');

  disk.hold();
  const list = () => post('/repo_wiki/mcp', rpc('tools/list'), session);
  const change = await post('/key/update', { key, rpm_limit: 9 }, master);
  t.is(change.status, 503, 'what waits for the disk is answered, though nobody knows what became of it');
  t.regex(await change.text(), /has not taken a commit for 3/);
  const refused = await list();
  t.is(refused.status, 503);
  t.true(Number(refused.headers.get('retry-after')) > 0);
  t.regex(await refused.text(), /The log cannot be written: the disk has not taken a commit for 3/);
  const asked = upstream.heard.length;
  t.is((await list()).status, 503);
  t.is(upstream.heard.length, asked, 'what is refused is not passed on');
  t.is(await heard('meanwhile'), 'data: meanwhile\n\n');

  disk.release();
  let after = await list();
  while (after.status === 503) {
    await wait(20);
    after = await list();
  }
  t.is(after.status, 200);
  t.is(await heard('after'), 'data: after\n\n');
  await events?.cancel();
  await child.kill('SIGTERM');
  const reader = new SqliteReader(dataDir);
  t.teardown(() => reader.close());
  const records = await Array.fromAsync(reader.read());
  t.is(records.filter(({ event }) => event.type === 'KEY_UPDATED').length, 1, 'what hung became durable');
  const forwarded = records.filter(({ effects }) => effects.some(({ type }) => type === 'gateway.forward'));
  t.is(forwarded.length, upstream.heard.length);
});
