import { spawn } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { credentialFree, relay } from '../../../src/plugins/gateway/index.ts';
import { type AskedClient, type Place, runClient } from '../../support/conformance-client.ts';
import { conformanceServer } from '../../support/conformance-server.ts';
import { listen, startSessionServer } from '../../support/mcp-upstream.ts';
import { tempDir } from '../../support/temp.ts';
import { admission, Rig } from './rig.ts';

const SUITE = resolve('node_modules/@modelcontextprotocol/conformance/dist/index.js');
const LONGEST_MS = 55_000;

test.serial(
  '[G4,G23] the official suite passes through the gateway wherever the same server passes without it',
  async (t) => {
    t.timeout(LONGEST_MS + 5_000);
    const reference = await startSessionServer(t, {
      serve: conformanceServer,
      resumable: true,
      hosts: (port) => [`127.0.0.1:${port}`],
    });
    const route = credentialFree({ name: 'reference', url: reference.url, prefix: false });
    const rig = await Rig.start(t, { routes: [route] });
    const admitted = await admitting(
      t,
      `${rig.url}/reference/mcp`,
      await rig.mint({ servers: ['reference'] }),
    );
    const [direct, through] = await Promise.all([runSuite(t, reference.url), runSuite(t, admitted)]);
    t.deepEqual(through, direct);
    const failed = Object.keys(direct).filter((check) => direct[check]?.includes('FAILURE'));
    t.deepEqual(failed, [], 'the reference is a good server');
    t.true(Object.keys(direct).length >= 30);
  },
);

test.serial(
  '[G4,G8,G13,G20,G23] what the official suite wants of a client, with and without login, its servers see of the official client behind the gateway too',
  async (t) => {
    t.timeout(2 * LONGEST_MS);
    const direct = await clientSuite(t, async () => ({ server }) => ({ url: server }));
    const through = await clientSuite(t, async (asked) => {
      const routes = asked.map(entryOf);
      const rig = await Rig.start(t, { routes });
      const headers = admission(await rig.mint({ servers: routes.map(({ name }) => name) }));
      return ({ scenario }) => ({ url: `${rig.url}/${routeOf(scenario)}/mcp`, headers });
    });
    t.is(new Set(Object.keys(direct).map((name) => name.split(' ', 1)[0])).size, CLIENT_SCENARIOS);
    t.deepEqual(
      Object.keys(direct)
        .filter((name) => direct[name] !== 'SUCCESS')
        .sort(),
      ['auth/resource-mismatch client', 'auth/scope-retry-limit client'],
      'the reference is a good client: it gives up where it should',
    );
    const differing = [...new Set([...Object.keys(direct), ...Object.keys(through)])]
      .filter((name) => direct[name] !== through[name])
      .map((name) => [name, through[name] ?? 'ABSENT']);
    t.deepEqual(Object.fromEntries(differing), inherentChecks());
  },
);

/** The entry that an operator would write for the suite's server of a scenario. */
function entryOf({ scenario, server }: AskedClient) {
  const entry = { name: routeOf(scenario), url: server, prefix: false };
  switch (scenario) {
    case 'auth/scope-from-www-authenticate': // its scope stands in its challenge alone
      return relay({ ...entry, scopes: ['mcp:basic'], scopesInChallenge: true });
    case 'auth/2025-03-26-oauth-metadata-backcompat': // of a time before there were documents
    case 'auth/2025-03-26-oauth-endpoint-fallback':
      return relay({ ...entry, authorizationServers: [new URL(server).origin] });
    default:
      return scenario.startsWith('auth/') ? relay(entry) : credentialFree(entry);
  }
}

const routeOf = (scenario: string): string => scenario.replaceAll(/[^a-z0-9]/g, '_');

/**
 * What the suite sees otherwise because the gateway is what it is, by scenario and check. A list in both directions: a
 * check that begins to differ fails the test, and so does one that no longer does.
 */
