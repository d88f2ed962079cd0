import test from 'ava';
import { createSurface } from '../../../../src/core/host/http/surface.ts';
import { createLogger } from '../../../../src/core/host/logging/logger.ts';
import { HoldfastError } from '../../../../src/core/kernel/errors/holdfast-error.ts';
import { parsed, raw, serve } from './support.ts';

const request = (host: string) => `GET /thing/1 HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;

for (const host of [
  'localhost',
  'LOCALHOST:1',
  '127.0.0.1',
  '127.9.9.9:80',
  '[::1]:99',
  'localhost.',
  'gw.example',
]) {
  test(`[C14] Host ${host} is served`, async (t) => {
    const { port } = await serve(t, { allowedHosts: ['gw.example'] });
    t.is(parsed(await raw(port, request(host))).status, 200);
  });
}

for (const host of [
  'evil.example',
  'localhost.evil.example',
  '127.0.0.1.evil.example',
  '10.0.0.1',
  '127.1',
  '[::2]',
  'user@localhost',
  'localhost:port',
  '',
  'localhost, evil.example',
]) {
  test(`[C14] Host "${host}" is refused with 421`, async (t) => {
    const { port } = await serve(t, { allowedHosts: ['gw.example'] });
    const { status, body } = parsed(await raw(port, request(host)));
    t.is(status, 421);
    t.is(body.code, 'HF_HTTP_HOST');
  });
}

const open = { host: '0.0.0.0', insecure: true, token: () => 'a-token' };

test('[C14] beyond loopback every path asks for the bearer token, unknown ones too', async (t) => {
  const { url } = await serve(t, open);
  for (const path of ['/thing/1', '/nowhere']) {
    for (const authorization of [
      '',
      'Bearer',
      'Bearer a-toke',
      'Bearer a-token2',
      'Basic a-token',
      'a-token',
    ]) {
      const response = await fetch(url + path, { headers: { authorization } });
      t.is(response.status, 401);
      t.is(response.headers.get('www-authenticate'), 'Bearer');
      t.is(((await response.json()) as { code: string }).code, 'HF_HTTP_UNAUTHORIZED');
    }
  }
  t.is((await fetch(`${url}/thing/1`, { headers: { authorization: 'bearer a-token' } })).status, 200);
});

test('[C14] a token that changes is asked for at once, and one that is gone admits nobody', async (t) => {
  let token: string | undefined = 'first';
  const { url } = await serve(t, { host: '0.0.0.0', insecure: true, token: () => token });
  const status = async (bearer: string) =>
    (await fetch(`${url}/thing/1`, { headers: { authorization: `Bearer ${bearer}` } })).status;
  t.is(await status('first'), 200);
  token = 'second';
  t.is(await status('first'), 401);
  t.is(await status('second'), 200);
  token = undefined;
  t.is(await status('second'), 401);
  t.is(await status('undefined'), 401);
});

test('[C14] a surface beyond loopback does not start without a token', async (t) => {
  for (const host of ['0.0.0.0', '::', '192.0.2.7']) {
    for (const token of [undefined, () => undefined, () => '']) {
      const surface = createSurface(
        { name: 'router', port: 0, portVariable: 'X', host, ...(token && { token }) },
        { logger: createLogger({ level: 'silent' }) },
      );
      const error = await t.throwsAsync(surface.listen(), { instanceOf: HoldfastError });
      t.is(error?.code, 'HF_HTTP_TOKEN_REQUIRED');
      await surface.close(0);
    }
  }
});

test('[C14] a surface that admits callers itself starts beyond loopback without a token', async (t) => {
  const { url } = await serve(t, { host: '0.0.0.0', insecure: true, admission: 'own' });
  t.is((await fetch(`${url}/thing/1`)).status, 200);
});

test('[C14] on loopback no token is asked for', async (t) => {
  const { url } = await serve(t, { token: () => 'a-token' });
  t.is((await fetch(`${url}/thing/1`)).status, 200);
});
