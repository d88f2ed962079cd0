import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { z } from 'zod';
import { alertRaised } from '../../../../src/core/contracts/alerts.ts';
import { resolveConfig } from '../../../../src/core/host/config/resolve.ts';
import { readKeyPair } from '../../../../src/core/host/http/certificate.ts';
import { createLogger } from '../../../../src/core/host/logging/logger.ts';
import { definePlugin, type PluginEntry } from '../../../../src/core/host/plugin/definition.ts';
import { createRuntime } from '../../../../src/core/host/runtime/runtime.ts';
import { consolePlugin } from '../../../../src/plugins/console/index.ts';
import { otlp } from '../../../../src/plugins/otlp/index.ts';
import { uptimeMonitor } from '../../../../src/plugins/uptime-monitor/index.ts';
import { makeCertificate, type TestCertificate } from '../../../support/certificate.ts';
import type { Scope } from '../../../support/scope.ts';
import { tempDir } from '../../../support/temp.ts';
import { PATIENCE_MS } from '../../../support/until.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** A clock so long before the end of a certificate. */
const before = (files: TestCertificate, ms: number) =>
  new VirtualClock(readKeyPair('test', files).validUntil - ms);

async function run(t: Scope, plugins: readonly PluginEntry[], clock: VirtualClock, dataDir = tempDir(t)) {
  const alerts: string[] = [];
  const listener = definePlugin({
    name: 'listener',
    options: z.strictObject({}),
    start: ({ bus }) =>
      bus.subscribe(alertRaised, 'listener', ({ payload: { name, severity, labels } }) => {
        alerts.push(`${name} ${severity} ${labels.surface} ${labels.state}`);
      }),
    register() {},
  });
  const runtime = createRuntime({
    plugins: resolveConfig({ plugins: [listener(), ...plugins] }, { env: {} }).plugins,
    dataDir,
    clock,
    logger: createLogger({ level: 'silent' }),
  });
  t.teardown(() => runtime.stop('test ended'));
  await runtime.start();
  return { runtime, alerts, dataDir };
}

async function until(holds: () => boolean): Promise<void> {
  for (const end = performance.now() + PATIENCE_MS; !holds(); ) {
    if (performance.now() > end) throw new Error('it does not come about');
    await sleep(10);
  }
}

test('[C14] a certificate that ends soon raises an alert, whichever surface or listener serves it', async (t) => {
  const dir = tempDir(t);
  const tls = makeCertificate(dir, { days: 365 });
  const authority = makeCertificate(dir, { as: 'authority', days: 1_000 });
  const plugins = [
    consolePlugin({ port: 0, tls }),
    otlp({ port: 0, grpcPort: 0, tls, mtls: { port: 0, ...tls, clientCaFile: authority.certFile } }),
    uptimeMonitor({ port: 0, tls }),
  ];
  const { alerts, runtime } = await run(t, plugins, before(tls, 25 * DAY));
  const surfaces = Object.keys(runtime.surfaces);
  t.deepEqual(surfaces.toSorted(), ['console', 'otlpGrpc', 'otlpHttp', 'otlpMtls', 'uptime']);
  await until(() => alerts.length >= surfaces.length);
  t.deepEqual(
    alerts.toSorted(),
    surfaces.map((name) => `certificate.ends_soon warning ${name} firing`).toSorted(),
  );
});

test('[C14] it becomes critical a week before the end, once, and is over when a renewed one is served', async (t) => {
  const dir = tempDir(t);
  const files = makeCertificate(dir, { days: 365 });
  const clock = before(files, 7 * DAY + HOUR / 2);
  const plugins = [consolePlugin({ port: 0, tls: { ...files, checkMs: 20 } })];
  const { alerts, runtime, dataDir } = await run(t, plugins, clock);
  await until(() => alerts.length === 1);
  await clock.advance(HOUR);
  await until(() => alerts.length === 3);
  t.deepEqual(alerts, [
    'certificate.ends_soon warning console firing',
    'certificate.fails critical console firing',
    'certificate.ends_soon info console resolved',
  ]);
  await clock.advance(2 * HOUR);
  t.is(alerts.length, 3);
  await runtime.stop('for a restart');

  const second = await run(t, plugins, clock, dataDir);
  await clock.advance(2 * HOUR);
  t.deepEqual(second.alerts, [], 'a restart changes nothing');
  makeCertificate(dir, { days: 3_650 });
  await until(() => second.alerts.length === 1);
  t.deepEqual(second.alerts, ['certificate.fails info console resolved']);
});

test('[C14] files that cannot be used any more raise the alert at once', async (t) => {
  const files = makeCertificate(tempDir(t), { days: 365 });
  const clock = before(files, 200 * DAY);
  const { alerts } = await run(t, [consolePlugin({ port: 0, tls: { ...files, checkMs: 20 } })], clock);
  t.deepEqual(alerts, []);
  writeFileSync(files.certFile, 'half of it');
  await until(() => alerts.length === 1);
  t.deepEqual(alerts, ['certificate.fails critical console firing']);
});

test('[C14] a surface that serves no certificate any more needs nobody', async (t) => {
  const files = makeCertificate(tempDir(t), { days: 365 });
  const clock = before(files, DAY);
  const first = await run(t, [consolePlugin({ port: 0, tls: files })], clock);
  await until(() => first.alerts.length === 1);
  await first.runtime.stop('for a restart');
  const second = await run(t, [consolePlugin({ port: 0 })], clock, first.dataDir);
  await until(() => second.alerts.length === 1);
  t.deepEqual(second.alerts, ['certificate.fails info console resolved']);
});
