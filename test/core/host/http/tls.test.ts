import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, closeSync, openSync, readFileSync, renameSync, writeFileSync, writeSync } from 'node:fs';
import { connect as connectPlain } from 'node:net';
import { join } from 'node:path';
import { connect } from 'node:tls';
import test, { type ExecutionContext } from 'ava';
import { readKeyPair, ServedCertificate } from '../../../../src/core/host/http/certificate.ts';
import { HttpCallError, HttpClient } from '../../../../src/core/host/http/client.ts';
import type { Place, SurfaceOptions } from '../../../../src/core/host/http/contract.ts';
import { ownSurface } from '../../../../src/core/host/http/own-surface.ts';
import { createSurface } from '../../../../src/core/host/http/surface.ts';
import { createLogger } from '../../../../src/core/host/logging/logger.ts';
import { makeCertificate } from '../../../support/certificate.ts';
import { tempDir } from '../../../support/temp.ts';
import { PATIENCE_MS } from '../../../support/until.ts';
import { commonRoutes, raw, serve } from './support.ts';

const silent = createLogger({ level: 'silent' });

async function listening(t: ExecutionContext, options: Partial<SurfaceOptions>): Promise<Place> {
  const surface = createSurface({ name: 'test', port: 0, portVariable: 'X', ...options }, { logger: silent });
  commonRoutes(surface.http);
  t.teardown(() => surface.close(0));
  return surface.listen();
}

function client(t: ExecutionContext): HttpClient {
  const http = new HttpClient({ timeoutMs: 5_000, answerLimit: 10_000 });
  t.teardown(() => http.close());
  return http;
}

test('[C14] a surface with a certificate speaks TLS, and our own clients know it by its fingerprint', async (t) => {
  const tls = makeCertificate(tempDir(t), { name: 'gw.example' });
  const place = await listening(t, { tls });
  t.regex(place.url, /^https:\/\/127\.0\.0\.1:\d+$/);
  t.is(place.bound, place.url.slice('https://'.length));
  t.is(place.tls?.fingerprint, readKeyPair('test', tls).fingerprint);
  const answer = await client(t).call({ ...ownSurface(place), url: '/thing/1' });
  t.deepEqual(answer.json(), { id: '1' });
});

test('[C14] a certificate that is another than the announced one gets no request, and no token', async (t) => {
  const dir = tempDir(t);
  const real = await listening(t, { tls: makeCertificate(dir) });
  let requests = 0;
  const false_ = createSurface(
    { name: 'false', port: 0, portVariable: 'X', tls: makeCertificate(dir, { as: 'other' }) },
    { logger: silent },
  );
  false_.http.addHook('onRequest', async () => {
    requests += 1;
  });
  t.teardown(() => false_.close(0));
  const { url } = await false_.listen();
  const call = { ...ownSurface({ ...real, url }), headers: { authorization: 'Bearer x' }, url: '/thing/1' };
  const error = await t.throwsAsync<HttpCallError>(client(t).call(call), { instanceOf: HttpCallError });
  t.is(error?.failure, 'tls');
  t.is(error?.networkCode, 'ERR_TLS_CERT_PIN');
  t.is(requests, 0);
});

test('[C14] a certificate without a pin is judged by its authority', async (t) => {
  const { url } = await listening(t, { tls: makeCertificate(tempDir(t)) });
  const error = await t.throwsAsync<HttpCallError>(client(t).call({ url: `${url}/thing/1` }));
  t.is(error?.failure, 'tls');
});

