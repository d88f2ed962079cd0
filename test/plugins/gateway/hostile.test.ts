import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { credentialFree } from '../../../src/plugins/gateway/index.ts';
import { answerEmpty, type ScriptedUpstream, startScripted } from '../../support/scripted-upstream.ts';
import { send } from './raw.ts';
import { admission, initialize, MEDIA, Rig, rpc } from './rig.ts';

interface Target {
  readonly rig: Rig;
  readonly upstream: ScriptedUpstream;
  /** Headers of a good request. */
  readonly good: readonly (readonly [string, string])[];
  readonly headers: Record<string, string>;
}

async function target(t: ExecutionContext<unknown>, more = {}, script = answerEmpty): Promise<Target> {
  const upstream = await startScripted(t, script);
  const routes = [credentialFree({ name: 'wiki', url: upstream.url })];
  const rig = await Rig.start(t, { routes, ...more });
  const key = await rig.mint({ servers: ['wiki'] });
  const plain = { 'content-type': 'application/json', accept: MEDIA, ...admission(key) };
  const opened = await send(`${rig.url}/wiki/mcp`, { headers: plain, body: initialize });
  const headers = { ...plain, 'mcp-session-id': String(opened.headers['mcp-session-id']) };
  upstream.heard.length = 0;
  return { rig, upstream, headers, good: Object.entries({ host: new URL(rig.url).host, ...headers }) };
}

/** Longest that a test waits for a server that says nothing. */
const PATIENCE_MS = 3_000;

/**
 * Sends bytes.
 *
 * @param close the sending side at once
 * @param patienceMs until the sending side is closed at the latest, milliseconds
 * @returns all that comes back until the other side closes
 */
function raw(rig: Rig, parts: readonly string[], close = false, patienceMs = PATIENCE_MS): Promise<string> {
  const { port, hostname } = new URL(rig.url);
  return new Promise((resolve) => {
    const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true });
    let text = '';
    socket.setEncoding('latin1');
    socket.on('data', (chunk) => {
      text += chunk;
    });
    socket.on('error', () => undefined);
    const timer = setTimeout(() => socket.end(), patienceMs);
    socket.on('close', () => {
      clearTimeout(timer);
      resolve(text);
    });
    socket.on('end', () => socket.destroy());
    for (const part of parts) socket.write(part, 'latin1');
    if (close) socket.end();
  });
}

function requestText(
  headers: readonly (readonly [string, string])[],
  body: string,
  line = 'POST /wiki/mcp HTTP/1.1',
): string {
  return `${[line, ...headers.map(([name, value]) => `${name}: ${value}`)].join('\r\n')}\r\n\r\n${body}`;
}

const statuses = (answer: string): number[] =>
  [...answer.matchAll(/HTTP\/1\.1 (\d{3}) /g)]
    .map(([, status]) => Number(status))
    .filter((status) => status >= 200);

const LIST = JSON.stringify(rpc('tools/list'));
const CALL = JSON.stringify(rpc('tools/call', { name: 'wiki-x', arguments: {} }));

test('[G23] requests in one packet are answered in turn, and a client that closes its sending side has left', async (t) => {
  const { rig, good } = await target(t);
  const one = [...good, ['content-length', String(LIST.length)]] as const;
  const last = requestText([...one, ['connection', 'close']], LIST);
  t.deepEqual(statuses(await raw(rig, [requestText(one, LIST) + last])), [200, 200]);
  t.true(statuses(await raw(rig, [requestText(one, LIST)], true)).length <= 1);
});

test('[G3,G23] an answer to a request whose body was not read ends the connection, and is the only one', async (t) => {
  const { rig, good } = await target(t);
  const { host } = new URL(rig.url);
  const length = ['content-length', '100'] as const;
  for (const [line, headers, status] of [
    ['POST /wiki/mcp HTTP/1.1', [['host', host]], 401],
    [
      'POST /wiki/mcp HTTP/1.1',
      [
        ['host', host],
        ['x-gateway-api-key', 'Bearer sk-of-nobody-at-all'],
      ],
      401,
    ],
    ['POST /mcp/ HTTP/1.1', [['host', host]], 401],
    ['POST /none/mcp HTTP/1.1', [['host', host]], 404],
    ['POST /wiki/mcp/ HTTP/1.1', good, 307],
    ['POST /key/generate HTTP/1.1', [['host', host]], 401],
  ] as const) {
    const answer = await raw(rig, [requestText([...headers, length], '', line)]);
    t.deepEqual(statuses(answer), [status], line);
    t.regex(answer, /\r\nconnection: close\r\n/i, line);
  }
});

