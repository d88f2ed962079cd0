import { connect } from 'node:tls';
import test, { type ExecutionContext } from 'ava';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { readKeyPair } from '../../../src/core/host/http/certificate.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import { createRuntime, type Runtime } from '../../../src/core/host/runtime/runtime.ts';
import { readRuntimeFile } from '../../../src/core/host/runtime/runtime-file.ts';
import { otlp } from '../../../src/plugins/otlp/index.ts';
import { makeCertificate } from '../../support/certificate.ts';
import { tempDir } from '../../support/temp.ts';
import { until } from './rig.ts';

async function listening(t: ExecutionContext, options: object): Promise<{ runtime: Runtime; dir: string }> {
  const dir = tempDir(t);
  const runtime = createRuntime({
    plugins: resolveConfig({ plugins: [otlp({ port: 0, grpcPort: 0, ...options })] }, { env: {} }).plugins,
    dataDir: dir,
    logger: createLogger({ level: 'silent' }),
  });
  t.teardown(() => runtime.stop('test ended'));
  await runtime.start();
  return { runtime, dir };
}

/** The fingerprint of the certificate that a new connection sees. */
function seen(url: string): Promise<string> {
  const { hostname: host, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port: Number(port), rejectUnauthorized: false, ALPNProtocols: ['h2'] });
    socket.once('secureConnect', () => {
      resolve(socket.getPeerCertificate().fingerprint256);
      socket.destroy();
    });
    socket.once('error', reject);
  });
}

test('[C14] a renewed certificate of gRPC is served to new connections, and runtime.json says so', async (t) => {
  const at = tempDir(t);
  const tls = makeCertificate(at);
  const { runtime, dir } = await listening(t, { tls: { ...tls, checkMs: 20 } });
  const url = runtime.surfaces.otlpGrpc?.url ?? '';
  const first = readKeyPair('test', tls).fingerprint;
  t.is(await seen(url), first);
  t.is(readRuntimeFile(dir)?.surfaces.otlpGrpc?.tls?.fingerprint, first);

  makeCertificate(at);
  const second = readKeyPair('test', tls).fingerprint;
  t.not(second, first);
  await until(async () => (await seen(url)) === second);
  await until(() => readRuntimeFile(dir)?.surfaces.otlpGrpc?.tls?.fingerprint === second);
  t.pass();
});

test('[C14] runtime.json tells the certificate of the listener for producers from outside', async (t) => {
  const at = tempDir(t);
  const { certFile, keyFile } = makeCertificate(at);
  const authority = makeCertificate(at, { as: 'authority', days: 5 });
  const { dir } = await listening(t, {
    mtls: { port: 0, certFile, keyFile, clientCaFile: authority.certFile, checkMs: 20 },
  });
  const told = () => readRuntimeFile(dir)?.surfaces.otlpMtls?.tls;
  t.is(told()?.fingerprint, readKeyPair('test', { certFile, keyFile }).fingerprint);
  t.is(told()?.clientAuthority?.file, authority.certFile);

  makeCertificate(at);
  const renewed = readKeyPair('test', { certFile, keyFile }).fingerprint;
  await until(() => told()?.fingerprint === renewed);
  t.pass();
});
