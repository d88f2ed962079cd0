import { chmodSync, readFileSync } from 'node:fs';
import { credsAuthenticator } from '@nats-io/transport-node';
import test from 'ava';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { LinearStream, type StreamDependencies } from '../../../src/plugins/cluster/nats/stream.ts';
import { makeCertificate } from '../../support/certificate.ts';
import { openLink, silent, streamSettings } from '../../support/cluster.ts';
import { startNats } from '../../support/nats.ts';
import { makeNatsAccount } from '../../support/nats-credentials.ts';
import { tempDir } from '../../support/temp.ts';
import { until } from '../../support/until.ts';

const dependencies: StreamDependencies = { clock: systemClock, logger: silent };

test('[C13] TLS: the certificate of the server is checked, its name too, and a client shows its own', async (t) => {
  const dir = tempDir(t);
  const server = makeCertificate(dir);
  const client = makeCertificate(dir, { as: 'client', name: 'host' });
  const stranger = makeCertificate(dir, { as: 'stranger' });
  const nats = await startNats(t, {
    tls: { ...server, clientCaFile: client.certFile },
    login: { tls: clientTls(client, server) },
  });
  const tls = { caFile: server.certFile, ...client };
  const link = await openLink(t, nats.url(), { tls });
  const stream = await LinearStream.open(link, streamSettings(), dependencies);
  t.is((await stream.append('a', { expectedLast: 0 })).seq, 1);
  const refused = [
    {
      servers: nats.url(),
      tls: { ...tls, caFile: stranger.certFile },
      problem: /self-signed certificate|unable to verify/,
    },
    {
      servers: nats.url(),
      tls: { caFile: server.certFile },
      problem: /certificate required|closed|ECONNRESET|EPIPE/i,
    },
    {
      servers: nats.url().replace('localhost', '127.0.0.1'),
      tls,
      problem: /IP: 127\.0\.0\.1 is not in the cert/,
    },
  ];
  for (const { servers, tls: given, problem } of refused) {
    const other = await openLink(t, servers, { tls: given, isAlone: true });
    await until('it was refused', () => problem.test(other.problem ?? ''));
    t.false(other.isUp);
  }
  chmodSync(client.keyFile, 0o644);
  await t.throwsAsync(openLink(t, nats.url(), { tls }), { code: 'HF_CONFIG_SECRET_MODE' });
});

const clientTls = (client: { certFile: string; keyFile: string }, { certFile }: { certFile: string }) => ({
  caFile: certFile,
  ...client,
});

test('[C13] a user with few permissions is enough for a host, and cannot delete what the hosts have written', async (t) => {
  const publish = [
    ...['hf.tests.>', '_INBOX.>', '$JS.API.STREAM.NAMES', '$JS.API.STREAM.CREATE.*'],
    ...['$JS.API.STREAM.INFO.*', '$JS.API.STREAM.MSG.GET.*'],
  ];
  const permissions = `{ publish: ${JSON.stringify(publish)}, subscribe: ["hf.tests.>", "_INBOX.>"] }`;
  const admin = { user: 'admin', pass: 'of tests' };
  const users = `{ user: host, password: "s3cret/@:", permissions: ${permissions} }, { user: admin, password: "${admin.pass}" }`;
  const nats = await startNats(t, { login: admin, config: `authorization { users: [${users}] }` });
  const link = await openLink(t, nats.url().replace('//', `//host:${encodeURIComponent('s3cret/@:')}@`));
  const settings = streamSettings();
  const stream = await LinearStream.open(link, settings, dependencies);
  await stream.append('a', { expectedLast: 0 });
  t.is(`${(await stream.get(1))?.body}`, 'a');
  t.deepEqual(await LinearStream.names(link, 'hf.tests.>'), [settings.name]);
  t.is((await stream.last()).seq, 1);
  const heard: string[] = [];
  link.subscribe('hf.tests.plain', ({ body }) => void heard.push(`${body}`));
  link.publish('hf.tests.plain', 'b');
  await until('it is heard', () => heard.length === 1);
  await t.throwsAsync(async () => (await link.manager()).streams.delete(settings.name), {
    message: /[Pp]ermission/,
  });
  await t.throwsAsync(stream.removeBefore(2), {
    code: 'HF_CLUSTER_STREAM_REFUSED',
    message: /[Pp]ermission/,
  });
  const elsewhere = streamSettings({ subjects: ['other.subject'] });
  const other = await LinearStream.open(link, elsewhere, dependencies);
  await t.throwsAsync(other.append('c'), { code: 'HF_CLUSTER_STREAM_REFUSED', message: /[Pp]ermission/ });
  const wrong = await openLink(t, nats.url().replace('//', '//host:wr0ng@'), { isAlone: true });
  await until('it was refused', () => /Authorization Violation/i.test(wrong.problem ?? ''));
  t.notRegex(`${wrong.problem} ${wrong.shown}`, /wr0ng/);
});

test('[C13] credentials of an account of NATS come from a file that nobody else may read', async (t) => {
  const { config, credentialsFile } = makeNatsAccount(tempDir(t));
  const authenticator = credsAuthenticator(readFileSync(credentialsFile));
  const nats = await startNats(t, { config, login: { authenticator } });
  const link = await openLink(t, nats.url(), { credentialsFile });
  const stream = await LinearStream.open(link, streamSettings(), dependencies);
  t.is((await stream.append('a', { expectedLast: 0 })).seq, 1);
  const without = await openLink(t, nats.url(), { isAlone: true });
  await until('it was refused', () => /Authorization Violation/i.test(without.problem ?? ''));
  chmodSync(credentialsFile, 0o640);
  await t.throwsAsync(openLink(t, nats.url(), { credentialsFile }), { code: 'HF_CONFIG_SECRET_MODE' });
});
