import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { readRuntimeFile } from '../../../src/core/host/runtime/runtime-file.ts';
import { startChild } from '../../support/disk.ts';
import { startUpstream } from '../../support/mcp-upstream.ts';
import { tempDir } from '../../support/temp.ts';
import { admission, initialize, MEDIA, rpc } from './rig.ts';

const binary = new URL('../../../bin/holdfast.js', import.meta.url);
const source = (path: string) => JSON.stringify(new URL(`../../../src/${path}`, import.meta.url).pathname);

async function start(t: ExecutionContext<unknown>, dataDir: string, config: string) {
  const child = startChild(t, binary, ['start', '--data-dir', dataDir, '--config', config], {
    HOLDFAST_GATEWAY_PORT: '0',
    NODE_NO_WARNINGS: '1',
  });
  while (child.process.exitCode === null) {
    const file = readRuntimeFile(dataDir);
    const url = file?.surfaces.gateway?.url;
    if (file?.pid === child.process.pid && url) return { process: child.process, url };
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`the instance ended:\n${child.errors.join('\n')}`);
}

test('[G18] after kill -9 and a start the next call of a session succeeds', async (t) => {
  t.timeout(180_000);
  const upstream = await startUpstream(t);
  const dataDir = tempDir(t);
  const config = join(dataDir, 'plugins.config.ts');
  const route = JSON.stringify({ name: 'wiki', url: upstream.url });
  writeFileSync(
    config,
    `import { defineConfig } from ${source('index.ts')};
     import { credentialFree, gateway } from ${source('plugins/gateway/index.ts')};
     export default defineConfig({ plugins: [gateway({ routes: [credentialFree(${route})] })] });`,
  );
  const first = await start(t, dataDir, config);
  const master = readFileSync(join(dataDir, 'secrets', 'master-key'), 'utf8').trim();
  const made = await fetch(`${first.url}/key/generate`, {
    method: 'POST',
    headers: { authorization: `Bearer ${master}`, 'content-type': 'application/json' },
    body: JSON.stringify({ key_alias: 'test', object_permission: { mcp_servers: ['wiki'] } }),
  });
  const { key } = (await made.json()) as { key: string };
  const headers = { 'content-type': 'application/json', accept: MEDIA, ...admission(key) };
  const post = (url: string, body: object, more: Record<string, string> = {}) =>
    fetch(`${url}/wiki/mcp`, {
      method: 'POST',
      headers: { ...headers, ...more },
      body: JSON.stringify(body),
    });
  const opened = await post(first.url, initialize);
  await opened.text();
  const session = { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' };
  first.process.kill('SIGKILL');
  await new Promise((done) => first.process.once('exit', done));
  const second = await start(t, dataDir, config);
  const call = rpc('tools/call', { name: 'wiki-echo', arguments: { text: 'still here' } });
  const answer = await post(second.url, call, session);
  t.is(answer.status, 200);
  t.regex(await answer.text(), /still here/);
});
