import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { Agent } from 'undici';
import { HostError } from '../../../../src/core/host/errors/host-error.ts';
import { BodyTooLarge, readBody } from '../../../../src/core/host/http/bounded-body.ts';
import {
  HttpAnswer,
  HttpCallError,
  HttpClient,
  type HttpClientOptions,
} from '../../../../src/core/host/http/client.ts';
import { networkFailure } from '../../../../src/core/host/http/network-failure.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

async function served(t: ExecutionContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function client(t: ExecutionContext, options: Partial<HttpClientOptions>): HttpClient {
  const http = new HttpClient({ timeoutMs: 5_000, answerLimit: 1_000, ...options });
  t.teardown(() => http.close());
  return http;
}

const failed = async (t: ExecutionContext, call: Promise<unknown>) => {
  const error = await t.throwsAsync<HttpCallError>(call, { instanceOf: HttpCallError });
  return { failure: error?.failure, text: error?.what ?? '' };
};

/** A client sends by connections of its own, or by the agent of whoever holds the server's credentials. */
const SENDERS = ['client', 'agent'] as const;

function sentBy(t: ExecutionContext, sender: (typeof SENDERS)[number], options: Partial<HttpClientOptions>) {
  if (sender === 'client') return client(t, options);
  const dispatcher = new Agent();
  t.teardown(() => dispatcher.destroy());
  return client(t, { ...options, dispatcher });
}

for (const sender of SENDERS) {
  test(`a call by the ${sender} sends JSON below the base, and its answer is whole`, async (t) => {
    const base = await served(t, async (request, response) => {
      const { bytes } = await readBody(request, 100);
      const { url, method, headers } = request;
      const seen = { url, method, type: headers['content-type'], key: headers['x-key'], body: String(bytes) };
      response.writeHead(201, { 'set-cookie': ['a=1', 'b=2'], etag: 'one' }).end(JSON.stringify(seen));
    });
    const http = sentBy(t, sender, { base: `${base}/below/` });
    const answer = await http.call({
      method: 'PUT',
      url: '/a?b=c',
      json: { d: 1 },
      headers: { 'x-key': 'k' },
    });
    t.deepEqual(answer.json(), {
      url: '/below/a?b=c',
      method: 'PUT',
      type: 'application/json',
      key: 'k',
      body: '{"d":1}',
    });
    t.is(answer.status, 201);
    t.true(answer.ok);
    t.is(answer.header('etag'), 'one');
    t.is(answer.header('none'), undefined);
  });

  test(`a redirect is an answer of the ${sender}, and is not followed`, async (t) => {
    const asked: string[] = [];
    const base = await served(t, ({ url = '' }, response) => {
      asked.push(url);
      response.writeHead(302, { location: '/elsewhere' }).end();
    });
    const answer = await sentBy(t, sender, { base }).call({ url: '/a' });
    t.is(answer.status, 302);
    t.false(answer.ok);
    t.deepEqual(asked, ['/a']);
  });

  test(`the ${sender} refuses an answer beyond the limit, or cuts it`, async (t) => {
    const base = await served(t, (_request, response) => void response.end('x'.repeat(5_000)));
    const { failure, text } = await failed(t, sentBy(t, sender, { base }).call({ url: '/' }));
    t.is(failure, 'too_large');
    t.regex(text, /larger than 1000 bytes/);
    const cut = await sentBy(t, sender, { base, excess: 'cut' }).call({ url: '/' });
    t.true(cut.truncated);
    t.is(cut.text(), 'x'.repeat(1_000));
  });

  test(`the deadline of the ${sender} covers the body too`, async (t) => {
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const base = await served(t, (_request, response) => {
      response.write('begin');
      begin();
    });
    const clock = new VirtualClock();
    const call = failed(t, sentBy(t, sender, { base, clock }).call({ url: '/', timeoutMs: 7_000 }));
    await begun;
    await clock.advance(6_999);
    await clock.advance(1);
    const { failure, text } = await call;
    t.is(failure, 'timeout');
    t.regex(text, /nothing came within 7 s/);
  });

  test(`a call by the ${sender} that is given up fails with the caller's own reason`, async (t) => {
    const over = new AbortController();
    const base = await served(t, () => over.abort(new Error('enough')));
    const http = sentBy(t, sender, { base });
    await t.throwsAsync(http.call({ url: '/', signal: over.signal }), { message: 'enough' });
    await t.throwsAsync(http.call({ url: '/', signal: over.signal }), { message: 'enough' });
  });

  test(`no error of the ${sender} repeats a path, a query, a credential or a body`, async (t) => {
    const base = await served(t, (request) => request.socket.destroy());
    const canary = 'canary-5f1c';
    const http = sentBy(t, sender, { base: base.replace('//', `//${canary}:${canary}@`) });
    const sent = { method: 'POST', url: `/${canary}?k=${canary}`, body: canary } as const;
    const error = await t.throwsAsync<HttpCallError>(
      http.call({ ...sent, headers: { authorization: canary } }),
      { instanceOf: HttpCallError },
    );
    t.is(error?.failure, 'broken');
    t.notRegex(`${error?.message} ${error?.stack} ${JSON.stringify(error)}`, /canary/);
    t.is(error?.cause, undefined);
  });
}

test('a connection is kept for the next call, unless the client keeps none', async (t) => {
  const connections = new Set<number | undefined>();
  const base = await served(t, ({ socket }, response) => {
    connections.add(socket.remotePort);
    response.end('done');
  });
  const threeCalls = async (options: Partial<HttpClientOptions>) => {
    connections.clear();
    const http = client(t, { base, ...options });
    for (let i = 0; i < 3; i += 1) await http.call({ url: '/' });
    return connections.size;
  };
  t.is(await threeCalls({}), 1);
  t.is(await threeCalls({ keepAlive: false }), 3);
});

test('a client connects for no longer than it may', async (t) => {
  const url = `https://127.0.0.1:${await silent(t)}/`;
  const { failure, text } = await failed(t, client(t, { connectTimeoutMs: 100 }).call({ url }));
  t.is(failure, 'connect');
  t.regex(text, /no connection within 0\.1 s/);
});

test('an answer may not pause for longer than a call allows', async (t) => {
  const base = await served(t, (_request, response) => void response.write('begin'));
  const { failure, text } = await failed(t, client(t, { base }).call({ url: '/', idleTimeoutMs: 100 }));
  t.is(failure, 'timeout');
  t.regex(text, /nothing more came in time/);
});

test('a URL of another protocol is not called', async (t) => {
  const base = await served(t, (_request, response) => void response.end());
  const call = client(t, {}).call({ url: base.replace('http:', 'ftp:') });
  t.is((await failed(t, call)).failure, 'other');
});

test('where nothing listens, the error says so', async (t) => {
  const http = client(t, {});
  const { failure, text } = await failed(t, http.call({ url: 'http://127.0.0.1:1/' }));
  t.is(failure, 'connect');
  t.regex(text, /GET http:\/\/127\.0\.0\.1:1 .*nothing listens there \(ECONNREFUSED\)/);
});

/** Takes connections and says nothing, so that no TLS handshake ends. */
async function silent(t: ExecutionContext): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => void sockets.add(socket.on('error', () => {}))).listen(
    0,
    '127.0.0.1',
  );
  await once(server, 'listening');
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

