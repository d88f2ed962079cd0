import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { z } from 'zod';
import { credentialFree, defineRouteKind, overwrite, relay } from '../../../src/plugins/gateway/index.ts';
import { CredentialRepeated, credentialWatch } from '../../../src/plugins/gateway/upstream/inspection.ts';
import { type Heard, resultFor, type Script, startScripted } from '../../support/scripted-upstream.ts';
import { tempDir } from '../../support/temp.ts';
import { type RawAnswer, send } from './raw.ts';
import { admission, initialize, MEDIA, Rig, rpc } from './rig.ts';

const TOKEN = 'tok_canary_0123456789';
const ENVELOPE = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** One call of a tool of this route, without a session. */
const callOf = (route: string) => ({
  headers: {
    'content-type': 'application/json',
    accept: MEDIA,
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': `${route}-echo`,
  },
  body: rpc('tools/call', { name: `${route}-echo`, arguments: {}, _meta: ENVELOPE }),
});
const call = callOf('wiki');

type RouteKind = typeof credentialFree | typeof overwrite | typeof relay | ReturnType<typeof defineRouteKind>;

async function calling(
  t: ExecutionContext<unknown>,
  url: string,
  kind: RouteKind = credentialFree,
  more: object = {},
): Promise<{ rig: Rig; ask: (headers?: Record<string, string>) => Promise<RawAnswer> }> {
  const rig = await Rig.start(t, { routes: [kind({ name: 'wiki', url, ...more } as never)] });
  const key = await rig.mint({ servers: ['wiki'] });
  return {
    rig,
    ask: (headers = {}) =>
      send(`${rig.url}/wiki/mcp`, {
        headers: { ...call.headers, ...admission(key), ...headers },
        body: call.body,
      }),
  };
}

