import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { Agent, buildConnector } from 'undici';
import { z } from 'zod';
import { resolveConfig } from '../../../../src/core/host/config/resolve.ts';
import { type HttpCall, HttpCallError, HttpClient } from '../../../../src/core/host/http/client.ts';
import { plaintextHost, plaintextProblem } from '../../../../src/core/host/http/plaintext.ts';
import { alerts } from '../../../../src/plugins/alerts/index.ts';
import { columnar } from '../../../../src/plugins/columnar/index.ts';
import { readRouteEntries } from '../../../../src/plugins/gateway/routes/entries.ts';
import { defineRouteKind } from '../../../../src/plugins/gateway/routes/kind.ts';
import { memory } from '../../../../src/plugins/memory/index.ts';
import { routerRemote } from '../../../../src/plugins/router/index.ts';
import { telemetry } from '../../../../src/plugins/telemetry/index.ts';
import { uptime } from '../../../../src/plugins/uptime/index.ts';

const FAR = 'http://far.example:8080';

/** A server that stands for `far.example`, whatever the name resolves to. */
async function far(t: ExecutionContext) {
  const heard: string[] = [];
  const server = createServer(({ url = '' }, response) => {
    heard.push(url);
    response.end('{}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const connect = buildConnector({});
  const dispatcher = new Agent({
    connect: (to, done) => connect({ ...to, hostname: '127.0.0.1', port: String(port) }, done),
  });
  const client = (insecure?: boolean) => {
    const http = new HttpClient({ base: FAR, timeoutMs: 5_000, answerLimit: 100, dispatcher, insecure });
    t.teardown(() => http.close());
    return http;
  };
  t.teardown(async () => {
    await dispatcher.destroy();
    server.closeAllConnections();
    server.close();
  });
  return { heard, client };
}

const CREDENTIALS: readonly (readonly [string, Partial<HttpCall>])[] = [
  ['a bearer token', { headers: { Authorization: 'Bearer x' } }],
  ['a key of its own header', { headers: { 'api-key': 'x' } }],
  ['a token of a secrets store', { headers: { 'x-vault-token': 'x' } }],
  ['a session', { headers: { cookie: 'sid=x' } }],
  ['a token in the path', { secretIn: 'url' }],
  ['a password in the body', { secretIn: 'body', method: 'POST', json: { password: 'x' } }],
];

for (const [what, call] of CREDENTIALS) {
  test(`[C14] ${what} is not sent to another machine in plaintext, unless that is allowed`, async (t) => {
    const { heard, client } = await far(t);
    const error = await t.throwsAsync<HttpCallError>(client().call({ url: '/a', ...call }), {
      instanceOf: HttpCallError,
    });
    t.is(error?.networkCode, 'PLAINTEXT');
    t.regex(
      error?.what ?? '',
      /far\.example:8080 in plaintext: give an https address, or write insecure: true/,
    );
    t.deepEqual(heard, []);
    t.is((await client(true).call({ url: '/b', ...call })).status, 200);
    t.is((await client().call({ url: '/c', insecure: true, ...call })).status, 200);
    t.deepEqual(heard, ['/b', '/c']);
  });
}

test('[C14] a call without a credential needs no leave', async (t) => {
  const { heard, client } = await far(t);
  await client().call({ url: '/a', headers: { accept: 'application/json', 'x-request-id': '1' } });
  t.deepEqual(heard, ['/a']);
});

test('[C14] only what leaves this machine without TLS counts as plaintext', (t) => {
  for (const url of [
    'http://127.0.0.1:1',
    'http://127.9.9.9',
    'http://[::1]:1',
    'http://localhost',
    'https://a',
    'no',
  ]) {
    t.is(plaintextHost(url), undefined, url);
  }
  for (const url of ['http://10.0.0.7', 'http://0.0.0.0', 'http://localhost.example', 'http://[fd00::1]']) {
    t.is(plaintextHost(url), new URL(url).host, url);
  }
  t.is(plaintextProblem({ url: undefined, credential: 'it' }), undefined);
  const connected = (url: string, connectTo: string) =>
    plaintextProblem({ url, connectTo, credential: 'it' });
  t.is(connected(FAR, '127.0.0.1'), undefined);
  t.is(connected('https://far.example', '10.0.0.7'), undefined);
  t.regex(connected('http://127.0.0.1:1', 'fd00::1') ?? '', /to \[fd00::1\] in plaintext/);
});

type Options = Readonly<Record<string, unknown>>;
const routeKind = defineRouteKind({ name: 'k', options: z.strictObject({}), headers: () => ({}) });

/** How each plugin names a server and what it sends there. */
const configured: Readonly<Record<string, (url: string, more: Options) => void>> = {
  uptime: (url, more) => resolved(uptime({ url, ...more })),
  memory: (url, more) => resolved(memory({ url, apiKeyFile: '/key', ...more })),
  'memory, by reference': (url, more) => resolved(memory({ url, apiKeyRef: 'a/b#c', ...more })),
  columnar: (url, more) => resolved(columnar({ url, passwordFile: '/password', ...more })),
  'columnar, by reference': (url, more) => resolved(columnar({ url, password: 'a/b#c', ...more })),
  router: (url, more) => resolved(routerRemote({ url, tokenFile: '/token', ...more })),
  telemetry: (url, more) => resolved(telemetry({ endpoint: url, tokenFile: '/key', ...more })),
  alerts: (url, more) =>
    resolved(alerts({ receivers: { a: { url, tokenFile: '/token', ...more } }, routes: [] })),
  hyperdx: (url, more) => {
    const hyperdx = { url, tokenFile: '/token', dashboardId: 'a', webhookId: 'b', tiles: {}, ...more };
    resolved(alerts({ hyperdx }));
  },
  'gateway, overwrite': (url, more) => route({ disposition: 'overwrite', url, ...more }),
  'gateway, relay': (url, more) => route({ disposition: 'relay', url, ...more }),
  'gateway, custom': (url, more) => route({ ...routeKind({ name: 'a', url, ...more }) }),
};

function resolved(plugin: ReturnType<typeof uptime>): void {
  resolveConfig({ plugins: [plugin] }, { env: {} });
}

function route(input: object): void {
  const [rejected] = readRouteEntries([{ name: 'a', ...input }], {}).rejected;
  if (rejected) throw new Error(rejected.reason);
}

for (const [name, configure] of Object.entries(configured)) {
  test(`[C14] ${name}: a credential for a plaintext address elsewhere is refused by name`, (t) => {
    t.throws(() => configure(FAR, {}), {
      message: /insecure: .* would go to far\.example:8080 in plaintext/,
    });
    for (const [url, more] of [
      [FAR, { insecure: true }],
      ['https://far.example', {}],
      ['http://127.0.0.1:8080', {}],
    ] as const) {
      t.notThrows(() => configure(url, more), url);
    }
  });
}

test('[C14] what sends no credential may be plaintext', (t) => {
  t.notThrows(() => resolved(routerRemote({ url: FAR })));
  t.notThrows(() => resolved(memory({ url: FAR })));
  t.notThrows(() => resolved(columnar({ url: FAR })));
  t.notThrows(() => resolved(telemetry({ endpoint: FAR })));
  t.notThrows(() => route({ disposition: 'credential_free', url: FAR }));
});

test('[C14] a variable allows it as well', (t) => {
  const env = { HOLDFAST_UPTIME_URL: FAR };
  t.throws(() => resolveConfig({ plugins: [uptime()] }, { env }), { message: /in plaintext/ });
  t.notThrows(() =>
    resolveConfig({ plugins: [uptime()] }, { env: { ...env, HOLDFAST_UPTIME_INSECURE: 'true' } }),
  );
  const entries = [{ name: 'a', disposition: 'overwrite' }];
  const variables = { HOLDFAST_MCP_A_URL: FAR };
  t.is(readRouteEntries(entries, variables).definitions.length, 0);
  t.is(readRouteEntries(entries, { ...variables, HOLDFAST_MCP_A_INSECURE: 'true' }).definitions.length, 1);
});
