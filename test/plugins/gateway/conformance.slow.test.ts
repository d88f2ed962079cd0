import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { credentialFree } from '../../../src/plugins/gateway/index.ts';
import { conformanceServer } from '../../support/conformance-server.ts';
import { listen, startSessionServer } from '../../support/mcp-upstream.ts';
import { tempDir } from '../../support/temp.ts';
import { admission, Rig } from './rig.ts';

const SUITE = resolve('node_modules/@modelcontextprotocol/conformance/dist/index.js');
const CLIENT = resolve('test/support/conformance-client.ts');
const LONGEST_MS = 55_000;

test('[G4,G23] the official suite passes through the gateway wherever the same server passes without it', async (t) => {
  t.timeout(LONGEST_MS + 5_000);
  const reference = await startSessionServer(t, {
    serve: conformanceServer,
    resumable: true,
    hosts: (port) => [`127.0.0.1:${port}`],
  });
  const route = credentialFree({ name: 'reference', url: reference.url, prefix: false });
  const rig = await Rig.start(t, { routes: [route] });
  const admitted = await admitting(t, `${rig.url}/reference/mcp`, await rig.mint({ servers: ['reference'] }));
  const [direct, through] = await Promise.all([runSuite(t, reference.url), runSuite(t, admitted)]);
  t.deepEqual(through, direct);
  const failed = Object.keys(direct).filter((check) => direct[check]?.includes('FAILURE'));
  t.deepEqual(failed, [], 'the reference is a good server');
  t.true(Object.keys(direct).length >= 30);
});

/** Those that are about the protocol between client and server; the others are about a client's login. */
const CLIENT_SCENARIOS = ['initialize', 'tools_call', 'elicitation-sep1034-client-defaults', 'sse-retry'];

test('[G4,G23] what the official suite wants of a client its servers see of the official client behind the gateway too', async (t) => {
  t.timeout(LONGEST_MS + 5_000);
  const servers = new Map<string, URL>();
  const forward = await startForward(t, servers);
  const names = CLIENT_SCENARIOS.map((scenario) => scenario.replaceAll('-', '_'));
  const routes = names.map((name) => credentialFree({ name, url: `${forward}/${name}`, prefix: false }));
  const rig = await Rig.start(t, { routes });
  const gateway = {
    CONFORMANCE_GATEWAY: rig.url,
    CONFORMANCE_FORWARD: forward,
    CONFORMANCE_KEY: await rig.mint({ servers: names }),
  };
  const seen = await Promise.all(
    CLIENT_SCENARIOS.map((scenario) =>
      suite(t, ['client', '--command', `${process.execPath} ${CLIENT}`, '--scenario', scenario], gateway),
    ),
  );
  for (const [index, checks] of seen.entries()) {
    const scenario = CLIENT_SCENARIOS[index];
    t.true(Object.keys(checks).length > 0, scenario);
    t.deepEqual(
      [...new Set(Object.values(checks).flat())],
      ['SUCCESS'],
      `${scenario} ${JSON.stringify(checks)}`,
    );
    t.true(servers.has(names[index] ?? ''), scenario);
  }
});

/** Leads each route to the server that its scenario has started; a PUT says where that is. @returns its base */
async function startForward(t: ExecutionContext<unknown>, servers: Map<string, URL>): Promise<string> {
  const shim = createServer(async (incoming, outgoing) => {
    const name = incoming.url?.slice(1) ?? '';
    if (incoming.method === 'PUT') {
      servers.set(name, new URL(Buffer.concat(await incoming.toArray()).toString()));
      return outgoing.end();
    }
    const url = servers.get(name);
    return url ? pass(incoming, outgoing, url, { host: url.host }) : outgoing.writeHead(404).end();
  });
  await listen(shim);
  t.teardown(() => {
    shim.closeAllConnections();
    shim.close();
  });
  return `http://127.0.0.1:${(shim.address() as AddressInfo).port}`;
}

/** Hands a request on and its answer back, both unchanged but for these headers. */
function pass(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  url: string | URL,
  more: Readonly<Record<string, string>>,
): void {
  const headers = { ...incoming.headers, ...more };
  const up = httpRequest(url, { method: incoming.method, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    outgoing.flushHeaders();
    answer.pipe(outgoing);
  });
  up.on('error', () => outgoing.destroy());
  outgoing.on('close', () => up.destroy());
  incoming.pipe(up);
}

/** The suite can't send the admission header: this adds it, and changes nothing else. @returns the URL to test */
async function admitting(t: ExecutionContext<unknown>, url: string, key: string): Promise<string> {
  const shim = createServer((incoming, outgoing) => pass(incoming, outgoing, url, admission(key)));
  await listen(shim);
  t.teardown(() => {
    shim.closeAllConnections();
    shim.close();
  });
  return `http://127.0.0.1:${(shim.address() as AddressInfo).port}/mcp`;
}

const runSuite = (t: ExecutionContext<unknown>, url: string) =>
  suite(t, ['server', '--url', url, '--suite', 'all']);

/** @returns how each check of each scenario ended, by `<scenario> <check>` */
async function suite(
  t: ExecutionContext<unknown>,
  argv: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Record<string, string[]>> {
  const results = tempDir(t);
  const child = spawn(process.execPath, [SUITE, ...argv, '-o', results], {
    stdio: 'ignore',
    env: { ...process.env, ...env },
  });
  const timer = setTimeout(() => child.kill('SIGKILL'), LONGEST_MS);
  t.teardown(() => child.kill('SIGKILL'));
  await new Promise((done) => child.once('exit', done));
  clearTimeout(timer);
  const told: Record<string, string[]> = {};
  for (const folder of readdirSync(results)) {
    const scenario = folder.replace(/^server-/, '').replace(/-\d{4}-\d{2}-\d{2}T.*$/, '');
    const checks = JSON.parse(readFileSync(join(results, folder, 'checks.json'), 'utf8'));
    for (const { id, status } of checks as { id: string; status: string }[]) {
      if (status === 'INFO') continue;
      const name = `${scenario} ${id}`;
      told[name] = [...(told[name] ?? []), status];
    }
  }
  return told;
}
