import { once } from 'node:events';
import { Agent, request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import test from 'ava';
import { createSurface } from '../../../../src/core/host/http/surface.ts';
import { createLogger } from '../../../../src/core/host/logging/logger.ts';
import { serve } from './support.ts';

function gate() {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { promise, open: resolve };
}

test('what is being answered is finished, what is new is refused with 503, then the port is free', async (t) => {
  const entered = gate();
  const finish = gate();
  const { surface, url } = await serve(t, {}, (http) => {
    http.get('/slow', async () => {
      entered.open();
      await finish.promise;
      return { done: true };
    });
  });
  const slow = fetch(`${url}/slow`);
  await entered.promise;
  const closed = surface.close(10_000);
  const refused = await fetch(`${url}/slow`);
  t.is(refused.status, 503);
  t.is(((await refused.json()) as { code: string }).code, 'HF_HTTP_STOPPING');
  finish.open();
  const answer = await slow;
  t.is(answer.headers.get('connection'), 'close');
  t.deepEqual(await answer.json(), { done: true });
  await closed;
  await t.throwsAsync(fetch(`${url}/slow`));
});

test('[C13] a request on its way when the surface stops is answered that it stops: no client is left to guess', async (t) => {
  const { surface, port } = await serve(t);
  const call = 'GET /thing/1 HTTP/1.1\r\nhost: localhost\r\n\r\n';
  const asked = connect(port, '127.0.0.1');
  const silent = connect(port, '127.0.0.1');
  t.teardown(() => {
    for (const socket of [asked, silent]) socket.destroy();
  });
  asked.write(call);
  await Promise.all([once(asked, 'readable'), once(silent, 'connect')]);
  const closed = surface.close(10_000);
  asked.write(call);
  silent.write(call);
  for (const answers of await Promise.all([text(asked), text(silent)]))
    t.regex(answers, /HTTP\/1\.1 503 (?:.*\r\n)*retry-after: 1\r\n(?:.*\r\n)*.*HF_HTTP_STOPPING/);
  await closed;
});

test('at the deadline a request that is still open is cut, and the log says how many', async (t) => {
  const entered = gate();
  const { surface, url, lines } = await serve(t, {}, (http) => {
    http.get('/never', () => {
      entered.open();
      return new Promise(() => {});
    });
  });
  const never = fetch(`${url}/never`);
  await entered.promise;
  await Promise.all([surface.close(100), t.throwsAsync(never)]);
  t.like(
    lines.find(({ msg }) => msg === 'http.cut'),
    { requests: 1, level: 'warn' },
  );
});

test('idle keep-alive connections do not delay the end', async (t) => {
  const { surface, url } = await serve(t);
  const agent = new Agent({ keepAlive: true });
  t.teardown(() => agent.destroy());
  const request = httpRequest(`${url}/thing/1`, { agent });
  request.end();
  const [response] = await once(request, 'response');
  response.resume();
  await once(response, 'end');
  t.timeout(60_000, 'an idle connection is kept for longer');
  await surface.close(10_000);
  t.pass();
});

test('a stream ends when it hears that the surface drains', async (t) => {
  const { surface, url } = await serve(t, {}, (http) => {
    http.get('/stream', (_request, reply) => {
      reply.hijack();
      reply.raw.writeHead(200, { 'content-type': 'text/event-stream' });
      reply.raw.write('data: hello\n\n');
      http.draining.addEventListener('abort', () => reply.raw.end('data: bye\n\n'));
    });
  });
  const response = await fetch(`${url}/stream`);
  const closed = surface.close(10_000);
  t.is(await response.text(), 'data: hello\n\ndata: bye\n\n');
  await closed;
});

test('a surface that never listened can be closed, and closing twice is closing once', async (t) => {
  const surface = createSurface(
    { name: 'x', port: 0, portVariable: 'X' },
    { logger: createLogger({ level: 'silent' }) },
  );
  const first = surface.close(100);
  t.is(surface.close(100), first);
  await first;
});