test('a request whose length is ambiguous is refused, and nothing hides behind it', async (t) => {
  const { rig, good, upstream } = await target(t);
  const inner = requestText([...good, ['content-length', String(CALL.length)]], CALL);
  const chunked = `0\r\n\r\n${inner}`;
  const cases: readonly (readonly (readonly [string, string])[])[] = [
    [
      ['content-length', '5'],
      ['transfer-encoding', 'chunked'],
    ],
    [
      ['content-length', '5'],
      ['content-length', String(chunked.length)],
    ],
    [['transfer-encoding', 'chunked, identity']],
    [['transfer-encoding', 'xchunked']],
    [['transfer-encoding', ' chunked\x0b']],
    [['content-length', '+5']],
    [['content-length', '-1']],
    [['content-length', '0x5']],
    [['content-length', '5, 5']],
    [['content-length ', '5']],
    [['transfer-encoding', '\r\n chunked']],
    [['content-length', '\r\n 5']],
    [
      ['content-length', String(chunked.length)],
      ['x', 'y\ntransfer-encoding: chunked'],
    ],
    [
      ['content-length', String(chunked.length)],
      ['x', 'y\rtransfer-encoding: chunked'],
    ],
  ];
  for (const more of cases) {
    const text = requestText([...good, ...more], chunked);
    const [status] = statuses(await raw(rig, [text], true));
    t.true(status === undefined || (status >= 400 && status < 500), `${JSON.stringify(more)} ${status}`);
  }
  t.false(upstream.heard.some(({ text }) => text.includes('tools/call')));
});

test('bodies that never come whole are 408 in time and hold nobody up; one that comes byte by byte is served', async (t) => {
  const { rig, good, headers, upstream } = await target(t, { requestTimeoutMs: 1_000 });
  const head = (length: number, to = good) =>
    requestText([...to, ['content-length', String(length)], ['connection', 'close']], '');
  const never = Array.from({ length: 50 }, () => raw(rig, [head(LIST.length + 1), LIST], false, 120_000));
  t.is((await rig.post('/wiki/mcp', rpc('tools/list'), headers)).status, 200);
  // On a busy machine its bytes take longer than the others have.
  const patient = await target(t);
  const { port, hostname } = new URL(patient.rig.url);
  const slow = connect({ port: Number(port), host: hostname });
  let answer = '';
  slow.setEncoding('latin1').on('data', (text) => {
    answer += text;
  });
  slow.setNoDelay(true).write(head(LIST.length, patient.good));
  for (const byte of LIST) {
    slow.write(byte);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await once(slow, 'close');
  t.deepEqual(statuses(answer), [200]);
  for (const one of await Promise.all(never)) t.deepEqual(statuses(one), [408]);
  for (const { heard } of [upstream, patient.upstream])
    t.is(heard.filter(({ text }) => text.includes('tools/list')).length, 1);
});

test('[G23] a client that closes its sending side while it listens has left, and its upstream hears so', async (t) => {
  const opened = Promise.withResolvers<ServerResponse>();
  const { rig, good } = await target(t, {}, (response, heard, request) => {
    if (heard.method !== 'GET') return answerEmpty(response, heard, request);
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    return opened.resolve(response);
  });
  const { port, hostname } = new URL(rig.url);
  const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true });
  socket.resume().on('error', () => undefined);
  socket.write(requestText(good, '', 'GET /wiki/mcp HTTP/1.1'));
  const response = await opened.promise;
  const left = once(response, 'close');
  socket.end();
  await left;
  t.like(await rig.whenEnded('stream'), { outcome: 'cancelled' });
  socket.destroy();
});

test('[G23] a client whose bytes stop being a request while it is served has left, and its upstream hears so', async (t) => {
  const opened = Promise.withResolvers<ServerResponse>();
  const { rig, good } = await target(t, {}, (response, heard, request) => {
    if (heard.method !== 'GET') return answerEmpty(response, heard, request);
    return opened.resolve(response);
  });
  const { port, hostname } = new URL(rig.url);
  const socket = connect({ port: Number(port), host: hostname });
  socket.resume().on('error', () => undefined);
  const chunked = [...good, ['transfer-encoding', 'chunked']] as const;
  socket.write(requestText(chunked, '', 'GET /wiki/mcp HTTP/1.1'));
  const left = once(await opened.promise, 'close');
  socket.write('no chunk\r\n');
  await left;
  t.like(await rig.whenEnded('stream'), { outcome: 'cancelled' });
});