for (const sender of SENDERS) {
  test(`the deadline of a call by the ${sender} covers connecting, and so does its signal`, async (t) => {
    t.timeout(180_000);
    const url = `https://127.0.0.1:${await silent(t)}/`;
    const http = sentBy(t, sender, { timeoutMs: 100 });
    t.is((await failed(t, http.call({ url }))).failure, 'timeout');
    const given = sentBy(t, sender, { timeoutMs: 60_000 });
    const signal = AbortSignal.timeout(100);
    await t.throwsAsync(given.call({ url, signal }), { name: 'TimeoutError' });
  });
}

test('the deadline of a call covers its wait for a connection of the pool', async (t) => {
  t.timeout(180_000);
  const base = await served(t, (request, response) => {
    if (request.url === '/quick') response.end('done');
  });
  const http = client(t, { base, connections: 1 });
  const slow = http.call({ url: '/slow', timeoutMs: 60_000 }).catch(() => 'ended');
  t.is((await failed(t, http.call({ url: '/quick', timeoutMs: 100 }))).failure, 'timeout');
  await http.close();
  t.is(await slow, 'ended');
});

test('a client may connect elsewhere than its URL says', async (t) => {
  const base = await served(t, ({ headers }, response) => void response.end(headers.host));
  const port = Number(new URL(base).port);
  const http = client(t, { base: 'http://router.example:9', connectTo: { host: '127.0.0.1', port } });
  t.is((await http.call({ url: '/' })).text(), 'router.example:9');
});