test('[C14] a certificate that is a pipe or a device is refused at once, and holds nothing up', (t) => {
  const dir = tempDir(t);
  const { keyFile } = makeCertificate(dir);
  const refused = (certFile: string, message: RegExp) =>
    t.throws(() => readKeyPair('test', { certFile, keyFile }), { code: 'HF_HTTP_CERTIFICATE', message });
  // Whose writer is there, so that a reader would not wait for it for ever.
  const pipe = join(dir, 'pipe');
  execFileSync('mkfifo', [pipe]);
  const writer = openSync(pipe, 'r+');
  t.teardown(() => closeSync(writer));
  writeSync(writer, readFileSync(keyFile));
  refused(pipe, /not a regular file/);
  refused('/dev/null', /not a regular file/);
  writeFileSync(join(dir, 'large'), Buffer.alloc(1024 * 1024 + 1));
  refused(join(dir, 'large'), /larger than/);
});

test('[C14] TLS below 1.2 is refused, and so is plain HTTP', async (t) => {
  const { url } = await listening(t, { tls: makeCertificate(tempDir(t)) });
  const port = Number(new URL(url).port);
  const attempt = (version: 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3') =>
    new Promise<string>((resolve) => {
      const options = { minVersion: version, maxVersion: version, ciphers: 'DEFAULT:@SECLEVEL=0' } as const;
      const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, ...options }, () => {
        resolve(String(socket.getProtocol()));
        socket.destroy();
      });
      socket.on('error', () => resolve('refused'));
    });
  t.is(await attempt('TLSv1.1'), 'refused');
  t.is(await attempt('TLSv1.2'), 'TLSv1.2');
  t.is(await attempt('TLSv1.3'), 'TLSv1.3');
  const answer = await raw(port, 'GET /thing/1 HTTP/1.1\r\nHost: localhost\r\n\r\n');
  t.false(answer.includes('200'), answer);
});

test('[C14] pages of the https origin are its own, and those of the http origin are not', async (t) => {
  const place = await listening(t, { tls: makeCertificate(tempDir(t)) });
  const http = client(t);
  const post = (origin: string) =>
    http.call({ ...ownSurface(place), method: 'POST', url: '/act', headers: { origin } });
  t.is((await post(place.url)).status, 200);
  t.is((await post(place.url.replace('https', 'http'))).status, 403);
});

for (const host of ['0.0.0.0', '::', '192.0.2.7']) {
  for (const admission of ['own', 'token'] as const) {
    test(`[C14] ${host} without TLS is refused by name (admission: ${admission})`, async (t) => {
      const options = { host, admission, token: () => 'a-token' };
      const error = await t.throwsAsync(listening(t, options), { code: 'HF_HTTP_TLS_REQUIRED' });
      t.regex(
        error?.message ?? '',
        new RegExp(`Surface test would listen on ${host.replaceAll('.', '\\.')}`),
      );
      t.regex(error?.message ?? '', /without TLS/);
    });
  }
}

test('[C14] beyond loopback it starts with a certificate, or with `insecure: true`, and says where it is bound', async (t) => {
  const tls = makeCertificate(tempDir(t));
  const secure = await listening(t, { host: '0.0.0.0', token: () => 'a', tls });
  t.regex(secure.url, /^https:\/\/127\.0\.0\.1:/);
  t.is(secure.bound, `0.0.0.0:${new URL(secure.url).port}`);
  const open = await listening(t, { host: '0.0.0.0', token: () => 'a', insecure: true });
  t.is(open.bound, `0.0.0.0:${new URL(open.url).port}`);
  await t.notThrowsAsync(listening(t, { host: '127.0.0.1' }));
});

test('[C14] the token is asked for before the certificate', async (t) => {
  await t.throwsAsync(listening(t, { host: '0.0.0.0' }), { code: 'HF_HTTP_TOKEN_REQUIRED' });
});

test('[C14] a Unix socket needs no certificate and takes none', async (t) => {
  const dir = tempDir(t);
  chmodSync(dir, 0o700);
  const socket = { path: `${dir}/s.sock`, mode: '0600' } as const;
  const place = await listening(t, { socket, tls: makeCertificate(dir) });
  t.is((await client(t).call({ ...ownSurface(place), url: '/thing/1' })).status, 200);
});

