import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { diagnose } from '../../../src/plugins/gateway/doctor/symptoms.ts';
import { credentialFree, relay } from '../../../src/plugins/gateway/index.ts';
import { spawnHoldfast, writeConfig } from '../../support/cli.ts';
import { listen, startUpstream } from '../../support/mcp-upstream.ts';
import { tempDir } from '../../support/temp.ts';
import { admission, initialize, Rig } from './rig.ts';

const plugin = JSON.stringify(new URL('../../../src/plugins/gateway/index.ts', import.meta.url).pathname);

/** A folder with a configuration of these routes. */
function folder(t: ExecutionContext, routes = "relay({ name: 'memory' })"): string {
  const cwd = tempDir(t);
  writeConfig(cwd, `export default defineConfig({ plugins: [gateway({ routes: [${routes}] })] });`, [
    `import { credentialFree, gateway, relay } from ${plugin};`,
  ]);
  return cwd;
}

const doctor = (t: ExecutionContext, cwd: string, ...args: string[]) =>
  spawnHoldfast(t, ['gateway', 'doctor', '--data-dir', join(cwd, 'data'), ...args], { cwd }).ended;

test.serial('[G22] the command explains a symptom, and says so when it knows none', async (t) => {
  t.timeout(300_000);
  const cwd = folder(t);
  const known = await doctor(t, cwd, '--symptom', 'the connection answers 307 Temporary Redirect');
  t.is(known.code, 0, known.err);
  t.regex(known.out, /The URL ends with a slash.*\n.*Drop the slash/);
  const json = await doctor(t, cwd, '--symptom', '401 Malformed API Key passed in', '--json');
  t.is(json.code, 0, json.err);
  t.is(JSON.parse(json.out).symptom.diagnosis.code, 'key_without_prefix');
  const unknown = await doctor(t, cwd, '--symptom', 'it is slow today');
  t.is(unknown.code, 1);
  t.regex(unknown.out, /This symptom is not known/);
  const nothing = await doctor(t, cwd);
  t.not(nothing.code, 0);
  t.regex(nothing.err, /--key-file, a --symptom, or a client file with --entry/);
});

test.serial(
  '[G21,G22] the command checks the entries of a client file, and shows no value of them',
  async (t) => {
    t.timeout(300_000);
    const cwd = folder(t);
    const file = join(cwd, 'client.json');
    const key = 'sk-secret-value';
    const write = (url: string, headers: object) =>
      writeFileSync(file, JSON.stringify({ mcpServers: { mine: { type: 'http', url, headers } } }));
    const header = { 'x-gateway-api-key': `Bearer ${key}` };
    write('https://mcp.example.net/memory/mcp/', { ...header, Authorization: `Bearer ${key}` });
    const faulty = await doctor(t, cwd, '--entry', file);
    t.is(faulty.code, 1, faulty.err);
    t.regex(faulty.out, /^mine$/m);
    t.regex(faulty.out, /Drop the slash/);
    t.regex(faulty.out, /take Authorization out of the entry/);
    t.false((faulty.out + faulty.err).includes(key));
    write('https://mcp.example.net/memory/mcp', header);
    const good = await doctor(t, cwd, '--entry', file);
    t.is(good.code, 0, good.out + good.err);
    const missing = await doctor(t, cwd, '--entry', join(cwd, 'nothing.json'));
    t.not(missing.code, 0);
    t.regex(missing.err, /can not be read/);
  },
);

test('[G11,G12,G13,G22] what a wrong URL is really answered from outside is diagnosed by its row', async (t) => {
  t.timeout(300_000);
  const silent = createServer((_request, response) => response.writeHead(404).end());
  await listen(silent);
  t.teardown(() => {
    silent.closeAllConnections();
    silent.close();
  });
  const { port } = silent.address() as AddressInfo;
  const rig = await Rig.start(t, {
    routes: [
      credentialFree({ name: 'wiki', url: (await startUpstream(t)).url }),
      relay({ name: 'memory', url: `http://127.0.0.1:${port}/mcp` }),
    ],
  });
  const key = admission(await rig.mint({ servers: ['wiki', 'memory'] }));
  const post = (path: string) => rig.post(path, initialize, key);
  const get = (path: string) => fetch(`${rig.url}${path}`, { headers: key, redirect: 'manual' });
  const wellKnown = '/.well-known/oauth-protected-resource';
  const rows: readonly (readonly [path: string, ask: typeof get, status: number, code: string])[] = [
    ['/wiki/mcp/', post, 307, 'trailing_slash'],
    ['/wiki/sse', get, 404, 'wrong_sse_path'],
    ['/wiki/mcp/sse', get, 404, 'wrong_sse_path'],
    ['/sse', get, 404, 'wrong_sse_path'],
    ['/mcp', post, 404, 'wrong_url'],
    ['/none/mcp', post, 404, 'wrong_url'],
    [`${wellKnown}/memory`, get, 404, 'wrong_document_url'],
    [`${wellKnown}/wiki/mcp`, get, 404, 'wrong_document_url'],
    [`${wellKnown}/memory/mcp`, get, 502, 'no_document'],
  ];
  for (const [path, ask, status, code] of rows) {
    const answer = await ask(path);
    t.is(answer.status, status, path);
    const said = `${answer.status} on ${path}: ${await answer.text()}`;
    t.is(diagnose(said)?.code, code, said);
  }
});

test('[G22] the command finds from outside that discovery fails, and that an entry leads nowhere', async (t) => {
  t.timeout(300_000);
  const silent = createServer((_request, response) =>
    response.writeHead(401, { 'www-authenticate': 'Bearer' }).end(),
  );
  await listen(silent);
  t.teardown(() => {
    silent.closeAllConnections();
    silent.close();
  });
  const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/mcp`;
  const rig = await Rig.start(t, { routes: [relay({ name: 'memory', url })] });
  const cwd = folder(t, "relay({ name: 'memory' }), credentialFree({ name: 'gone' })");
  const keyFile = join(cwd, 'key');
  writeFileSync(keyFile, await rig.mint({ servers: ['memory'] }), { mode: 0o600 });
  const { code, out, err } = await doctor(t, cwd, '--key-file', keyFile, '--url', rig.url);
  t.is(code, 1, err);
  t.regex(out, /memory +sick: discovery answers 502/);
  t.regex(out, /serves no protected-resource document/);
  t.regex(out, /gone +sick: initialize answers 404/);
  t.regex(out, /The URL names no server behind the gateway/);
});
