import { createServer, type IncomingHttpHeaders, type RequestOptions, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as after } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { credentialFree, relay } from '../../../src/plugins/gateway/index.ts';
import { recordedCalls } from '../../../src/plugins/gateway/telemetry/recorded-calls.ts';
import { telemetry as telemetryPlugin } from '../../../src/plugins/telemetry/index.ts';
import { startSdk } from '../../../src/plugins/telemetry/sdk.ts';
import { listen, startUpstream } from '../../support/mcp-upstream.ts';
import { answerEmpty, startScripted } from '../../support/scripted-upstream.ts';
import { PATIENCE_MS } from '../../support/until.ts';
import { admission, initialize, MEDIA, Rig, rpc } from './rig.ts';

interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Record<string, unknown>;
}

/** A receiver of OTLP over HTTP that keeps what it gets. */
async function receiver(t: ExecutionContext<unknown>) {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    const body = JSON.parse(Buffer.concat(await request.toArray()).toString('utf8'));
    received.push({ path: request.url ?? '', headers: request.headers, body });
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  });
  await listen(server);
  t.teardown(() => {
    server.close();
    server.closeAllConnections(); // also those whose request is not answered yet: the client keeps them
  });
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { received, endpoint };
}

/** Calls as the gateway records them, and the SDK that sends them. */
async function recorded(endpoint: string, toolSpans = false) {
  const sdk = startSdk({
    endpoint: () => endpoint,
    certFile: () => undefined,
    token: async () => undefined,
    serviceName: 'gateway',
    identity: { host: 'edge', instance: 'one' },
    everyMs: 60_000,
    metricsEveryMs: 60_000,
    log: () => ({ state: 'open', seq: 0, durableSeq: 0, queued: 0, queuedBytes: 0 }),
  });
  const { begin } = recordedCalls({ enabled: true, ...sdk }, toolSpans);
  return { begin, stop: () => sdk.stop() };
}

interface Span {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly attributes: readonly { readonly key: string; readonly value: Record<string, unknown> }[];
}

interface Metric {
  readonly name: string;
  readonly unit: string;
  readonly histogram?: object;
}

function spansOf(received: readonly Received[]): Span[] {
  return received
    .filter(({ path }) => path === '/v1/traces')
    .flatMap(({ body }) => (body as { resourceSpans: { scopeSpans: { spans: Span[] }[] }[] }).resourceSpans)
    .flatMap(({ scopeSpans }) => scopeSpans)
    .flatMap(({ spans }) => spans);
}

const metricsOf = (received: readonly Received[]): Metric[] =>
  received
    .filter(({ path }) => path === '/v1/metrics')
    .flatMap(
      ({ body }) =>
        (body as { resourceMetrics: { scopeMetrics: { metrics: Metric[] }[] }[] }).resourceMetrics,
    )
    .flatMap(({ scopeMetrics }) => scopeMetrics)
    .flatMap((scope) => scope.metrics);

/** Waits for what a stop sends: it leaves after three seconds, and a machine under load may need longer. */
async function until(hasArrived: () => boolean): Promise<void> {
  for (const end = performance.now() + PATIENCE_MS; !hasArrived() && performance.now() < end; )
    await after(10);
}

const attributesOf = ({ attributes }: Span) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));

const call = {
  path: '/memory/mcp',
  server: 'memory',
  alias: 'laptop',
  owner: 'u1',
  status: 200,
  outcome: 'ok',
  tool: { name: 'find', model: 'memory-1', cost: 0.5, responseMs: 12, tokens: { input: 10, output: 20 } },
} as const;

test('[O24] a call is one server span below the caller’s, with path, alias and owner and without method or key', async (t) => {
  const { received, endpoint } = await receiver(t);
  const telemetry = await recorded(endpoint);
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const span = telemetry.begin({ traceparent, tracestate: 'a=b' });
  t.is(span.headers.tracestate, 'a=b');
  t.is(telemetry.begin({ tracestate: 'a=b' }).headers.tracestate, undefined);
  span.end(call);
  span.end(call);
  await telemetry.stop();
  await until(() => spansOf(received).length > 0);
  const [only, ...more] = spansOf(received);
  t.deepEqual(more, []);
  t.like(only, {
    name: 'POST /memory/mcp',
    kind: 2,
    traceId: '0af7651916cd43dd8448eb211c80319c',
    parentSpanId: 'b7ad6b7169203331',
  });
  t.deepEqual(attributesOf(only!), {
    'http.method': 'POST',
    'http.target': '/memory/mcp',
    'http.status_code': 200,
    'mcp.server': 'memory',
    'metadata.user_api_key_alias': 'laptop',
    user_id: 'u1',
    'holdfast.outcome': 'ok',
  });
  t.is(span.headers.traceparent, `00-${only!.traceId}-${only!.spanId}-01`);
  t.false(JSON.stringify(received).includes('tools/call'));
});

