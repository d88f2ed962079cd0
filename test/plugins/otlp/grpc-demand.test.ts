import { createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { surfaceChecks } from '../../../src/cli/security/surfaces.ts';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import { createRuntime } from '../../../src/core/host/runtime/runtime.ts';
import { otlp } from '../../../src/plugins/otlp/index.ts';
import { grpcDemand } from '../../../src/plugins/otlp/receive/grpc-demand.ts';
import { makeCertificate } from '../../support/certificate.ts';
import { tempDir } from '../../support/temp.ts';

const signal = new AbortController().signal;

/** What `holdfast doctor security` says of the listeners of a receiver with these options. */
async function found(
  t: ExecutionContext,
  options: object,
): Promise<Record<string, { state: string; found: string }>> {
  const dataDir = tempDir(t);
  const runtime = createRuntime({
    plugins: resolveConfig({ plugins: [otlp({ port: 0, grpcPort: 0, ...options })] }, { env: {} }).plugins,
    dataDir,
    logger: createLogger({ level: 'silent' }),
  });
  t.teardown(() => runtime.stop('test ended'));
  await runtime.start();
  const checks = surfaceChecks(runtime.registrations);
  const results = checks.map(async ({ name, run }) => [name, await run({ dataDir, signal })] as const);
  return Object.fromEntries(await Promise.all(results));
}

test('[C14, R30] doctor security asks the listener of gRPC, and says that it demands a key', async (t) => {
  const { 'security.otlpGrpc': grpc } = await found(t, {});
  t.is(grpc?.state, 'ok');
  t.regex(grpc?.found ?? '', /every user of this machine, with a key of their own/);
});

test('[C14, R30] over TLS it is asked as well, and a listener for client certificates is said to demand one', async (t) => {
  const dir = tempDir(t);
  const tls = makeCertificate(dir);
  const { certFile: clientCaFile } = makeCertificate(dir, { as: 'authority' });
  const { 'security.otlpGrpc': grpc, 'security.otlpMtls': outer } = await found(t, {
    tls,
    mtls: { port: 0, ...tls, clientCaFile },
  });
  t.like(grpc, { state: 'ok' });
  t.regex(grpc?.found ?? '', /with a key of their own/);
  t.like(outer, { state: 'ok' });
  t.regex(outer?.found ?? '', /with a client certificate/);
});

/** A listener that answers every call with this status of gRPC; without one it answers nothing. */
async function answering(t: ExecutionContext, status: string | undefined): Promise<{ url: string }> {
  const server = createServer();
  server.on('stream', (stream) => {
    if (status === undefined) return stream.close();
    stream.respond(
      { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': status },
      { endStream: true },
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

test('[C14] a listener that serves a caller without a key is said to be open, and another answer is not known', async (t) => {
  t.is(await grpcDemand(await answering(t, '0'), signal), 'none');
  t.is(await grpcDemand(await answering(t, '16'), signal), 'key');
  await t.throwsAsync(grpcDemand(await answering(t, '14'), signal), { message: /status 14/ });
  await t.throwsAsync(grpcDemand(await answering(t, undefined), signal), { message: /without an answer/ });
  await t.throwsAsync(grpcDemand({ url: 'http://127.0.0.1:1' }, signal));
});

test('[C14] a listener with another certificate than runtime.json tells is not asked', async (t) => {
  const dir = tempDir(t);
  const dataDir = tempDir(t);
  const tls = makeCertificate(dir);
  const runtime = createRuntime({
    plugins: resolveConfig({ plugins: [otlp({ port: 0, grpcPort: 0, tls })] }, { env: {} }).plugins,
    dataDir,
    logger: createLogger({ level: 'silent' }),
  });
  t.teardown(() => runtime.stop('test ended'));
  await runtime.start();
  const place = runtime.surfaces.otlpGrpc;
  if (!place?.tls) return t.fail('it serves no certificate');
  const false_ = { ...place, tls: { ...place.tls, fingerprint: 'AB' } };
  await t.throwsAsync(grpcDemand(false_, signal), { message: /another certificate/ });
});
