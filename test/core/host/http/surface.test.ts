import { once } from 'node:events';
import { createServer } from 'node:net';
import test from 'ava';
import { createSurface } from '../../../../src/core/host/http/surface.ts';
import { createLogger } from '../../../../src/core/host/logging/logger.ts';
import { HoldfastError } from '../../../../src/core/kernel/errors/holdfast-error.ts';
import { RouterError } from '../../../../src/plugins/router/errors.ts';
import { serve } from './support.ts';

const json = { 'content-type': 'application/json' };
const silent = { logger: createLogger({ level: 'silent' }) };

async function body(response: Response): Promise<Record<string, unknown>> {
  return (await response.json()) as Record<string, unknown>;
}

test('[C14] a request is answered, and its answer names the correlation id of its log line', async (t) => {
  const { url, lines } = await serve(t);
  const response = await fetch(`${url}/thing/7?secret=swordfish`);
  t.is(response.status, 200);
  t.deepEqual(await body(response), { id: '7' });
  const line = lines.find(({ msg }) => msg === 'http.answered');
  t.like(line, { route: '/thing/:id', status: 200, method: 'GET', level: 'debug', surface: 'test' });
  t.is(line?.correlation, response.headers.get('x-correlation-id') ?? undefined);
  t.false(JSON.stringify(lines).includes('swordfish'));
});

test('[C14] requests are counted by surface, route pattern and status', async (t) => {
  const { url, metrics } = await serve(t);
  await (await fetch(`${url}/thing/1`)).text();
  await (await fetch(`${url}/thing/2`)).text();
  await (await fetch(`${url}/nowhere`)).text();
  const text = await metrics.text();
  t.true(text.includes('holdfast_http_requests_total{surface="test",route="/thing/:id",status="200"} 2'));
  t.true(text.includes('holdfast_http_requests_total{surface="test",route="(none)",status="404"} 1'));
  t.true(text.includes('holdfast_http_request_seconds_count{surface="test"} 3'));
});

const refused: [title: string, path: string, init: RequestInit, status: number, code: string][] = [
  ['broken JSON', '/echo', { method: 'POST', headers: json, body: '{"a":' }, 400, 'HF_HTTP_BODY_INVALID'],
  ['an empty JSON body', '/echo', { method: 'POST', headers: json, body: '' }, 400, 'HF_HTTP_BODY_INVALID'],
  [
    'a body beyond the limit',
    '/echo',
    { method: 'POST', headers: json, body: JSON.stringify('x'.repeat(1024 * 1024)) },
    413,
    'HF_HTTP_BODY_TOO_LARGE',
  ],
  ['another content type', '/echo', { method: 'POST', body: 'a=1' }, 415, 'HF_HTTP_MEDIA_TYPE'],
  [
    'a form, which pages elsewhere may post',
    '/echo',
    { method: 'POST', body: new URLSearchParams({ a: '1' }) },
    415,
    'HF_HTTP_MEDIA_TYPE',
  ],
  ['an unknown path', '/nowhere', {}, 404, 'HF_HTTP_NOT_FOUND'],
  ['an unknown path with a body', '/nowhere', { method: 'POST', body: 'x' }, 404, 'HF_HTTP_NOT_FOUND'],
  ['a known path with another method', '/thing/1', { method: 'DELETE' }, 405, 'HF_HTTP_METHOD'],
  ['a preflight', '/echo', { method: 'OPTIONS' }, 405, 'HF_HTTP_METHOD'],
  ['a malformed path', '/thing/%zz', {}, 400, 'HF_HTTP_REQUEST_INVALID'],
  ['a very long path part', `/thing/${'x'.repeat(300)}`, {}, 414, 'HF_HTTP_PATH_TOO_LONG'],
  [
    'a write from a page elsewhere',
    '/act',
    { method: 'POST', headers: { origin: 'https://evil.example' } },
    403,
    'HF_HTTP_ORIGIN',
  ],
  [
    'a write from a sandboxed page',
    '/act',
    { method: 'POST', headers: { origin: 'null' } },
    403,
    'HF_HTTP_ORIGIN',
  ],
  [
    'a write from another program on this machine, through a browser',
    '/act',
    { method: 'POST', headers: { origin: 'http://localhost:3000' } },
    403,
    'HF_HTTP_ORIGIN',
  ],
];

for (const [title, path, init, status, code] of refused) {
  test(`${title} is answered ${status} with ${code}, what and remedy`, async (t) => {
    const { url } = await serve(t);
    const response = await fetch(url + path, init);
    const { what, remedy, ...rest } = await body(response);
    t.is(response.status, status);
    t.deepEqual(rest, { code, status });
    t.true(typeof what === 'string' && typeof remedy === 'string' && what.length > 10 && remedy.length > 10);
    // and the surface goes on
    t.is((await fetch(`${url}/thing/1`)).status, 200);
  });
}

