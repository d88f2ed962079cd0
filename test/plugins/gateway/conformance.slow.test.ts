import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { credentialFree } from '../../../src/plugins/gateway/index.ts';
import { conformanceServer } from '../../support/conformance-server.ts';
import { listen, startSessionServer } from '../../support/mcp-upstream.ts';
import { tempDir } from '../../support/temp.ts';
import { admission, Rig } from './rig.ts';

const SUITE = resolve('node_modules/@modelcontextprotocol/conformance/dist/index.js');
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

/** The suite can't send the admission header: this adds it, and changes nothing else. @returns the URL to test */
async function admitting(t: ExecutionContext<unknown>, url: string, key: string): Promise<string> {
  const shim = createServer((incoming, outgoing) => {
    const headers = { ...incoming.headers, ...admission(key) };
    const up = httpRequest(url, { method: incoming.method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      outgoing.flushHeaders();
      answer.pipe(outgoing);
    });
    up.on('error', () => outgoing.destroy());
    outgoing.on('close', () => up.destroy());
    incoming.pipe(up);
  });
  await listen(shim);
  t.teardown(() => {
    shim.closeAllConnections();
    shim.close();
  });
  return `http://127.0.0.1:${(shim.address() as AddressInfo).port}/mcp`;
}

/** @returns how each check of each scenario ended, by `<scenario> <check>` */
async function runSuite(t: ExecutionContext<unknown>, url: string): Promise<Record<string, string[]>> {
  const results = tempDir(t);
  const child = spawn(process.execPath, [SUITE, 'server', '--url', url, '--suite', 'all', '-o', results], {
    stdio: 'ignore',
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