test('an answer that is read as it comes passes coded errors on, and what is unread is let go', async (t) => {
  const { promise: closed, resolve: close } = Promise.withResolvers<void>();
  const base = await served(t, (_request, response) => {
    response.on('close', close);
    response.write('first');
  });
  const http = client(t, { base });
  const read = () => {
    throw new HostError('HF_HTTP_STOPPING');
  };
  await t.throwsAsync(
    http.stream({ url: '/' }, async () => read()),
    { code: 'HF_HTTP_STOPPING' },
  );
  await closed;
  t.pass();
});

test('a cut answer is read without a secret that the cut split, whichever character it split', async (t) => {
  const secret = 'schl\u00fcssel-4711';
  const bytes = Buffer.from(`so ${secret}, and again ${secret}`);
  for (let length = 0; length <= bytes.length; length += 1) {
    const text = new HttpAnswer(200, {}, bytes.subarray(0, length), true).textWithout([secret]);
    t.true('so [redacted], and again [redacted]'.startsWith(text), `${length} bytes: ${text}`);
  }
  const whole = new HttpAnswer(200, {}, bytes, false).textWithout([secret]);
  t.is(whole, 'so [redacted], and again [redacted]');
});

test('an excerpt has one line, and no secret of the call', async (t) => {
  const base = await served(t, (_request, response) => void response.end('no\n\tkey tok-en1234\u0007 fits'));
  const answer = await client(t, { base }).call({ url: '/' });
  t.is(answer.excerpt(100, 'tok-en1234'), 'no key [redacted] fits');
  const wrapped = new HttpAnswer(401, {}, Buffer.from('no key tok-\n  en1234, began tok-en12\u2026'), false);
  t.is(wrapped.excerpt(100, 'tok-en1234'), 'no key [redacted], began [redacted]\u2026');
  t.is(answer.json(), undefined);
});

test('a URL that is not valid fails the call with the code of any other failure, and is not repeated', async (t) => {
  const { text } = await failed(t, client(t, { base: 'http://:secret@' }).call({ url: '/' }));
  t.regex(text, /its URL is not valid/);
  t.false(text.includes('secret'));
});

test('JSON that is nested too deep is none', async (t) => {
  const base = await served(t, (_request, response) => void response.end('['.repeat(200) + ']'.repeat(200)));
  t.is((await client(t, { base }).call({ url: '/' })).json(), undefined);
});

test('failures of several addresses and of fetch are told by the first cause', (t) => {
  const refused = Object.assign(new Error('x'), { code: 'ECONNREFUSED' });
  const several = new AggregateError([refused]);
  t.is(networkFailure(new TypeError('fetch failed', { cause: several }), 1_000).failure, 'connect');
  t.is(networkFailure(Object.assign(new Error(), { code: 'CERT_HAS_EXPIRED' }), 1_000).failure, 'tls');
  t.is(networkFailure('what', 1_000).code, 'UNKNOWN');
});

test('a body is read to its limit and no further', async (t) => {
  let taken = 0;
  async function* endless() {
    while (true) {
      taken += 1;
      yield Buffer.alloc(100);
    }
  }
  await t.throwsAsync(readBody(endless(), 250), { instanceOf: BodyTooLarge });
  t.is(taken, 3);
  t.is((await readBody(endless(), 250, { excess: 'cut' })).bytes.length, 250);
});

test('a body of announced length is read into one buffer, and a longer one is too large', async (t) => {
  const sizes: number[] = [];
  async function* chunks() {
    for (const text of ['abc', 'de', 'f']) yield new TextEncoder().encode(text);
  }
  const onGrowth = (bytes: number) => void sizes.push(bytes);
  const { bytes } = await readBody(chunks(), 10, { announced: 6, onGrowth });
  t.is(bytes.toString(), 'abcdef');
  t.is(bytes.buffer.byteLength, 6);
  t.deepEqual(sizes, [3, 5, 6]);
  t.is((await readBody(chunks(), 10, { announced: 9 })).bytes.toString(), 'abcdef');
  await t.throwsAsync(readBody(chunks(), 10, { announced: 5 }), { instanceOf: BodyTooLarge });
  await t.throwsAsync(readBody(chunks(), 10, { announced: 11 }), { instanceOf: BodyTooLarge });
});