const INHERENT: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  // The document claims a resource that it does not belong to. The gateway writes the URL of the route in there (G13),
  // so the client asks for a token for this route and no other, and has nothing to reject.
  'auth/resource-mismatch': {
    'resource-mismatch-rejected': 'FAILURE',
    'client-registration': 'SUCCESS',
    'authorization-request': 'SUCCESS',
    'pkce-code-challenge-sent': 'SUCCESS',
    'pkce-s256-method-used': 'SUCCESS',
    'token-request': 'SUCCESS',
    'pkce-code-verifier-sent': 'SUCCESS',
    'pkce-verifier-matches-challenge': 'SUCCESS',
    'valid-bearer-token': 'SUCCESS',
    client: 'SUCCESS',
  },
  // The authorization server grants for one resource, the URL of the suite's own server, and the client asks for the
  // one that the document names: the URL of the route (G13).
  'auth/cross-app-access-complete-flow': {
    'complete-flow-jwt-bearer': 'FAILURE',
    'valid-bearer-token': 'ABSENT',
    client: 'GAVE UP',
  },
};

const inherentChecks = (): Record<string, string> =>
  Object.fromEntries(
    Object.entries(INHERENT).flatMap(([scenario, checks]) =>
      Object.entries(checks).map(([check, status]) => [`${scenario} ${check}`, status]),
    ),
  );

/** So many scenarios the suite has for clients; their clients begin when all have been asked for. */
const CLIENT_SCENARIOS = 26;

/**
 * Runs all scenarios that the suite has for clients. It starts a program for each: that tells us where the server is,
 * and is answered when the official client has been there. One after another, for some measure time.
 *
 * @param settle says where each calls, once all servers are known
 */
async function clientSuite(
  t: ExecutionContext<unknown>,
  settle: (asked: readonly AskedClient[]) => Promise<(asked: AskedClient) => Place>,
): Promise<Record<string, string>> {
  const waiting: { readonly asked: AskedClient; readonly answer: ServerResponse }[] = [];
  const ended: Record<string, string> = {};
  const runAll = async () => {
    const placeOf = await settle(waiting.map(({ asked }) => asked));
    for (const { asked, answer } of waiting) {
      const run = runClient(asked, placeOf(asked));
      ended[`${asked.scenario} client`] = await run.then(
        () => 'SUCCESS',
        () => 'GAVE UP',
      );
      answer.end();
    }
  };
  const desk = createServer(async (incoming, answer) => {
    const { scenario = '', context = '' } = incoming.headers as Record<string, string>;
    const server = Buffer.concat(await incoming.toArray()).toString();
    waiting.push({ asked: { scenario, server, context }, answer });
    if (waiting.length === CLIENT_SCENARIOS) runAll().catch((error) => t.fail(String(error)));
  });
  await listen(desk);
  t.teardown(() => {
    desk.closeAllConnections();
    desk.close();
  });
  const { port } = desk.address() as AddressInfo;
  const about = ['scenario: $MCP_CONFORMANCE_SCENARIO', 'context: $MCP_CONFORMANCE_CONTEXT'];
  const command = `curl -qsS --noproxy "*" ${about.map((header) => `-H "${header}"`).join(' ')} http://127.0.0.1:${port} -d`;
  const checks = await suite(t, [
    'client',
    '--command',
    command,
    '--suite',
    'all',
    '--timeout',
    `${LONGEST_MS}`,
  ]);
  const told = Object.entries(checks).map(([name, seen]) => [name, [...new Set(seen)].sort().join()]);
  return { ...Object.fromEntries(told), ...ended };
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
): Promise<Record<string, string[]>> {
  const results = tempDir(t);
  const child = spawn(process.execPath, [SUITE, ...argv, '-o', results], { stdio: 'ignore' });
  const timer = setTimeout(() => child.kill('SIGKILL'), LONGEST_MS);
  t.teardown(() => child.kill('SIGKILL'));
  await new Promise((done) => child.once('exit', done));
  clearTimeout(timer);
  const told: Record<string, string[]> = {};
  for (const file of globSync('**/checks.json', { cwd: results })) {
    const scenario = dirname(file)
      .replace(/^server-/, '')
      .replace(/-\d{4}-\d{2}-\d{2}T.*$/, '');
    const checks = JSON.parse(readFileSync(join(results, file), 'utf8'));
    for (const { id, status } of checks as { id: string; status: string }[]) {
      if (status === 'INFO') continue;
      const name = `${scenario} ${id}`;
      told[name] = [...(told[name] ?? []), status];
    }
  }
  return told;
}
