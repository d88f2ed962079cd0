import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { HttpClient } from '../../../src/core/host/http/client.ts';
import { given } from '../../../src/core/host/testing/index.ts';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { routeHealth } from '../../../src/machines/gateway/route-health.ts';
import { DocumentCache } from '../../../src/plugins/gateway/discovery/document-cache.ts';
import { probe as probeWith } from '../../../src/plugins/gateway/health/probe.ts';
import { credentialFree, overwrite, relay } from '../../../src/plugins/gateway/index.ts';
import { PROBE_ANSWER_LIMIT } from '../../../src/plugins/gateway/mcp/probe-client.ts';
import { readRouteEntries } from '../../../src/plugins/gateway/routes/entries.ts';
import type { Route } from '../../../src/plugins/gateway/routes/route.ts';
import { openRoute } from '../../../src/plugins/gateway/routes/route.ts';
import { listen, startUpstream } from '../../support/mcp-upstream.ts';
import { startStateless } from '../../support/stateless-upstream.ts';
import { read, until } from '../../support/until.ts';
import { Rig } from './rig.ts';

const { signal } = new AbortController();

async function routeOf(entry: unknown): Promise<Route> {
  const env = { HOLDFAST_MCP_WEB_CRAWL_TOKEN: 'canary' };
  const { definitions } = readRouteEntries([entry], env);
  return openRoute(definitions[0]!, {
    env,
    store: undefined,
    locals: { open: async () => undefined, close: async () => {} },
    pins: { of: () => undefined },
    issuers: { http: new HttpClient({ timeoutMs: 1_000, answerLimit: 1 }), clock: systemClock },
  });
}

function httpClient(t: ExecutionContext): HttpClient {
  const http = new HttpClient({ timeoutMs: 10_000, answerLimit: PROBE_ANSWER_LIMIT });
  t.teardown(() => http.close());
  return http;
}

/** What a probe finds of an upstream that answers. On a machine that is busy for seconds it may be too late, and another one follows. */
const probe = (route: Route, by: HttpClient, stop: AbortSignal) =>
  read(
    'it is probed in time',
    () => probeWith(route, by, new DocumentCache(by, () => 0), stop),
    ({ reason }) => reason !== 'does not answer in time',
  );

/** A server that answers every request alike. */
async function answering(t: ExecutionContext, status: number, body: string, type: string): Promise<string> {
  const server = createServer((_request, response) =>
    response.writeHead(status, { 'content-type': type }).end(body),
  );
  await listen(server);
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
}

const probed = (found: string, at = 1_000, reason = 'x') => ({ type: 'PROBED', at, found, reason }) as never;

test('[G17] a route is down after three failures in a row, which is told once, and so is its end', (t) => {
  const input = { route: 'web_search' };
  const alert = (severity: string, text: string, labels: object) => ({
    type: 'alerts.raise',
    params: { name: 'gateway.route_down', severity, text, labels: { route: 'web_search', ...labels } },
  });
  given(routeHealth, { input })
    .initially({ state: 'unknown' })
    .when(probed('ok'))
    .then({ state: 'healthy' })
    .when(probed('failed'))
    .then({ state: 'degraded' })
    .when(probed('refused'))
    .then({ state: 'degraded', context: { failures: 2 } })
    .when(probed('failed', 4_000, 'cannot be reached'))
    .then({
      state: 'down',
      effects: [
        alert('critical', 'The route web_search is down: its upstream cannot be reached.', {
          state: 'firing',
          found: 'failed',
        }),
      ],
    })
    .when(probed('failed'))
    .then({ state: 'down', effects: [] })
    .when(probed('undocumented'))
    .then({
      state: 'undocumented',
      effects: [alert('info', 'The upstream of the route web_search answers again.', { state: 'resolved' })],
      context: { failures: 0, told: undefined },
    })
    .when({ type: 'RESET', at: 9_000, reason: 'its definition changed' })
    .then({ state: 'unknown', effects: [], context: { reason: 'its definition changed' } });
  t.pass();
});

