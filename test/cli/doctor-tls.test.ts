import test from 'ava';
import { judgeCertificates } from '../../src/cli/security/certificates.ts';
import { judgePlaintext } from '../../src/cli/security/plaintext.ts';
import { resolveConfig } from '../../src/core/host/config/resolve.ts';
import type { CertificateStatus } from '../../src/core/host/http/certificate.ts';
import { consolePlugin } from '../../src/plugins/console/index.ts';
import { credentialFree, gateway, overwrite } from '../../src/plugins/gateway/index.ts';
import { uptime } from '../../src/plugins/uptime/index.ts';

const NOW = Date.parse('2026-06-15T12:00:00Z');
const certificate = (until: string, more: { from?: string; problem?: string } = {}): CertificateStatus => ({
  file: '/etc/tls/server.crt',
  fingerprint: 'AB',
  validFrom: more.from ?? '2026-01-01T00:00:00.000Z',
  validUntil: until,
  ...(more.problem !== undefined && { problem: more.problem }),
});

const judged = (...seen: ReturnType<typeof certificate>[]) =>
  judgeCertificates(
    seen.map((each, index) => [`s${index}`, each] as const),
    NOW,
  );

test('[C14] a certificate is ok only with 30 days left, valid now, and read from the files as they are', (t) => {
  const good = certificate('2026-07-16T12:00:00.000Z');
  t.like(judged(good), { state: 'ok', found: 's0: /etc/tls/server.crt: until 2026-07-16 (31 days)' });
  t.is(judged(good, certificate('2026-07-15T11:00:00.000Z')).state, 'warn');
  t.is(judged(good, certificate('2026-06-22T13:00:00.000Z')).state, 'warn');
  t.is(judged(good, certificate('2026-06-22T11:00:00.000Z')).state, 'fail');
  t.like(judged(good, certificate('2026-06-15T11:59:59.000Z')), { state: 'fail' });
  t.is(
    judged(good, certificate('2027-01-01T00:00:00.000Z', { from: '2026-07-01T00:00:00.000Z' })).state,
    'fail',
  );
  const broken = judged(good, certificate('2026-09-01T00:00:00.000Z', { problem: 'it is broken' }));
  t.is(broken.state, 'fail');
  t.regex(broken.found, /the earlier pair is, until 2026-09-01: it is broken/);
  t.is(judged().state, 'ok');
});

test('[C14] a certificate of a short life is warned of when a quarter of it is left, and fails at a twelfth', (t) => {
  const sixDays = (until: string, from: string) => judged(certificate(until, { from })).state;
  t.is(sixDays('2026-06-18T12:00:00.000Z', '2026-06-12T12:00:00.000Z'), 'ok');
  t.is(sixDays('2026-06-17T00:00:00.000Z', '2026-06-10T00:00:00.000Z'), 'warn');
  t.is(sixDays('2026-06-16T00:00:00.000Z', '2026-06-09T00:00:00.000Z'), 'fail');
});

test('[C14] the authority of the clients counts as the certificate does', (t) => {
  const of = (until: string) => {
    const clientAuthority = { file: '/etc/tls/clients.crt', validUntil: until };
    return judged({ ...certificate('2027-01-01T00:00:00.000Z'), clientAuthority });
  };
  t.is(of('2026-12-01T00:00:00.000Z').state, 'ok');
  t.is(of('2026-07-01T00:00:00.000Z').state, 'warn');
  t.is(of('2026-06-16T00:00:00.000Z').state, 'fail');
  t.regex(
    of('2026-06-15T00:00:00.000Z').found,
    /clients\.crt: the authority of the clients ended on 2026-06-15/,
  );
});

test('[C14] doctor names each option that allows plaintext beyond this machine', (t) => {
  const of = (plugins: Parameters<typeof resolveConfig>[0]['plugins']) =>
    judgePlaintext(resolveConfig({ plugins }, { env: {} }).plugins);
  t.is(of([consolePlugin(), uptime({ url: 'https://a.example' })]).state, 'ok');
  const routes = [credentialFree({ name: 'a' }), overwrite({ name: 'b', url: 'http://b', insecure: true })];
  const found = of([
    consolePlugin({ insecure: true }),
    uptime({ url: 'http://m', insecure: true }),
    gateway({ routes }),
  ]);
  t.is(found.state, 'warn');
  t.regex(found.found, /console\.insecure, uptime\.insecure, gateway\.routes\[1\]\.insecure/);
});