test('[G23,O24] a trace state in a message that can be no header stays where it is, and the call goes on', async (t) => {
  const { rig, headers, upstream } = await target(t);
  const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
  const other = '00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const key = headers['x-gateway-api-key']?.replace('Bearer ', '') ?? '';
  const own = 'value.of.a.key.that.an.operator.chose';
  await rig.mint({ servers: ['wiki'] }, own);
  const members = (count: number) => Array.from({ length: count }, (_, index) => `k${index}=v`).join(',');
  const valid = ['a=b', 'a=b , c=d', 'a=b,,c=d', 'tenant@vendor=x:1;y', '0t@v=\u0021', members(32)];
  const wrong = ['a=b\r\nx-smuggled: 1', 'a=\u20ac', 'a=\0', 'x'.repeat(513), `a=${'x'.repeat(511)}`];
  wrong.push('nonsense', 'A=b', 'a=', '=b', 'a=b=c', 'a=b,a=c', '0a=b', 'a b=c', members(33), ',');
  const keys = [
    `vendor=${key}`,
    `a=b,vendor=x|${own}`,
    `a=${own.replaceAll('.', '%2e')}`,
    'a=sk-of-someone-else',
  ];
  for (const tracestate of [...valid, ...wrong, ...keys]) {
    const params = { name: 'wiki-x', arguments: {}, _meta: { traceparent, tracestate, baggage: 'a=b' } };
    t.is((await rig.post('/wiki/mcp', rpc('tools/call', params), headers)).status, 200, tracestate);
    t.is(upstream.heard.at(-1)?.headers.tracestate, valid.includes(tracestate) ? tracestate : undefined);
    t.is(upstream.heard.at(-1)?.headers.baggage, undefined);
  }
  // The state of one trace never goes up with the parent of another.
  const call = (meta: object) => rpc('tools/call', { name: 'wiki-x', arguments: {}, _meta: meta });
  const cases: [
    meta: object,
    sent: Record<string, string>,
    parent: string | undefined,
    state: string | undefined,
  ][] = [
    [{ traceparent }, { traceparent: other, tracestate: 'of=other' }, traceparent, undefined],
    [{}, { traceparent: other, tracestate: 'of=other' }, other, 'of=other'],
    [{}, { traceparent: `ff${other.slice(2)}`, tracestate: 'of=none' }, undefined, undefined],
    [{}, { traceparent: 'odd', tracestate: 'of=none' }, undefined, undefined],
    [{}, { tracestate: 'of=none' }, undefined, undefined],
  ];
  for (const [meta, sent, parent, state] of cases) {
    t.is((await rig.post('/wiki/mcp', call(meta), { ...headers, ...sent })).status, 200);
    const { traceparent: up, tracestate } = upstream.heard.at(-1)?.headers ?? {};
    t.deepEqual([up, tracestate], [parent, state], JSON.stringify([meta, sent]));
  }
});

test('a body up to 4 MiB is passed, a larger one is 413, however its length is told', async (t) => {
  const { rig, headers, upstream } = await target(t);
  const url = `${rig.url}/wiki/mcp`;
  const limit = 4 * 1024 * 1024;
  const bodyOf = (bytes: number): string => {
    const empty = JSON.stringify(rpc('tools/call', { name: 'wiki-x', arguments: { text: '' } }));
    return empty.replace('"text":""', `"text":"${'x'.repeat(bytes - empty.length)}"`);
  };
  t.is((await send(url, { headers, body: bodyOf(limit) })).status, 200);
  t.true((upstream.heard.at(-1)?.text.length ?? 0) > limit - 100);
  const heard = upstream.heard.length;
  t.is((await send(url, { headers, body: bodyOf(limit + 1) })).status, 413);
  const chunked = { ...headers, 'transfer-encoding': 'chunked' };
  t.is((await send(url, { headers: chunked, body: bodyOf(limit + 1) })).status, 413);
  t.is(upstream.heard.length, heard);
});

