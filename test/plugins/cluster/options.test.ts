import test from 'ava';
import { parseServers } from '../../../src/plugins/cluster/nats/servers.ts';
import { clusterOptions } from '../../../src/plugins/cluster/options.ts';

const keyFile = '/etc/holdfast/cluster-key';
const problems = (options: object) =>
  (clusterOptions.safeParse({ servers: 'nats://127.0.0.1', keyFile, ...options }).error?.issues ?? []).map(
    ({ path, message }) => `${path.join('.')}: ${message}`,
  );

test('[C13] the servers of NATS are given with commas; user and password stay out of what is shown', (t) => {
  t.deepEqual(parseServers('nats://a:4223,, tls://me:p%40ss@b.example,[::1]:1'), [
    { host: 'a', port: 4223, tls: false, address: 'nats://a:4223', shown: 'nats://a:4223' },
    {
      ...{ host: 'b.example', port: 4222, tls: true, user: 'me', password: 'p@ss' },
      ...{ address: 'tls://me:p%40ss@b.example', shown: 'tls://b.example:4222' },
    },
    { host: '::1', port: 1, tls: false, address: '[::1]:1', shown: 'nats://[::1]:1' },
  ]);
  for (const wrong of [
    '',
    ' , ',
    'http://a',
    'nats://',
    'nats://a/path',
    'nats://a?b=1',
    'nats://a,redis://b',
  ])
    t.is(parseServers(wrong), undefined, wrong);
  const [problem] = problems({ servers: 'natz://me:s3cret@a' });
  t.regex(problem ?? '', /^servers: nats:/);
  t.notRegex(problem ?? '', /s3cret/);
});

test('[C13] plaintext beyond this machine is refused unless it is allowed', (t) => {
  t.deepEqual(problems({ servers: 'nats://127.0.0.1,localhost:4223,nats://[::1]' }), []);
  const [problem] = problems({ servers: 'nats://127.0.0.1,nats://me:s3cret@10.0.0.5' });
  t.regex(problem ?? '', /^insecure: .* nats:\/\/10\.0\.0\.5:4222 in plaintext/);
  t.deepEqual(problems({ servers: 'nats://10.0.0.5', insecure: true }), []);
  t.deepEqual(problems({ servers: 'tls://10.0.0.5' }), []);
  t.deepEqual(problems({ servers: 'nats://10.0.0.5', tls: { caFile: '/etc/ca.pem' } }), []);
});

test('[C13] names are such that subjects and streams can be made of them', (t) => {
  t.regex(clusterOptions.parse({ servers: 'nats://localhost', keyFile }).host, /^[a-z0-9][a-z0-9-]*$/);
  for (const name of ['', 'a.b', 'A', 'a*', 'a>', '-a', 'a-', 'a b', 'a'.repeat(33)]) {
    t.is(problems({ name }).length, 1, name);
    t.is(problems({ host: name }).length, 1, name);
  }
  t.deepEqual(problems({ name: 'home-2', host: 'box1' }), []);
});

test('[C13] a certificate of this host comes with its key, and files are absolute', (t) => {
  t.deepEqual(problems({ tls: { certFile: '/a' } }), ['tls: certFile and keyFile belong together']);
  t.deepEqual(problems({ keyFile: 'key' }), ['keyFile: an absolute path is wanted']);
});

test('[C13] the stream of a host may hold 16 MiB at least: less leaves no room between two trims', (t) => {
  t.deepEqual(problems({ maxStreamBytes: 16 * 1024 * 1024 }), []);
  t.is(problems({ maxStreamBytes: 16 * 1024 * 1024 - 1 }).length, 1);
});
