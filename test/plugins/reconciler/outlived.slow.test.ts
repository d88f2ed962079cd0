import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import type { PluginEntry } from '../../../src/core/host/plugin/definition.ts';
import { createRuntime } from '../../../src/core/host/runtime/runtime.ts';
import { standaloneCommands } from '../../../src/main.ts';
import { alerts, documentedRules } from '../../../src/plugins/alerts/index.ts';
import { collector } from '../../../src/plugins/collector/index.ts';
import { columnar } from '../../../src/plugins/columnar/index.ts';
import { otlp } from '../../../src/plugins/otlp/index.ts';
import { reconciler } from '../../../src/plugins/reconciler/index.ts';
import { router } from '../../../src/plugins/router/index.ts';
import { telemetry } from '../../../src/plugins/telemetry/index.ts';
import { call } from '../../support/cli.ts';
import { tempDir } from '../../support/temp.ts';
import { PATIENCE_MS } from '../../support/until.ts';
import { webhook } from '../../support/webhook.ts';

async function start(t: ExecutionContext, dataDir: string, entries: readonly PluginEntry[]) {
  const { plugins } = resolveConfig({ plugins: [...entries] }, { env: {} });
  const runtime = createRuntime({ plugins, dataDir, logger: createLogger({ level: 'silent' }) });
  t.teardown(() => runtime.stop('test over'));
  await runtime.start();
  return runtime;
}

test('[R28] the heartbeat outlives the process of the reconciler: unit down, host dark and unknown are three alerts', async (t) => {
  const receiver = await webhook(t);
  const rule = documentedRules.find(({ name }) => name === 'router-ula-reconcile')!;
  const edgeDir = tempDir(t);
  const dataDir = tempDir(t);
  const central = await start(t, dataDir, [
    columnar(),
    collector(),
    otlp({ port: 0, grpcPort: 0, lingerMs: 0 }),
    alerts({
      receivers: { hook: { url: receiver.url, batchSeconds: 0 } },
      routes: [{ steps: [{ to: ['hook'] }] }],
      rules: [{ ...rule, window: '10s', every: '10s' }],
      signals: {
        'router-ula-reconcile': {
          expect: 'required',
          host: hostname(),
          instance: `${hostname()}:${edgeDir}`,
        },
      },
    }),
  ]);
  const endpoint = central.surfaces.otlpHttp!.url;
  const tokenFile = join(dataDir, 'secrets/otel_ingest_api_key');
  const beat = async () => {
    const argv = ['heartbeat', '--endpoint', endpoint, '--token-file', tokenFile];
    const { code, err } = await call(argv, { cwd: tempDir(t), standaloneCommands });
    t.is(code, 0, err);
  };
  t.true(readFileSync(tokenFile, 'utf8').length > 0);
  const { actors } = central.services;
  const verdict = () => JSON.stringify(actors.snapshot('alerts.rule/router-ula-reconcile' as never)?.value);
  const said = () => JSON.stringify(actors.snapshot('alerts.rule/router-ula-reconcile' as never)?.context);
  const until = async (what: string, holds: () => boolean, meanwhile = async () => {}) => {
    const end = performance.now() + PATIENCE_MS;
    while (!holds()) {
      if (performance.now() > end)
        throw new Error(`it never came: ${what}, the rule is ${verdict()} ${said()}`);
      await meanwhile();
      actors.deliver('alerts.rule/router-ula-reconcile' as never, { type: 'EVALUATE' });
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  };
  const edge = () =>
    start(t, edgeDir, [
      router({ port: 0 }),
      reconciler(),
      telemetry({ endpoint, tokenFile, metricsEveryMs: 200 }),
    ]);

  const first = await edge();
  await until('the gauge', () => verdict() === '{"ok":"resting"}');
  await first.stop('killed');
  // Nothing but the process has ever sent a heartbeat: its end and that of the host look the same.
  await until('silence', () => verdict().includes('firing'));
  t.regex(said(), /unknown whether the unit or the host is down/);
  await until('the unit', () => said().includes('the unit is down'), beat);
  t.regex(said(), /the heartbeat of the same host arrives: the unit is down/);
  await until('darkness', () => said().includes('is dark'));
  t.regex(said(), /the heartbeat of the same host is silent too: the host or its collector is dark/);

  await edge();
  await until('the gauge again', () => verdict() === '{"ok":"resting"}');
  await until('its end', () => receiver.json().at(-1).state === 'resolved');
});