test('whatever a client sends is no crash, no hang and no 5xx, and upstreams hear only what was judged', async (t) => {
  t.timeout(180_000);
  const { rig, good, upstream } = await target(t);
  const names = [
    ...good.map(([name]) => name),
    'authorization',
    'mcp-name',
    'mcp-method',
    'mcp-param-x',
    'connection',
  ];
  const values = [
    ...good.map(([, value]) => value),
    ...[
      '',
      'x',
      'Bearer x',
      '2026-07-28',
      '2025-06-18',
      'banana',
      'tools/list',
      'keep-alive, x-gateway-api-key',
      '\xff',
    ],
  ];
  const header = fc.tuple(fc.constantFrom(...names), fc.constantFrom(...values));
  const bodies = fc.oneof(
    fc.constantFrom(
      LIST,
      CALL,
      `[${LIST},${CALL}]`,
      '',
      '{',
      'null',
      '{"jsonrpc":"2.0","method":"notifications/x"}',
    ),
    fc.constantFrom(
      `{"method":"tools/list",${CALL.slice(1)}`,
      CALL.replace('"tools/call"', '"tools\\u002fcall"'),
      CALL.replace('"name"', '"n\\u0061me"'),
      CALL.replace('{}', '{"n":1.0,"m":12345678901234567890}'),
      LIST.replace('7', '7.0'),
    ),
    fc.string({ unit: 'binary-ascii', maxLength: 60 }),
  );
  const lines = fc.constantFrom(
    ...['POST', 'POST', 'POST', 'GET', 'DELETE', 'PUT', 'HEAD', 'OPTIONS', 'TRACE', 'BREW'].map(
      (method) => `${method} /wiki/mcp HTTP/1.1`,
    ),
    'POST //wiki/mcp HTTP/1.1',
    'POST /wiki/../wiki/mcp HTTP/1.1',
    'POST /%77iki/mcp?x=1 HTTP/1.1',
    'POST http://evil.example/wiki/mcp HTTP/1.1',
    'POST /wiki/mcp HTTP/1.0',
    'POST /wiki/mcp HTTP/9.9',
    'POST /%ff/mcp HTTP/1.1',
  );
  const request = fc.record({
    line: lines,
    more: fc.array(header, { maxLength: 3 }),
    without: fc.option(fc.nat(good.length - 1)),
    body: bodies,
    framing: fc.constantFrom('length', 'chunked', 'short', 'none'),
    cut: fc.nat(80),
  });
  const property = fc.asyncProperty(request, async ({ line, more, without, body, framing, cut }) => {
    const kept = good.filter((_, index) => index !== without);
    const bytes = Buffer.byteLength(body, 'latin1');
    const framed: Record<string, readonly [readonly (readonly [string, string])[], string]> = {
      length: [[['content-length', String(bytes)]], body],
      chunked: [
        [['transfer-encoding', 'chunked']],
        bytes === 0 ? '0\r\n\r\n' : `${bytes.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
      ],
      short: [[['content-length', String(bytes + 5)]], body],
      none: [[], body],
    };
    const [length, content] = framed[framing] ?? [[], ''];
    const text = requestText([...kept, ...more, ...length, ['connection', 'close']], content, line);
    const answered = statuses(await raw(rig, [text.slice(0, cut), text.slice(cut)], framing === 'short'));
    t.true(
      answered.every((status) => status < 500),
      `${answered} ${text}`,
    );
  });
  await fc.assert(property, { numRuns: 300 });

  const records = await rig.records();
  const forwarded = records.filter(({ effects }) => effects.some(({ type }) => type === 'gateway.forward'));
  const judged = forwarded.map(({ event }) => event as unknown as { method: string; tool?: string });
  const shown = judged
    .filter(({ method }) => method !== 'initialize')
    .map(({ method, tool }) => `${method} ${tool ?? ''}`);
  const heard = upstream.heard.map(({ method, text, headers }) => {
    t.false('x-gateway-api-key' in headers || 'authorization' in headers);
    if (method !== 'POST') return `${method === 'GET' ? 'stream' : 'close'} `;
    const one = JSON.parse(text) as { method?: string; params?: { name?: string } };
    const tool = one.method === 'tools/call' ? `wiki-${one.params?.name}` : '';
    return `${one.method ?? 'reply'} ${tool}`;
  });
  t.true(heard.length > 0);
  for (const one of heard) {
    t.true(shown.includes(one), one);
    shown.splice(shown.indexOf(one), 1);
  }
  t.is(
    (await rig.post('/wiki/mcp', rpc('tools/list'), Object.fromEntries(good))).status,
    200,
    'it still serves',
  );
});