test('405 lists the methods of the path', async (t) => {
  const { url } = await serve(t);
  const response = await fetch(`${url}/thing/1`, { method: 'PUT' });
  t.is(response.headers.get('allow'), 'GET, HEAD');
  t.is((await fetch(`${url}/echo`)).headers.get('allow'), 'POST');
});

test('a same-origin page may write', async (t) => {
  const { url } = await serve(t);
  t.is((await fetch(`${url}/act`, { method: 'POST', headers: { origin: url } })).status, 200);
});

test('[R32] an unforeseen error tells the caller nothing of itself, and the log its redacted text', async (t) => {
  const { url, lines } = await serve(t);
  const response = await fetch(`${url}/boom`);
  const text = await response.text();
  t.is(response.status, 500);
  t.is(JSON.parse(text).code, 'HF_INTERNAL');
  t.notRegex(text, /hunter2|shadow|\.ts|\\n/);
  const line = lines.find(({ msg }) => msg === 'http.failed');
  t.is(line?.level, 'error');
  t.is(line?.correlation, response.headers.get('x-correlation-id') ?? undefined);
  t.regex(JSON.stringify(line), /password=\[redacted]/);
  t.notRegex(JSON.stringify(line), /hunter2/);
});

test('a coded error of a handler is the answer, with its status', async (t) => {
  const { url } = await serve(t, {}, (http) => {
    http.get('/pending', () => {
      throw new RouterError('HF_ROUTER_TRANSACTION_PENDING');
    });
  });
  const response = await fetch(`${url}/pending`);
  t.is(response.status, 400);
  t.is((await body(response)).code, 'HF_ROUTER_TRANSACTION_PENDING');
});

test('a surface shapes its error bodies, and a shape that throws falls back', async (t) => {
  const shaped = await serve(t, { errorBody: ({ what, status }) => ({ errors: [what], status }) });
  t.deepEqual(await body(await fetch(`${shaped.url}/nowhere`)), {
    errors: ['There is nothing at GET /nowhere.'],
    status: 404,
  });
  const broken = await serve(t, {
    errorBody: () => {
      throw new Error('no');
    },
  });
  t.like(await body(await fetch(`${broken.url}/nowhere`)), { code: 'HF_HTTP_NOT_FOUND' });
});

test('[R32] the path in an error answer bears neither query nor push token', async (t) => {
  const { url } = await serve(t);
  const text = await (await fetch(`${url}/api/push/s3cr3t?key=abc`)).text();
  t.notRegex(text, /s3cr3t|abc/);
});

test('answers are not to be cached, sniffed or attributed to a product', async (t) => {
  const { url } = await serve(t);
  const { headers } = await fetch(`${url}/thing/1`);
  t.is(headers.get('cache-control'), 'no-store');
  t.is(headers.get('x-content-type-options'), 'nosniff');
  t.is(headers.get('server'), null);
  t.is(headers.get('x-powered-by'), null);
});

test('a port in use is refused with the variable that chooses another', async (t) => {
  const holder = createServer().listen(0, '127.0.0.1');
  t.teardown(() => holder.close());
  await once(holder, 'listening');
  const { port } = holder.address() as { port: number };
  const surface = createSurface({ name: 'router', port, portVariable: 'HOLDFAST_ROUTER_PORT' }, silent);
  const error = await t.throwsAsync(surface.listen(), { instanceOf: HoldfastError });
  t.is(error?.code, 'HF_HTTP_LISTEN');
  t.true(error?.what.includes(`127.0.0.1:${port}: another process holds the port`));
  t.true(error?.remedy.includes('HOLDFAST_ROUTER_PORT'));
  await surface.close(0);
});

test('an address that is not of this machine is refused', async (t) => {
  const surface = createSurface(
    { name: 'x', port: 0, host: '192.0.2.1', insecure: true, portVariable: 'X', admission: 'own' },
    silent,
  );
  await t.throwsAsync(surface.listen(), { message: /this machine does not have the address/ });
  await surface.close(0);
});

test('localhost and IPv6 loopback can be bound', async (t) => {
  const named = await serve(t, { host: 'localhost' });
  t.regex(named.url, /^http:\/\/127\.0\.0\.1:\d+$/);
  const six = await serve(t, { host: '::1' });
  t.regex(six.url, /^http:\/\/\[::1]:\d+$/);
  t.is((await fetch(`${six.url}/thing/1`)).status, 200);
});
