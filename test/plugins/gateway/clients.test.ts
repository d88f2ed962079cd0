import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import type { HoldfastError } from '../../../src/core/kernel/errors/holdfast-error.ts';
import { lockDataDir } from '../../../src/core/kernel/log/lock.ts';
import { clientConfigCommand } from '../../../src/plugins/gateway/commands/client-config.ts';
import { baseUrl } from '../../../src/plugins/gateway/commands/target.ts';
import { credentialFree, overwrite, relay } from '../../../src/plugins/gateway/index.ts';
import { tempDir } from '../../support/temp.ts';

const command = clientConfigCommand({
  port: 4000,
  publicUrl: 'https://mcp.example.net/',
  routes: [
    overwrite({ name: 'library_docs' }),
    relay({ name: 'memory', callbackPort: 51_338 }),
    relay({ name: 'cluster', callbackPort: 51_337, scopes: ['mcp-cluster', 'groups', 'offline_access'] }),
    credentialFree({ name: 'repo_wiki' }),
  ],
});

async function run(flags: Readonly<Record<string, unknown>>) {
  const out: string[] = [];
  const notes: string[] = [];
  const context = {
    dataDir: '/nonexistent', // nothing runs there
    signal: new AbortController().signal,
    json: false,
    print: (line: string) => out.push(line),
    note: (line: string) => notes.push(line),
  };
  await command.run([], { client: 'cli', scope: 'user', ...flags }, context as never);
  return { out, notes };
}

test('[G21] the CLI client gets one command a route, flags before the name, callback ports on identity routes alone', async (t) => {
  const { out } = await run({});
  const header = `--header 'x-gateway-api-key: Bearer \${HOLDFAST_VIRTUAL_KEY}' --transport http --scope user`;
  t.deepEqual(out, [
    `claude mcp add ${header} library_docs https://mcp.example.net/library_docs/mcp`,
    `claude mcp add ${header} --callback-port 51338 memory https://mcp.example.net/memory/mcp`,
    `claude mcp add ${header} --callback-port 51337 cluster https://mcp.example.net/cluster/mcp`,
    `claude mcp add ${header} repo_wiki https://mcp.example.net/repo_wiki/mcp`,
  ]);
  t.false(out.join().includes('Authorization'));
  t.regex((await run({ scope: 'local' })).out[0] ?? '', /--scope local /);
});

test('[G20,G21] where registering a client is refused, the fallback names one, and for cluster the scopes', async (t) => {
  const { out, notes } = await run({ registered: true, route: ['cluster'] });
  t.regex(out[0] ?? '', / --client-id mcp-public cluster /);
  t.true(notes.join('\n').includes('oauth.scopes of its entry to "mcp-cluster groups offline_access"'));
});

test('[G21] the desktop client gets the key-scoped routes, no space after the colon, and is told to restart', async (t) => {
  const { out, notes } = await run({ client: 'desktop' });
  const { mcpServers } = JSON.parse(out.join('\n'));
  t.deepEqual(Object.keys(mcpServers), ['library_docs', 'repo_wiki']);
  t.deepEqual(mcpServers.library_docs, {
    command: 'npx',
    args: [
      '-y',
      'mcp-remote',
      'https://mcp.example.net/library_docs/mcp',
      '--header',
      `x-gateway-api-key:\${HOLDFAST_VIRTUAL_KEY}`,
    ],
    env: { HOLDFAST_VIRTUAL_KEY: 'Bearer <virtual_key>' },
  });
  t.regex(notes.join('\n'), /memory is an identity route[\s\S]*restart it to reload/);
  await t.throwsAsync<HoldfastError>(run({ client: 'desktop', route: ['memory'] }), { code: 'HF_CLI_USAGE' });
});

test('[G19,G21] a key comes from a file and never from an argument', async (t) => {
  const file = join(tempDir(t), 'key');
  writeFileSync(file, 'sk-0123456789abcdef0123\n', { mode: 0o600 });
  const { out } = await run({ client: 'desktop', route: ['repo_wiki'], keyFile: file });
  t.is(
    JSON.parse(out.join('')).mcpServers.repo_wiki.env.HOLDFAST_VIRTUAL_KEY,
    'Bearer sk-0123456789abcdef0123',
  );
  t.false(command.flags?.some(({ flags }) => /--key(?!-file)/.test(flags)));
});

test('[G21] a port that each start chooses makes no entry that leads nowhere', async (t) => {
  const free = clientConfigCommand({ port: 0, routes: [overwrite({ name: 'library_docs' })] });
  const { signal } = new AbortController();
  const context = { json: false, dataDir: tempDir(t), signal, print: () => t.fail(), note: () => {} };
  const flags = { client: 'cli', scope: 'user' };
  await t.throwsAsync(async () => free.run([], flags, context as never), {
    code: 'HF_CLI_USAGE',
    message: /give --url/,
  });
});

test('[G21,G22] clients are pointed at the public base, else at where the running instance listens', (t) => {
  const dataDir = tempDir(t);
  const settings = { routes: [], port: 4000 };
  const surfaces = { gateway: { url: 'http://127.0.0.1:35221' } };
  const content = { pid: process.pid, startedAt: new Date(0).toISOString(), version: '0.1.0', surfaces };
  writeFileSync(join(dataDir, 'runtime.json'), JSON.stringify(content));
  t.is(
    baseUrl(undefined, settings, dataDir, 'x'),
    'http://127.0.0.1:4000',
    'it was left by one that was killed',
  );
  const unlock = lockDataDir(dataDir);
  t.teardown(unlock);
  t.is(baseUrl(undefined, settings, dataDir, 'x'), 'http://127.0.0.1:35221');
  const publicUrl = 'https://mcp.example.net/';
  t.is(baseUrl(undefined, { ...settings, publicUrl }, dataDir, 'x'), 'https://mcp.example.net');
  t.is(baseUrl('http://other:1', { ...settings, publicUrl }, dataDir, 'x'), 'http://other:1');
});