interface Fault {
  readonly title: string;
  readonly script: Script;
  readonly status: number;
  readonly says: RegExp;
  readonly outcome?: string;
  /** Of the answer. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
}

const JSON_TYPE = { 'content-type': 'application/json' };
const FAULTS: readonly Fault[] = [
  {
    title: 'is silent',
    script: () => undefined,
    status: 504,
    says: /does not answer in time/,
    outcome: 'timed_out',
  },
  {
    title: 'stops in the middle of its JSON',
    script: (response) => response.writeHead(200, JSON_TYPE).write('{"jsonrpc":'),
    status: 504,
    says: /does not answer in time/,
    outcome: 'timed_out',
  },
  {
    title: 'sends its JSON byte by byte, each in time',
    script: (response) => {
      response.writeHead(200, JSON_TYPE).write('{');
      const timer = setInterval(() => response.write(' '), 100);
      response.on('close', () => clearInterval(timer));
    },
    status: 504,
    says: /does not answer in time/,
    outcome: 'timed_out',
  },
  {
    title: 'breaks off in the middle of its JSON',
    script: (response) =>
      response.writeHead(200, JSON_TYPE).write('{"jsonrpc":', () => response.socket?.resetAndDestroy()),
    status: 502,
    says: /broke its answer off/,
    outcome: 'cut',
  },
  {
    title: 'sends less than it promised',
    script: (response) =>
      response
        .writeHead(200, { ...JSON_TYPE, 'content-length': '100' })
        .write('{}', () => response.socket?.end()),
    status: 502,
    says: /broke its answer off/,
    outcome: 'cut',
  },
  {
    title: 'hangs up without a word',
    script: (response) => response.socket?.destroy(),
    status: 502,
    says: /broke the connection off/,
    outcome: 'cut',
  },
  {
    title: 'answers with what is no HTTP',
    script: (response) => response.socket?.end('SSH-2.0-hello\r\n\r\n'),
    status: 502,
    says: /broke the connection off/,
    outcome: 'cut',
  },
  {
    title: 'answers with two lengths',
    script: (response) =>
      response.socket?.end(
        'HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
      ),
    status: 502,
    says: /broke the connection off/,
    outcome: 'cut',
  },
  {
    title: 'answers with a page',
    script: (response) => response.writeHead(200, { 'content-type': 'text/html' }).end(`<h1>${TOKEN}</h1>`),
    status: 502,
    says: /neither JSON nor an event stream/,
  },
  {
    title: 'answers with an error page',
    script: (response) => response.writeHead(500, { 'content-type': 'text/html' }).end(`<h1>${TOKEN}</h1>`),
    status: 502,
    says: /answers with status 500/,
  },
  {
    title: 'has too many callers, and says so on a page',
    script: (response) =>
      response.writeHead(429, { 'content-type': 'text/html', 'retry-after': '9' }).end('no'),
    status: 429,
    says: /answers with status 429/,
  },
  {
    title: 'does not say what it sends',
    script: (response) => response.writeHead(200).end('{}'),
    status: 502,
    says: /neither JSON nor an event stream/,
  },
  {
    title: 'sends a 200 without a body',
    script: (response) => response.writeHead(200, JSON_TYPE).end(),
    status: 502,
    says: /without a body/,
  },
  {
    title: 'sends a 200 whose body is empty after all',
    script: (response) => {
      response.writeHead(200, { ...JSON_TYPE, 'transfer-encoding': 'chunked' }).flushHeaders();
      response.end();
    },
    status: 502,
    says: /without a body/,
  },
  {
    title: 'takes a request for a notification',
    script: (response) => response.writeHead(202).end(),
    status: 502,
    says: /without a body/,
  },
  {
    title: 'knows the method not, and says so on a page',
    script: (response) =>
      response.writeHead(405, { 'content-type': 'text/html', allow: 'GET, POST' }).end('no'),
    status: 405,
    says: /answers with status 405/,
    headers: { allow: 'GET, POST' },
  },
  {
    title: 'knows the method not, and says so in JSON',
    script: (response, heard) =>
      response.writeHead(405, { ...JSON_TYPE, allow: 'POST' }).end(
        JSON.stringify({
          jsonrpc: '2.0',
          id: JSON.parse(heard.text).id,
          error: { code: 1, message: 'answers no' },
        }),
      ),
    status: 405,
    says: /answers no/,
    headers: { allow: 'POST' },
  },
  {
    title: 'allows what no method is',
    script: (response) => response.writeHead(405, { allow: `POST; ${TOKEN}` }).end(),
    status: 405,
    says: /answers with status 405/,
    headers: { allow: undefined },
  },
  {
    title: 'redirects',
    script: (response) => response.writeHead(307, { location: `http://evil.example/${TOKEN}` }).end(),
    status: 502,
    says: /redirect/,
  },
  {
    title: 'compresses unasked',
    script: (response) => response.writeHead(200, { ...JSON_TYPE, 'content-encoding': 'gzip' }).end('zz'),
    status: 502,
    says: /encoding/,
  },
  {
    title: 'refuses a credential that nobody sent',
    script: (response) => response.writeHead(401, JSON_TYPE).end(`{"token":"${TOKEN}"}`),
    status: 502,
    says: /refuses the credential of the gateway/,
  },
];

test("whatever an upstream does wrong is answered in the protocol's words, and none of its own", async (t) => {
  let script: Script = () => undefined;
  const upstream = await startScripted(t, (...given) => script(...given));
  // Only a silent upstream is given a short time: a machine under load needs longer to pass the other faults on.
  const routes = [
    credentialFree({ name: 'wiki', url: upstream.url }),
    credentialFree({ name: 'hasty', url: upstream.url, timeoutMs: 250 }),
  ];
  const rig = await Rig.start(t, { routes });
  const key = admission(await rig.mint({ servers: ['wiki', 'hasty'] }));
  const wanted: object[] = [];
  for (const { title, status, says, outcome = 'http_error', headers = {}, ...fault } of FAULTS) {
    script = fault.script;
    const route = outcome === 'timed_out' ? 'hasty' : 'wiki';
    const { headers: sent, body } = callOf(route);
    const answer = await send(`${rig.url}/${route}/mcp`, { headers: { ...sent, ...key }, body });
    t.is(answer.status, status, `${title}: ${answer.text}`);
    t.is(answer.json().id, 7, title);
    t.regex(answer.json().error?.message ?? '', says, title);
    t.false(JSON.stringify([answer.text, answer.headers]).includes(TOKEN), title);
    for (const [name, value] of Object.entries(headers)) t.is(answer.headers[name], value, title);
    wanted.push({ outcome, status });
  }
  const ended = await rig.ended(wanted.length);
  t.deepEqual(
    ended.map(({ outcome, status }) => ({ outcome, status })),
    wanted,
  );
});

test('[G19,G23] of an upstream’s headers the client gets those of a list, with JSON, events and errors', async (t) => {
  let status = 200;
  let type = 'application/json';
  const upstream = await startScripted(t, (response, heard) => {
    const body = resultFor(heard, {});
    const more = {
      'set-cookie': 'a=b',
      server: 'upstream/1',
      'x-token': TOKEN,
      'access-control-allow-origin': '*',
    };
    const named = {
      'content-type': type,
      'mcp-session-id': 'its-own',
      'retry-after': '3',
      location: '/',
      ...more,
    };
    response.writeHead(status, named).end(type === 'application/json' ? body : `data: ${body}\n\n`);
  });
  const { ask } = await calling(t, upstream.url);
  for ([status, type] of [
    [200, 'application/json'],
    [200, 'text/event-stream'],
    [429, 'application/json'],
  ] as const) {
    const { headers } = await ask();
    t.is(headers['retry-after'], '3', `${status} ${type}`);
    t.regex(String(headers['content-type']), new RegExp(type));
    for (const name of [
      'set-cookie',
      'server',
      'x-token',
      'access-control-allow-origin',
      'mcp-session-id',
      'location',
    ]) {
      t.false(name in headers, `${name} of ${status} ${type}`);
    }
  }
});

test('[G16] a call whose upstream broke off has cost what it costs: who can make it fail does not call for nothing', async (t) => {
  const upstream = await startScripted(t, (response) => response.socket?.destroy());
  const costs = { '*': 1 };
  const rig = await Rig.start(t, { routes: [credentialFree({ name: 'wiki', url: upstream.url, costs })] });
  const key = await rig.mint({ servers: ['wiki'], maxBudget: 1 });
  const ask = () => rig.post('/wiki/mcp', call.body, { ...call.headers, ...admission(key) });
  t.is((await ask()).status, 502);
  await rig.ended(1);
  t.regex(await (await ask()).text(), /Budget of this key exceeded/);
  t.is(upstream.heard.length, 1);
});

test('what the gateway itself does wrong is logged and answered as its own, and no upstream is blamed', async (t) => {
  let status = 200;
  const upstream = await startScripted(t, (response, heard) =>
    response.writeHead(status, JSON_TYPE).end(resultFor(heard, {})),
  );
  let left = Number.POSITIVE_INFINITY;
  const kind = defineRouteKind({
    name: 'failing',
    options: z.strictObject({}),
    needsSecret: false,
    headers: () => {
      left -= 1;
      if (left < 0) throw new TypeError(`cannot read of undefined ${TOKEN}`);
      return { 'x-own': '1' };
    },
  });
  const { rig, ask } = await calling(t, upstream.url, kind);
  t.is((await ask()).status, 200);
  const wanted = [{ outcome: 'ok', status: 200 }];
  // Before the upstream is asked, and while its answer is passed on.
  for (const good of [0, 1]) {
    status = 400;
    left = good;
    const answer = await ask();
    t.is(answer.status, 500, answer.text);
    const { id, error } = answer.json();
    t.is(id, 7);
    const correlation = answer.headers['x-correlation-id'];
    t.like(error, { code: -32_603, data: { code: 'HF_INTERNAL', correlation } });
    t.regex(error?.message ?? '', /did not foresee/);
    t.false(answer.text.includes(TOKEN));
    t.is(upstream.heard.length, 1 + good);
    const line = rig.lines.find(
      (one) => one.includes('gateway.call_failed') && one.includes(String(correlation)),
    );
    t.regex(line ?? '', /HF_INTERNAL[\s\S]*TypeError/);
    wanted.push({ outcome: 'failed', status: 500 });
  }
  const ended = (await rig.ended(3)).map(({ outcome, status: sent }) => ({ outcome, status: sent }));
  t.deepEqual(ended, wanted as never);
  left = 0;
  const key = await rig.mint({ servers: ['wiki'] });
  const list = { ...call.headers, 'mcp-method': 'tools/list', ...admission(key) };
  delete (list as Record<string, string>)['mcp-name'];
  const merged = await send(`${rig.url}/mcp/`, {
    headers: list,
    body: rpc('tools/list', { _meta: ENVELOPE }),
  });
  t.regex(merged.text, /"server":"wiki","reason":"could not be asked: the gateway failed"/);
  t.is(rig.lines.filter((one) => one.includes('gateway.call_failed')).length, 3);
});

test('an upstream that is down: 502', async (t) => {
  const taken = createServer();
  await new Promise<void>((done) => taken.listen(0, '127.0.0.1', done));
  const { port } = taken.address() as { port: number };
  await new Promise((done) => taken.close(done));
  const { rig, ask } = await calling(t, `http://127.0.0.1:${port}/mcp`);
  const answer = await ask();
  t.is(answer.status, 502);
  t.regex(answer.json().error?.message ?? '', /cannot be reached/);
  t.like(await rig.whenEnded('tools/call'), { outcome: 'unreachable', status: 502 });
});

test('[G23] an event stream that breaks off breaks off for the client too, never looking whole', async (t) => {
  const upstream = await startScripted(t, (response) =>
    response
      .writeHead(200, { 'content-type': 'text/event-stream' })
      .write('data: {}\n\n', () => response.socket?.resetAndDestroy()),
  );
  const { rig, ask } = await calling(t, upstream.url);
  await t.throwsAsync(ask(), { code: 'ECONNRESET' });
  t.like(await rig.whenEnded('tools/call'), { outcome: 'cut', status: 200 });
});

test('[G19] no piece of the credential comes back in an error that its upstream cuts or wraps', async (t) => {
  const tokenFile = join(tempDir(t), 'token');
  writeFileSync(tokenFile, TOKEN, { mode: 0o600 });
  const pieces = [
    `${TOKEN.slice(0, 14)}\n  ${TOKEN.slice(14)}`,
    `${TOKEN.slice(0, 12)}...`,
    `...${TOKEN.slice(9)}`,
  ];
  let said: (heard: Heard) => readonly [status: number, body: string] = () => [500, ''];
  const upstream = await startScripted(t, (response, heard) => {
    const [status, body] = said(heard);
    response.writeHead(status, JSON_TYPE).end(body);
  });
  const rig = await Rig.start(t, { routes: [overwrite({ name: 'docs', url: upstream.url, tokenFile })] });
  const headers = { 'content-type': 'application/json', accept: MEDIA };
  const key = admission(await rig.mint({ servers: ['docs'] }));
  for (const piece of pieces) {
    const text = `no such key: ${piece}`;
    for (const way of [
      () => [500, JSON.stringify({ error: text })] as const,
      () =>
        [404, JSON.stringify({ jsonrpc: '2.0', id: 1, error: { code: -32_000, message: text } })] as const,
      () =>
        [200, JSON.stringify({ jsonrpc: '2.0', id: 1, error: { code: -32_000, message: text } })] as const,
      (heard: Heard) =>
        [200, resultFor(heard, { isError: true, content: [{ type: 'text', text }] })] as const,
    ]) {
      said = way;
      const answer = await send(`${rig.url}/docs/mcp`, { headers: { ...headers, ...key }, body: initialize });
      t.true(answer.status >= 400, answer.text);
      t.notRegex(answer.text, /tok_cana|ary_0123|23456789/);
    }
  }
});

test('[G19] the credential of an overwrite route comes back in no answer, whatever its upstream repeats', async (t) => {
  const tokenFile = join(tempDir(t), 'token');
  writeFileSync(tokenFile, TOKEN, { mode: 0o600 });
  let status = 401;
  const upstream = await startScripted(t, (response, { headers }) =>
    response.writeHead(status, { ...JSON_TYPE, 'www-authenticate': `Bearer error="${TOKEN}"` }).end(
      JSON.stringify({
        jsonrpc: '2.0',
        id: 7,
        error: { code: -1, message: `bad ${headers.authorization}` },
      }),
    ),
  );
  const { rig, ask } = await calling(t, upstream.url, overwrite, { tokenFile });
  for (status of [401, 403, 400, 500]) {
    const answer = await ask();
    t.true(answer.status >= 400);
    t.false(JSON.stringify([answer.text, answer.headers]).includes(TOKEN), String(status));
  }
  t.is(upstream.heard.at(-1)?.headers.authorization, `Bearer ${TOKEN}`);
  t.deepEqual(await rig.traces(TOKEN), []);
});

const EVENTS_TYPE = { 'content-type': 'text/event-stream' };
const REPEATING: readonly (readonly [what: string, script: Script])[] = [
  [
    'a small result',
    (response, heard) => response.writeHead(200, JSON_TYPE).end(resultFor(heard, { repeated: TOKEN })),
  ],
  [
    'a large result, cut in two',
    (response, heard) => {
      const text = resultFor(heard, { text: 'x'.repeat(200_000), repeated: TOKEN });
      const middle = text.lastIndexOf(TOKEN) + 5;
      response.writeHead(200, JSON_TYPE).write(text.slice(0, middle), () => {
        setTimeout(() => response.end(text.slice(middle)), 20);
      });
    },
  ],
  [
    'an event stream',
    (response, heard) =>
      response.writeHead(200, EVENTS_TYPE).end(`data: ${resultFor(heard, { repeated: TOKEN })}\n\n`),
  ],
];

for (const [what, script] of REPEATING) {
  test(`[G19] the credential of an overwrite route comes back in no good answer either: ${what}`, async (t) => {
    const tokenFile = join(tempDir(t), 'token');
    writeFileSync(tokenFile, TOKEN, { mode: 0o600 });
    const upstream = await startScripted(t, script);
    const { rig, ask } = await calling(t, upstream.url, overwrite, { tokenFile });
    const text = await ask().then(
      (answer) => answer.text,
      () => 'a broken connection',
    );
    t.false(text.includes(TOKEN));
    const [ended] = await rig.ended(1);
    t.true(ended?.outcome === 'http_error' || ended?.outcome === 'cut');
    t.deepEqual(await rig.traces(TOKEN), []);
  });
}

test('[G19] a credential is found across parts, however small they are', (t) => {
  const watching = () =>
    credentialWatch({
      entry: { disposition: 'overwrite' },
      credential: () => ({ authorization: `Bearer ${TOKEN}` }),
    } as never);
  for (const size of [1, 2, 7, TOKEN.length - 1, TOKEN.length, 1_000]) {
    const bytes = Buffer.from(`${'x'.repeat(100)}${TOKEN}${'x'.repeat(100)}`);
    const watch = watching();
    t.throws(
      () => {
        for (let at = 0; at < bytes.length; at += size) watch(bytes.subarray(at, at + size));
      },
      { instanceOf: CredentialRepeated },
      String(size),
    );
  }
  const watch = watching();
  t.notThrows(() => watch(Buffer.from(TOKEN.slice(1))));
});

const refusing =
  (status: number): Script =>
  (response) =>
    response
      .writeHead(status, {
        ...JSON_TYPE,
        'www-authenticate': [
          'Basic realm="x", error="of basic"',
          'Bearer realm="x", error="insufficient_scope", scope="a b", resource_metadata="http://upstream.internal/meta"',
        ],
      })
      .end('{"detail":"upstream.internal"}');

for (const status of [401, 403]) {
  test(`[G8,G26] the ${status} of a relay upstream comes with its challenge, which points at our own document`, async (t) => {
    const upstream = await startScripted(t, refusing(status));
    const { rig, ask } = await calling(t, upstream.url, relay);
    const answer = await ask({ authorization: 'Bearer identity' });
    t.is(answer.status, status);
    const metadata = `${rig.url}/.well-known/oauth-protected-resource/wiki/mcp`;
    t.is(
      answer.headers['www-authenticate'],
      `Bearer error="insufficient_scope", scope="a b", resource_metadata="${metadata}"`,
    );
    t.false(answer.text.includes('upstream.internal'));
    t.is(upstream.heard[0]?.headers.authorization, 'Bearer identity');
  });
}

test('[G8] relayErrors: jsonrpc makes an error in a 200 of it', async (t) => {
  const upstream = await startScripted(t, refusing(401));
  const { ask } = await calling(t, upstream.url, relay, { relayErrors: 'jsonrpc' });
  const answer = await ask({ authorization: 'Bearer identity' });
  t.is(answer.status, 200);
  t.like(answer.json(), { id: 7, error: { code: -32_001 } });
  t.false('www-authenticate' in answer.headers);
});

test('[G8] a JSON-RPC error in a 200 and an error of the protocol pass as they are', async (t) => {
  const error = { code: -32_021, message: 'missing capability' };
  let status = 200;
  const text = JSON.stringify({ jsonrpc: '2.0', id: 7, error });
  const upstream = await startScripted(t, (response) => response.writeHead(status, JSON_TYPE).end(text));
  const { rig, ask } = await calling(t, upstream.url);
  for (status of [200, 400, 404, 500]) t.like(await ask(), { status, text });
  const ended = await rig.ended(4);
  t.deepEqual(
    ended.map(({ outcome, code }) => [outcome, code]),
    [
      ['rpc_error', -32_021],
      ['http_error', -32_021],
      ['http_error', -32_021],
      ['http_error', -32_021],
    ],
  );
});

const WIDE = 'x'.repeat(100 * 1024);
const sse = (text: string): string => `event: message\ndata: ${text}\n\n`;
const OUTCOMES: readonly (readonly [string, (padding: string) => object])[] = [
  ['ok', (padding) => ({ result: { content: [{ type: 'text', text: `"isError" ${padding}` }] } })],
  ['tool_error', (padding) => ({ result: { content: [{ type: 'text', text: padding }], isError: true } })],
  ['rpc_error', (padding) => ({ error: { code: -32_000, message: padding } })],
];

test('[G23] records tell a good result, a tool’s error and a protocol’s error apart, in JSON and event streams, small and large', async (t) => {
  let body: object = {};
  let asEvents = false;
  const upstream = await startScripted(t, (response, heard) => {
    const text = JSON.stringify({ ...JSON.parse(resultFor(heard, 0)), result: undefined, ...body });
    const note = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: { error: 'no' } });
    response.writeHead(200, { 'content-type': asEvents ? 'text/event-stream' : 'application/json' });
    response.end(asEvents ? sse(note) + sse(text) : text);
  });
  const { rig, ask } = await calling(t, upstream.url);
  const wanted: string[] = [];
  for (const padding of ['', WIDE]) {
    for (asEvents of [false, true]) {
      for (const [outcome, make] of OUTCOMES) {
        body = make(padding);
        t.is((await ask()).status, 200);
        wanted.push(outcome);
      }
    }
  }
  const ended = await rig.ended(wanted.length);
  t.deepEqual(
    ended.map(({ outcome }) => outcome),
    wanted as never,
  );
  t.true(
    ended.every(({ bytes, code, outcome }) => bytes && (outcome === 'rpc_error') === (code === -32_000)),
  );
});

test('[G23] large results reach slow clients byte for byte, beside clients that leave in the middle', async (t) => {
  const sizes = [1, 3, 7, 9].map((mib) => mib * 1024 * 1024);
  const text = (size: number) => size.toString(36).repeat(size).slice(0, size);
  let asked = 0;
  const upstream = await startScripted(t, (response, heard) => {
    const result = { content: [{ type: 'text', text: text(sizes[asked++ % sizes.length] as number) }] };
    response.writeHead(200, JSON_TYPE).end(resultFor(heard, result));
  });
  const { rig } = await calling(t, upstream.url);
  const headers = { ...call.headers, ...admission(await rig.mint({ servers: ['wiki'] })) };
  const client = async (leaves: boolean) => {
    const answer = await rig.post('/wiki/mcp', call.body, headers);
    const parts: Uint8Array[] = [];
    for await (const part of answer.body ?? []) {
      parts.push(part);
      if (leaves) return undefined;
      if (parts.length < 20) await delay(5);
    }
    const { result } = JSON.parse(Buffer.concat(parts).toString('utf8')) as {
      result: { content: [{ text: string }] };
    };
    return result.content[0].text;
  };
  for (let round = 0; round < 2; round += 1) {
    const came = await Promise.all([...sizes, ...sizes].map((_, index) => client(index >= sizes.length)));
    for (const one of came) t.true(one === undefined || one === text(one.length));
    t.is(came.filter((one) => one !== undefined).length, sizes.length);
  }
  const ended = await rig.ended(4 * sizes.length);
  t.is(ended.filter(({ outcome }) => outcome === 'ok').length >= 2 * sizes.length, true);
});