test('[G17,G22] healthy takes a list of tools, got with the credential of the gateway, and leaves no session', async (t) => {
  const upstream = await startUpstream(t);
  const route = await routeOf(overwrite({ name: 'web_crawl', url: upstream.url }));
  t.deepEqual(await probe(route, httpClient(t), signal), { found: 'ok', tools: 2 });
  t.true(upstream.asked.every(({ headers }) => headers.authorization === 'Bearer canary'));
  t.is(upstream.asked.at(-1)?.method, 'DELETE');
  const one = await routeOf(credentialFree({ name: 'repo_wiki', url: upstream.url, tools: ['other'] }));
  t.is((await probe(one, httpClient(t), signal)).found, 'empty');
});

test('[G17] an upstream of the stateless revision alone is asked in its own words', async (t) => {
  const upstream = await startStateless(t);
  const route = await routeOf(credentialFree({ name: 'repo_wiki', url: upstream.url }));
  t.deepEqual(await probe(route, httpClient(t), signal), { found: 'ok', tools: 1 });
});

test('[G17] what is wrong with an upstream is told apart', async (t) => {
  const cases: [number, string, string, object][] = [
    [401, '{}', 'application/json', { found: 'refused', reason: 'refuses the credential (401)' }],
    [500, '<html>', 'text/html', { found: 'failed', reason: 'answers with status 500' }],
    [
      200,
      '<html>',
      'text/html',
      { found: 'failed', reason: 'answers with something that is neither JSON nor an event stream' },
    ],
  ];
  for (const [status, body, type, expected] of cases) {
    const url = await answering(t, status, body, type);
    const route = await routeOf(credentialFree({ name: 'repo_wiki', url }));
    t.deepEqual(await probe(route, httpClient(t), signal), expected as never);
  }
  const away = await routeOf(credentialFree({ name: 'repo_wiki', url: 'http://127.0.0.1:9/mcp' }));
  t.deepEqual(await probe(away, httpClient(t), signal), { found: 'failed', reason: 'cannot be reached' });
});

test('[G17] a relay route is looked at by its document, and "answers without one" is no outage', async (t) => {
  const none = await answering(t, 404, '', 'text/plain');
  const look = await probe(await routeOf(relay({ name: 'memory', url: none })), httpClient(t), signal);
  t.like(look, {
    found: 'undocumented',
    reason: 'serves no protected-resource document: answers with status 404',
  });
  const told = relay({ name: 'memory', url: none, authorizationServers: ['https://login.example.net'] });
  t.deepEqual(await probe(await routeOf(told), httpClient(t), signal), { found: 'ok' });
  const document = await answering(t, 200, '{"resource":"x"}', 'application/json');
  t.deepEqual(await probe(await routeOf(relay({ name: 'memory', url: document })), httpClient(t), signal), {
    found: 'ok',
  });
  const away = await probe(
    await routeOf(relay({ name: 'memory', url: 'http://127.0.0.1:9/mcp' })),
    httpClient(t),
    signal,
  );
  t.is(away.found, 'failed');
});

test('[G17] the health page shows each route, one that is down degrades it, and what stays the same is recorded once', async (t) => {
  const upstream = await startUpstream(t);
  const rig = await Rig.start(t, {
    probeEveryMs: 20,
    routes: [
      credentialFree({ name: 'repo_wiki', url: upstream.url }),
      credentialFree({ name: 'web_search', url: 'http://127.0.0.1:9/mcp?apiKey=canary' }),
      overwrite({ name: 'media_gen' }),
    ],
  });
  const states = () => rig.runtime.health().gateway as any;
  const shown = {
    repo_wiki: { state: 'healthy', tools: 2 },
    web_search: { state: 'down', reason: 'cannot be reached' },
  };
  // On a machine that stands still for seconds a probe may fail before, and count.
  await until('both are known', () => isDeepStrictEqual(states().upstreams, shown));
  t.like(states(), { ok: false, reason: 'route web_search is down: its upstream cannot be reached' });
  const probed = async (name: string) =>
    (await rig.records()).filter(
      ({ actor, event }) => actor === `gateway.route_health/${name}` && event.type === 'PROBED',
    ).length;
  const before = [await probed('repo_wiki'), await probed('web_search')];
  t.true((before[1] ?? 0) >= 3);
  const asked = upstream.asked.length;
  await until('it was probed again', () => upstream.asked.length >= asked + 8);
  t.deepEqual([await probed('repo_wiki'), await probed('web_search')], before);
  const records = await rig.records();
  t.false(JSON.stringify([records, states(), rig.lines]).includes('canary'));
});