const BROKEN: readonly (readonly [string, (files: { certFile: string; keyFile: string }) => void, RegExp])[] =
  [
    ['no certificate', ({ certFile }) => writeFileSync(certFile, 'hello'), /no certificate in PEM form/],
    [
      'half a certificate',
      ({ certFile }) =>
        writeFileSync(certFile, '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n'),
      /what is no certificate/,
    ],
    ['no key', ({ keyFile }) => writeFileSync(keyFile, 'hello'), /no usable private key/],
    ['a key that others may read', ({ keyFile }) => chmodSync(keyFile, 0o644), /0644/],
    [
      'the key of another certificate',
      ({ certFile, keyFile }) => {
        const other = makeCertificate(certFile.replace(/\/[^/]*$/, ''), { as: 'other' });
        renameSync(other.keyFile, keyFile);
      },
      /is the key of another certificate/,
    ],
  ];

for (const [what, spoil, reason] of BROKEN) {
  test(`[C14] ${what}: a start is refused by name, and a running surface keeps the pair that was good`, async (t) => {
    const files = makeCertificate(tempDir(t));
    const lines: string[] = [];
    const logger = createLogger({ level: 'info', destination: { write: (line) => void lines.push(line) } });
    const used: string[] = [];
    let told = 0;
    const served = new ServedCertificate({
      ...{ surface: 'test', logger, files: { ...files, checkMs: 1_000_000 } },
      use: ({ fingerprint }) => used.push(fingerprint),
      onStatus: () => {
        told += 1;
      },
    });
    t.teardown(() => served.stop());
    const good = served.status.fingerprint;
    spoil(files);
    served.check();
    served.check();
    t.deepEqual(used, [good]);
    t.is(served.status.fingerprint, good);
    t.regex(served.status.problem ?? '', reason);
    t.is(told, 1);
    t.is(lines.filter((line) => line.includes('http.certificate_unusable')).length, 1);
    await t.throwsAsync(listening(t, { tls: files }), { code: 'HF_HTTP_CERTIFICATE', message: reason });

    makeCertificate(files.certFile.replace(/\/[^/]*$/, ''));
    served.check();
    t.is(served.status.problem, undefined);
    t.is(used.length, 2);
    t.not(served.status.fingerprint, good);
    t.is(told, 2);
  });
}

test('[C14] a renewed certificate is served to new connections, and open ones go on', async (t) => {
  const dir = tempDir(t);
  const tls = makeCertificate(dir);
  const { surface, url, port } = await serve(t, { tls });
  t.truthy(surface);
  const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const before = socket.getPeerX509Certificate()?.fingerprint256;
  makeCertificate(dir);
  const renewed = readKeyPair('test', tls).fingerprint;
  t.not(before, renewed);
  const seen = () =>
    new Promise<string | undefined>((resolve, reject) => {
      const next = connect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () => {
        resolve(next.getPeerX509Certificate()?.fingerprint256);
        next.destroy();
      });
      next.on('error', reject);
    });
  const deadline = performance.now() + PATIENCE_MS;
  while ((await seen()) !== renewed && performance.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  t.is(await seen(), renewed);
  socket.write(`GET /thing/2 HTTP/1.1\r\nHost: ${new URL(url).host}\r\nConnection: close\r\n\r\n`);
  const [answer] = await once(socket, 'data');
  t.regex(String(answer), /^HTTP\/1\.1 200/);
});

test('[C14] connections that never finish their handshake count, and are closed', async (t) => {
  const { port } = await serve(t, { tls: makeCertificate(tempDir(t)) }, commonRoutes, 'debug', 2);
  const idle = [connectPlain(port, '127.0.0.1'), connectPlain(port, '127.0.0.1')];
  await Promise.all(idle.map((socket) => once(socket, 'connect')));
  const third = connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
  const [error] = await once(third, 'error');
  t.truthy(error);
  for (const socket of idle) socket.destroy();
});
