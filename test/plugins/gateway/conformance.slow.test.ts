import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { McpServerFactory } from '@modelcontextprotocol/server';
import test, { type ExecutionContext } from 'ava';
import { credentialFree, relay } from '../../../src/plugins/gateway/index.ts';
import type { AskedClient } from '../../support/conformance-client.ts';
import { conformanceServer } from '../../support/conformance-server.ts';
import { CLIENT_SCENARIOS, clientSuite, LONGEST_MS, serverSuite } from '../../support/conformance-suite.ts';
import { listen, startSessionServer } from '../../support/mcp-upstream.ts';
import { tempDir } from '../../support/temp.ts';
import { admission, Rig } from './rig.ts';

const CONFORMANCE = new URL('../../support/conformance-stdio.ts', import.meta.url).pathname;
/** A process is started for each scenario. */
const PROGRAM_MS = 300_000;
/** Of streams only: the answer of a program is JSON, unless it says something before. */
const OF_STREAMS: ReadonlySet<string> = new Set([
  'server-sse-multiple-streams server-sse-streams-functional',
  'server-sse-polling server-sse-priming-event',
  'server-sse-polling server-sse-retry-field',
]);

const startReference = (t: ExecutionContext) =>
  startSessionServer(t, {
    serve: conformanceServer,
    resumable: true,
    hosts: (port) => [`127.0.0.1:${port}`],
  });

/** What the suite sees of the reference at its port: asked once, and compared with each way through the gateway. */
let seenDirectly: ReturnType<typeof serverSuite> | undefined;
async function directly(t: ExecutionContext, url?: string): ReturnType<typeof serverSuite> {
  seenDirectly ??= serverSuite(t, url ?? (await startReference(t)).url);
  return seenDirectly;
}

test.serial(
  '[G4,G23] the official suite passes through the gateway wherever the same server passes without it',
  async (t) => {
    t.timeout(LONGEST_MS + 5_000);
    const reference = await startReference(t);
    const route = credentialFree({ name: 'reference', url: reference.url, prefix: false });
    const rig = await Rig.start(t, { routes: [route] });
    const admitted = await admitting(
      t,
      `${rig.url}/reference/mcp`,
      await rig.mint({ servers: ['reference'] }),
    );
    const [direct, through] = await Promise.all([directly(t, reference.url), serverSuite(t, admitted)]);
    t.deepEqual(through, direct);
    const failed = Object.keys(direct).filter((check) => direct[check]?.includes('FAILURE'));
    t.deepEqual(failed, [], 'the reference is a good server');
    t.true(Object.keys(direct).length >= 30);
  },
);

test.serial(
  '[G4,G23] the official suite passes through a route of a server in this process wherever the same server passes at a port',
  async (t) => {
    t.timeout(LONGEST_MS + 5_000);
    // The reference is a server of the SDK's first major version, whose types differ; it is connected in the same way.
    const server = conformanceServer as unknown as McpServerFactory;
    const rig = await Rig.start(t, {
      routes: [credentialFree({ name: 'reference', server, prefix: false })],
    });
    const key = await rig.mint({ servers: ['reference'] });
    const admitted = await admitting(t, `${rig.url}/reference/mcp`, key);
    const [direct, through] = await Promise.all([directly(t), serverSuite(t, admitted)]);
    t.deepEqual(through, direct);
    t.true(Object.keys(direct).length >= 30);
  },
);

test.serial(
  '[G4,G23] the official suite passes through a route of a program wherever the same server passes at a port',
  async (t) => {
    t.timeout(PROGRAM_MS + 5_000);
    const env = { NODE_COMPILE_CACHE: tempDir(t) };
    const command = { run: process.execPath, args: [CONFORMANCE], env, maxProcesses: 100 };
    const rig = await Rig.start(t, {
      routes: [credentialFree({ name: 'reference', command, prefix: false })],
    });
    const key = await rig.mint({ servers: ['reference'] });
    const admitted = await admitting(t, `${rig.url}/reference/mcp`, key);
    const [direct, through] = await Promise.all([directly(t), serverSuite(t, admitted, PROGRAM_MS)]);
    const others = Object.entries(direct).filter(([check]) => !OF_STREAMS.has(check));
    t.is(Object.keys(direct).length - others.length, OF_STREAMS.size);
    t.deepEqual(through, Object.fromEntries(others));
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

/** The suite can't send the key header: this adds it, and changes nothing else. @returns the URL to test */
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
