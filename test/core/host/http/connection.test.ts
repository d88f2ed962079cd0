import { connect } from 'node:net';
import test from 'ava';
import { HostError } from '../../../../src/core/host/errors/host-error.ts';
import { dropBody } from '../../../../src/core/host/http/requests.ts';
import { commonRoutes, parsed, raw, serve } from './support.ts';

const JSON_TYPE = { 'content-type': 'application/json' };
const head = 'Host: localhost\r\nContent-Type: application/json\r\n';

/** Headers that an answer has whoever refused the request, the parser too. */
const OF_EVERY_ANSWER = [
  /\r\nx-correlation-id: [\da-f-]{36}\r\n/i,
  /\r\nx-content-type-options: nosniff\r\n/i,
  /\r\ncache-control: no-store\r\n/i,
  /\r\nconnection: close\r\n/i,
];

const malformed: [title: string, bytes: string, status: number, code: string][] = [
  ['nothing that is HTTP', 'GARBAGE\r\n\r\n', 400, 'HF_HTTP_REQUEST_INVALID'],
  ['an unknown method', 'FLY /echo HTTP/1.1\r\nHost: localhost\r\n\r\n', 400, 'HF_HTTP_REQUEST_INVALID'],
  ['no Host', 'GET /thing/1 HTTP/1.1\r\nConnection: close\r\n\r\n', 400, 'HF_HTTP_REQUEST_INVALID'],
  [
    'two Hosts',
    'GET /thing/1 HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n',
    400,
    'HF_HTTP_REQUEST_INVALID',
  ],
  [
    'a whole URL as target',
    'GET http://evil.example/thing/1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n',
    400,
    'HF_HTTP_REQUEST_INVALID',
  ],
  [
    'two lengths',
    `POST /echo HTTP/1.1\r\n${head}Content-Length: 2\r\nContent-Length: 30\r\n\r\n{}GET /thing/1 HTTP/1.1\r\n\r\n`,
    400,
    'HF_HTTP_REQUEST_INVALID',
  ],
  [
    'a length beside chunks',
    `POST /echo HTTP/1.1\r\n${head}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    400,
    'HF_HTTP_REQUEST_INVALID',
  ],
  [
    'chunks under a disguise',
    `POST /echo HTTP/1.1\r\n${head}Transfer-Encoding: xchunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    400,
    'HF_HTTP_REQUEST_INVALID',
  ],
  [
    'chunks named twice',
    `POST /echo HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    400,
    'HF_HTTP_REQUEST_INVALID',
  ],
  [
    'another encoding before chunks',
    `POST /echo HTTP/1.1\r\n${head}Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    400,
    'HF_HTTP_REQUEST_INVALID',
  ],
  [
    'a header folded over two lines',
    'GET /thing/1 HTTP/1.1\r\nHost: localhost\r\nX-A: 1\r\n 2\r\n : \r\n\r\n',
    400,
    'HF_HTTP_REQUEST_INVALID',
  ],
  [
    'a huge header',
    `GET /thing/1 HTTP/1.1\r\nHost: localhost\r\nX-A: ${'x'.repeat(32 * 1024)}\r\n\r\n`,
    431,
    'HF_HTTP_HEADERS_TOO_LARGE',
  ],
  [
    'a huge target',
    `GET /${'x'.repeat(32 * 1024)} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
    431,
    'HF_HTTP_HEADERS_TOO_LARGE',
  ],
];

for (const [title, bytes, status, code] of malformed) {
  test(`${title}: ${status} with ${code}, the connection ends, nothing else is answered`, async (t) => {
    const { port, url } = await serve(t);
    const answer = await raw(port, bytes);
    t.is(answer.match(/HTTP\/1\.1 /g)?.length, 1);
    const { status: got, body } = parsed(answer);
    t.is(got, status);
    t.is(body.code, code);
    for (const header of OF_EVERY_ANSWER) t.regex(answer, header);
    t.is((await fetch(`${url}/thing/1`)).status, 200);
  });
}

test('a body that does not arrive is given up with 408', async (t) => {
  const { port } = await serve(t, { requestTimeoutMs: 200 });
  const answer = await raw(port, `POST /echo HTTP/1.1\r\n${head}Content-Length: 100\r\n\r\n{`);
  const { status, body } = parsed(answer);
  t.is(status, 408);
  t.is(body.code, 'HF_HTTP_REQUEST_SLOW');
  for (const header of OF_EVERY_ANSWER) t.regex(answer, header);
});

for (const [title, request, status] of [
  ['a path that is not there', 'POST /nowhere HTTP/1.1\r\nHost: localhost', 404],
  ['a foreign host', 'POST /echo HTTP/1.1\r\nHost: evil.example', 421],
  ['a type that nobody reads', 'POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: image/png', 415],
] as const) {
  for (const length of ['Content-Length: 100', 'Transfer-Encoding: chunked']) {
    const name = length.split(':', 1)[0];
    test(`${title}, with a body that is not read (${name}): one answer ends the connection`, async (t) => {
      const { port } = await serve(t, { requestTimeoutMs: 400 });
      const answer = await raw(port, `${request}\r\n${length}\r\n\r\n`);
      t.deepEqual(answer.match(/HTTP\/1\.1 \d+/g), [`HTTP/1.1 ${status}`]);
      t.regex(answer, /\r\nconnection: close\r\n/i);
    });
  }
}

test('a refused request without a body, and one whose body is read, keep their connection', async (t) => {
  const { port } = await serve(t, {}, (http) => {
    commonRoutes(http);
    http.post('/refused', () => {
      throw new HostError('HF_HTTP_UNAUTHORIZED');
    });
  });
  const get = 'GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n';
  const post = `POST /refused HTTP/1.1\r\n${head}Content-Length: 2\r\n\r\n{}`;
  const last = 'GET /thing/1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
  const answer = await raw(port, get + post + last);
  t.deepEqual(answer.match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 404', 'HTTP/1.1 401', 'HTTP/1.1 200']);
});

test('the connection of a refused request stays open while the rest of its body is dropped', async (t) => {
  const { port } = await serve(t, {}, (http) => {
    commonRoutes(http);
    http.register((scope, _options, registered) => {
      scope.removeAllContentTypeParsers();
      scope.addContentTypeParser('*', (_request, payload, done) => done(null, payload));
      const config = { writes: { types: 'any', because: 'the body is dropped' } } as const;
      scope.post('/busy', { config }, ({ raw: request }, reply) => {
        dropBody(request, 100);
        return reply.code(503).send('busy');
      });
      registered();
    });
  });
  /** Sends the body's first half, and the rest of what it sends when the answer is there. */
  const talk = async (length: number, rest: string) => {
    const socket = connect(port, '127.0.0.1')
      .setEncoding('latin1')
      .on('error', () => {});
    socket.write(
      `POST /busy HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${length}\r\n\r\n${'x'.repeat(50)}`,
    );
    socket.once('data', () => socket.write('x'.repeat(length - 50) + rest));
    let heard = '';
    for await (const part of socket) heard += part;
    return heard.match(/HTTP\/1\.1 \d+/g);
  };
  const last = 'GET /thing/1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
  t.deepEqual(await talk(100, last), ['HTTP/1.1 503', 'HTTP/1.1 200']);
  t.deepEqual(await talk(101, last), ['HTTP/1.1 503'], 'a body over the limit ends the connection');
});

test('headers that do not arrive are given up with 408', async (t) => {
  const { port } = await serve(t, { requestTimeoutMs: 200 });
  const answer = await raw(port, 'GET /thing/1 HTTP/1.1\r\nHost: local');
  const { status, body } = parsed(answer);
  t.is(status, 408);
  t.is(body.code, 'HF_HTTP_REQUEST_SLOW');
  for (const header of OF_EVERY_ANSWER) t.regex(answer, header);
});

test('[O24] what ends before its handler is counted and reported, and what is no request is counted', async (t) => {
  const reported: unknown[] = [];
  const { port, url, metrics } = await serve(t, { requestTimeoutMs: 200, bodyLimit: 1024 }, (http) => {
    commonRoutes(http);
    http.onUnhandled(({ raw: { url: path, method }, status }) => reported.push([method, path, status]));
  });
  const post = `POST /echo HTTP/1.1\r\n${head}`;
  await raw(port, `${post}Content-Length: 100\r\n\r\n{`);
  await raw(port, `${post}Transfer-Encoding: chunked\r\n\r\nno chunk`);
  await raw(port, `${post}Content-Length: 4000\r\nConnection: close\r\n\r\n${'x'.repeat(4_000)}`);
  await fetch(`${url}/thing/${'x'.repeat(300)}`);
  t.is((await fetch(`${url}/echo`, { method: 'POST', body: '{}', headers: JSON_TYPE })).status, 200);
  await new Promise<void>((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(`${post}Content-Length: 9\r\n\r\n{`));
    setTimeout(() => socket.resetAndDestroy(), 50);
    socket.on('close', () => resolve());
  });
  while (reported.length < 5) await new Promise((resolve) => setTimeout(resolve, 5));
  const long = `/thing/${'x'.repeat(300)}`;
  t.deepEqual(reported, [
    ['POST', '/echo', 408],
    ['POST', '/echo', 400],
    ['POST', '/echo', 413],
    ['GET', long, 414],
    ['POST', '/echo', undefined],
  ]);
  await raw(port, 'GARBAGE\r\n\r\n');
  await raw(port, 'GET /thing/1 HTTP/1.1\r\nHost: local');
  await raw(port, `GET /${'x'.repeat(32 * 1024)} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  const text = await metrics.text();
  for (const status of ['408', '400', '413', 'none', '200']) {
    t.true(text.includes(`http_requests_total{surface="test",route="/echo",status="${status}"} 1`), status);
  }
  for (const status of [400, 408, 431]) {
    t.true(text.includes(`http_connections_refused_total{surface="test",status="${status}"} 1`), `${status}`);
  }
});

test('a client that leaves in the middle of its body is no error of ours', async (t) => {
  const { port, url, lines } = await serve(t);
  await new Promise<void>((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(`POST /echo HTTP/1.1\r\n${head}Content-Length: 100\r\n\r\n{`, () => {
        socket.destroy();
        resolve();
      });
    });
  });
  t.is((await fetch(`${url}/thing/1`)).status, 200);
  await new Promise((resolve) => setTimeout(resolve, 50));
  t.deepEqual(
    lines.filter(({ level }) => level === 'error' || level === 'warn'),
    [],
  );
});

test('a client that sends on and on without waiting for answers loses its connection', async (t) => {
  let begun = 0;
  const { promise: never } = Promise.withResolvers<void>();
  const { port } = await serve(t, {}, (http) => {
    commonRoutes(http);
    http.get('/slow', () => {
      begun += 1;
      return never;
    });
  });
  const ahead = 'GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(20_000);
  t.is(await raw(port, ahead), '');
  t.true(begun < 10_000, `${begun} were begun`);
  const few = 'GET /thing/1 HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(100);
  const last = 'GET /thing/1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
  t.is((await raw(port, few + last)).split('{"id":"1"}').length, 102);
});

test('an endless body is refused without being kept', async (t) => {
  const { port } = await serve(t, { bodyLimit: 1024 });
  const chunk = `400\r\n${'x'.repeat(1024)}\r\n`;
  const answer = await raw(
    port,
    `POST /echo HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\n\r\n${chunk.repeat(20)}`,
  );
  const { status, body } = parsed(answer);
  t.is(status, 413);
  t.is(body.code, 'HF_HTTP_BODY_TOO_LARGE');
});

test('an error on the connection has the surface its own shape of body', async (t) => {
  const { port } = await serve(t, { errorBody: ({ code }) => ({ errors: [code] }) });
  t.deepEqual(parsed(await raw(port, 'GARBAGE\r\n\r\n')).body, { errors: ['HF_HTTP_REQUEST_INVALID'] });
});