test('[O24] the four histograms bear the upstream’s model and the key’s alias', async (t) => {
  const { received, endpoint } = await receiver(t);
  const telemetry = await recorded(endpoint);
  telemetry.begin({}).end(call);
  await telemetry.stop();
  await until(() => received.some(({ path }) => path === '/v1/metrics'));
  const metrics = metricsOf(received);
  const units = metrics.flatMap(({ name, unit, histogram }) =>
    name.startsWith('gen_ai.') && histogram ? [[name, unit]] : [],
  );
  t.deepEqual(Object.fromEntries(units), {
    'gen_ai.client.operation.duration': 's',
    'gen_ai.client.response.duration': 's',
    'gen_ai.client.token.usage': '{token}',
    'gen_ai.usage.cost': '{cost}',
  });
  const sent = JSON.stringify(metrics);
  t.regex(sent, /"gen_ai\.request\.model","value":\{"stringValue":"memory-1"/);
  t.regex(sent, /"metadata\.user_api_key_alias","value":\{"stringValue":"laptop"/);
});

test('[O24] names of tools that clients make up are bounded in the histograms, those of the configuration are not', async (t) => {
  const { received, endpoint } = await receiver(t);
  const { url } = await startScripted(t, answerEmpty);
  const names = Array.from({ length: 210 }, (_, index) => `made_up_${index}`);
  const routes = [
    credentialFree({ name: 'open', url }),
    credentialFree({ name: 'listed', url, tools: names }),
    credentialFree({ name: 'one', url, model: 'one-model' }),
  ];
  const rig = await Rig.start(t, { routes }, undefined, undefined, [
    telemetryPlugin({ endpoint, everyMs: 60_000 }),
  ]);
  const headers = admission(await rig.mint({ servers: ['open', 'listed', 'one'] }));
  for (const server of ['open', 'listed', 'one']) {
    const opened = await rig.post(`/${server}/mcp`, initialize, headers);
    await opened.text();
    const session = { ...headers, 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' };
    for (const name of [...names, names[0]]) {
      const call = rpc('tools/call', { name: `${server}-${name}`, arguments: {} });
      const answer = await rig.post(`/${server}/mcp`, call, session);
      t.is(answer.status, 200);
      await answer.text();
    }
  }
  await rig.runtime.stop('test');
  await until(() => metricsOf(received).some(({ name }) => name === 'gen_ai.usage.cost'));
  const text = JSON.stringify(metricsOf(received));
  const models = new Set(
    [...text.matchAll(/"gen_ai\.request\.model","value":\{"stringValue":"([^"]+)"/g)].map(
      ([, model]) => model,
    ),
  );
  const of = (server: string) => [...models].filter((model) => model?.startsWith(server));
  t.is(of('open/').length, 201);
  t.true(models.has('open/made_up_0'));
  t.true(models.has('open/other'));
  t.is(of('listed/').length, 210);
  t.deepEqual(of('one'), ['one-model']);
});

test('[O24] the span of the tool call is a child, and only on request', async (t) => {
  const { received, endpoint } = await receiver(t);
  const telemetry = await recorded(endpoint, true);
  telemetry.begin({}).end({ ...call, outcome: 'tool_error' });
  await telemetry.stop();
  await until(() => spansOf(received).length > 0);
  const spans = spansOf(received);
  const server = spans.find(({ kind }) => kind === 2)!;
  const tool = spans.find(({ kind }) => kind === 3)!;
  t.is(spans.length, 2);
  t.is(tool.name, 'tools/call find');
  t.is(tool.parentSpanId, server.spanId);
  t.deepEqual(attributesOf(tool), {
    'mcp.method.name': 'tools/call',
    'gen_ai.tool.name': 'find',
    'gen_ai.operation.name': 'execute_tool',
    'error.type': 'tool_error',
  });
  t.false('mcp.method.name' in attributesOf(server));
});

test('[O24] a receiver that is away holds neither a call nor a stop up', async (t) => {
  const telemetry = await recorded('http://127.0.0.1:9');
  telemetry.begin({ traceparent: 'nonsense' }).end(call);
  await telemetry.stop();
  t.pass();
});

/** A request that its client does not end. */
const unended = (url: string, path: string, { body = '', ...options }: RequestOptions & { body?: string }) =>
  new Promise<string>((resolve) => {
    const headers = { 'content-type': 'application/json', accept: MEDIA, ...options.headers };
    const asked = request(
      `${url}${path}`,
      { method: 'POST', agent: false, ...options, headers },
      (answer) => {
        answer.resume().on('close', () => resolve(`POST ${path} ${answer.statusCode}`));
      },
    );
    asked.on('error', () => undefined).write(body);
    asked.flushHeaders();
  });

const chunked = { 'transfer-encoding': 'chunked' };

/** The same server, or one that never ends, breaks off, is not there, and is not configured. */
test('[O24] a call is one span however it ends: refused, broken, not found, not configured, left, at /mcp/ and /mcp/sse', async (t) => {
  const { received, endpoint } = await receiver(t);
  const good = await startUpstream(t, true);
  const hung = await startScripted(t, (response, heard, request) =>
    heard.text.includes('tools/call') ? undefined : answerEmpty(response, heard, request),
  );
  const url = 'http://127.0.0.1:9/mcp';
  const routes = [
    credentialFree({ name: 'wiki', url: good.url }),
    credentialFree({ name: 'hung', url: hung.url }),
    credentialFree({ name: 'down', url }),
    credentialFree({ name: 'unset' }),
    relay({ name: 'memory', url }),
  ];
  const rig = await Rig.start(t, { routes, bodyLimit: 1_024 }, undefined, undefined, [
    telemetryPlugin({ endpoint, everyMs: 60_000 }),
  ]);
  const headers = admission(await rig.mint({ servers: ['wiki', 'hung', 'down', 'unset', 'memory'] }));
  const session = async (path: string) => {
    const answer = await rig.post(path, initialize, headers);
    await answer.text();
    return { ...headers, 'mcp-session-id': answer.headers.get('mcp-session-id') ?? '' };
  };
  const says = async (path: string, body: unknown, all: Record<string, string> = headers) => {
    const answer = await rig.post(path, body, all);
    await answer.text();
    return `POST ${path} ${answer.status}`;
  };
  const wiki = await session('/wiki/mcp');
  const call = rpc('tools/call', { name: 'wiki-echo', arguments: { text: 'x' } });
  const wanted = ['POST /wiki/mcp 200', 'POST /hung/mcp 200', 'POST /hung/mcp undefined', 'POST /mcp/ 200'];
  const leaving = new AbortController();
  const hanging = fetch(`${rig.url}/hung/mcp`, {
    method: 'POST',
    headers: { ...(await session('/hung/mcp')), 'content-type': 'application/json', accept: MEDIA },
    body: JSON.stringify(rpc('tools/call', { name: 'hung-x' })),
    signal: leaving.signal,
  });
  while (!hung.heard.some(({ text }) => text.includes('tools/call'))) await after(5);
  leaving.abort();
  await t.throwsAsync(hanging);
  const all = { ...(await session('/mcp/')), 'x-mcp-servers': 'wiki' };
  wanted.push(
    await says('/wiki/mcp', rpc('tools/call', { name: 'wiki-none' }), wiki),
    await says('/wiki/mcp', '{', wiki),
    await says('/wiki/mcp', rpc('ping'), { ...headers, 'mcp-session-id': 'nobody' }),
    await says('/wiki/mcp', initialize, { 'x-gateway-api-key': 'sk-no-prefix-0000000000' }),
    await says('/down/mcp', initialize),
    await says('/unset/mcp', initialize),
    await says('/memory/mcp', initialize),
    await says('/mcp/', call, all),
    await says('/mcp/', '{', all),
    await says('/mcp/sse', '{'),
    (await says('/sk-made-up-path/mcp', initialize)).replace('sk-made-up-path', '(none)'),
  );
  const large = `"${'x'.repeat(2_048)}"`;
  wanted.push(
    await says('/wiki/mcp', large, wiki),
    await unended(rig.url, '/wiki/mcp', { headers: { ...wiki, ...chunked }, body: large }),
    await says('/wiki/mcp', call, { ...wiki, origin: 'https://elsewhere.example' }),
    await unended(rig.url, '/wiki/mcp', { headers: wiki, method: 'PUT' }),
    (await unended(rig.url, '/sk-made-up/mcp', { headers: wiki, method: 'PUT' })).replace(
      'sk-made-up',
      '(none)',
    ),
  );
  t.deepEqual(
    wanted.slice(-5).map((one) => one.slice(-3)),
    ['413', '413', '403', '405', '405'],
  );
  const sse = await fetch(`${rig.url}/mcp/sse`, { headers: { ...headers, accept: 'text/event-stream' } });
  const reader = sse.body!.getReader();
  const path = /data: (\S+)/.exec(Buffer.from((await reader.read()).value ?? []).toString())?.[1] ?? '';
  await says(path, initialize);
  await reader.read();
  await reader.cancel();
  wanted.push('POST /mcp/sse 200', 'POST /mcp/sse 200');
  await rig.runtime.stop('test');
  await until(() => spansOf(received).length >= wanted.length);
  const spans = spansOf(received).map(
    (span) => `${span.name} ${String(attributesOf(span)['http.status_code'])}`,
  );
  t.deepEqual(spans.sort(), wanted.sort());
  for (const span of spansOf(received)) t.is(attributesOf(span)['http.target'], span.name.slice(5));
  t.false(JSON.stringify(received).includes('sk-'));
});

test('[O24] a call whose body does not come in time is one span, with 408, at a server and at /mcp/', async (t) => {
  const { received, endpoint } = await receiver(t);
  const routes = [credentialFree({ name: 'wiki', url: 'http://127.0.0.1:9/mcp' })];
  const rig = await Rig.start(t, { routes, requestTimeoutMs: 3_000 }, undefined, undefined, [
    telemetryPlugin({ endpoint, everyMs: 60_000 }),
  ]);
  const headers = admission(await rig.mint({ servers: ['wiki'] }));
  const longer = { 'content-length': '99' };
  const wanted = ['POST /wiki/mcp 408', 'POST /wiki/mcp 408', 'POST /mcp/ 408'];
  const answers = await Promise.all([
    unended(rig.url, '/wiki/mcp', { headers: { ...headers, ...longer }, body: '{' }),
    unended(rig.url, '/wiki/mcp', { headers: { ...headers, ...chunked }, body: '{' }),
    unended(rig.url, '/mcp/', { headers: { ...headers, ...longer }, body: '{' }),
  ]);
  t.deepEqual(answers, wanted);
  await rig.runtime.stop('test');
  await until(() => spansOf(received).length >= wanted.length);
  const spans = spansOf(received).map(
    (span) => `${span.name} ${String(attributesOf(span)['http.status_code'])}`,
  );
  t.deepEqual(spans.sort(), wanted.sort());
});

test('[O24,G19] every call through the gateway is one span, its upstream hangs below it, and no key is told', async (t) => {
  const { received, endpoint } = await receiver(t);
  const upstream = await startUpstream(t, true);
  const route = credentialFree({
    name: 'repo_wiki',
    url: `${upstream.url}?secret=abc`,
    model: 'wiki-1',
    costs: { echo: 2 },
  });
  const rig = await Rig.start(t, { routes: [route] }, undefined, undefined, [
    telemetryPlugin({ endpoint, everyMs: 60_000 }),
  ]);
  const key = await rig.mint({ alias: 'laptop', owner: 'u1', servers: ['repo_wiki'] });
  const headers = admission(key);
  const opened = await rig.post('/repo_wiki/mcp', initialize, headers);
  await opened.text();
  const session = { ...headers, 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' };
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const call = rpc('tools/call', {
    name: 'repo_wiki-echo',
    arguments: { text: 'hello' },
    _meta: { traceparent },
  });
  await (await rig.post('/repo_wiki/mcp', call, session)).text();
  await (
    await rig.post('/repo_wiki/mcp', call, { 'x-gateway-api-key': 'Bearer sk-unknown-key-000000' })
  ).text();
  await rig.runtime.stop('test');
  await until(() => spansOf(received).length >= 3);
  const spans = spansOf(received);
  t.deepEqual(
    spans.map(({ name }) => name),
    ['POST /repo_wiki/mcp', 'POST /repo_wiki/mcp', 'POST /repo_wiki/mcp'],
  );
  t.deepEqual(
    spans.map((span) => attributesOf(span)['http.status_code']),
    [200, 200, 401],
  );
  const called = spans[1]!;
  t.like(called, { traceId: '0af7651916cd43dd8448eb211c80319c', parentSpanId: 'b7ad6b7169203331' });
  t.like(attributesOf(called), {
    user_id: 'u1',
    'metadata.user_api_key_alias': 'laptop',
    'holdfast.outcome': 'ok',
  });
  t.is(upstream.asked.at(-1)?.headers.traceparent, `00-${called.traceId}-${called.spanId}-01`);
  const told = JSON.stringify(received);
  t.regex(told, /"stringValue":"wiki-1"/);
  for (const secret of [key, 'sk-unknown', 'secret=abc', 'tools/call'])
    t.false(told.includes(secret), secret);
});
