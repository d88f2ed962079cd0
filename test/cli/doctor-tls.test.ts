import test from 'ava';
import { judgeCertificates } from '../../src/cli/security/certificates.ts';
import { judgePlaintext } from '../../src/cli/security/plaintext.ts';
import { resolveConfig } from '../../src/core/host/config/resolve.ts';
import { consolePlugin } from '../../src/plugins/console/index.ts';
import { credentialFree, gateway, overwrite } from '../../src/plugins/gateway/index.ts';
import { uptime } from '../../src/plugins/uptime/index.ts';

const NOW = Date.parse('2026-06-15T12:00:00Z');
const certificate = (until: string, more: { from?: string; problem?: string } = {}) => ({
  file: '/etc/tls/server.crt',
  fingerprint: 'AB',
  validFrom: more.from ?? '2026-01-01T00:00:00.000Z',
  validUntil: until,
  ...(more.problem !== undefined && { problem: more.problem }),
});

test('[C14] a certificate is ok only with 14 days left, valid now, and read from the files as they are', (t) => {
  const judged = (...seen: ReturnType<typeof certificate>[]) =>
    judgeCertificates(
      seen.map((each, index) => [`s${index}`, each] as const),
      NOW,
    );
  const good = certificate('2026-06-30T12:00:00.000Z');
  t.like(judged(good), { state: 'ok', found: 's0 (/etc/tls/server.crt): until 2026-06-30 (15 days)' });
  t.is(judged(good, certificate('2026-06-29T11:00:00.000Z')).state, 'warn');
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
