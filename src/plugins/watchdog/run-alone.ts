import { ColumnarDatabaseToken } from '../../core/contracts/columnar-database.ts';
import { SecretsStoreToken } from '../../core/contracts/secrets-store.ts';
import { UptimeMonitorToken } from '../../core/contracts/uptime.ts';
import type { CommandContext } from '../../core/host/plugin/command.ts';
import type { ConfiguredPlugin, PluginDefinition } from '../../core/host/plugin/definition.ts';
import type { RunReport } from '../../machines/watchdog/run-shapes.ts';
import { watchdogDue, watchdogReported } from './topics.ts';

const NEEDED: readonly unknown[] = [ColumnarDatabaseToken, SecretsStoreToken, UptimeMonitorToken];

/**
 * One run without an instance, as in a CronJob: a runtime of the few plugins that a run needs, for as long as it takes.
 * The run stands in the log like any other. An embedded database belongs to the instance, and is left alone.
 */
export async function runAlone({ config, dataDir, signal, note }: CommandContext): Promise<RunReport> {
  const { createRuntime } = await import('../../core/host/runtime/runtime.ts');
  const { createLogger } = await import('../../core/host/logging/logger.ts');
  const { plugins } = await config();
  const runtime = createRuntime({
    plugins: plugins.filter(isNeeded),
    dataDir,
    logger: createLogger({ level: 'silent' }),
  });
  try {
    await runtime.start();
    const { bus, clock } = runtime.services;
    const began = clock.now();
    return await new Promise<RunReport>((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      bus.subscribe(watchdogReported, 'watchdog-run', ({ payload }) => {
        if (payload.startedAt >= began) return resolve(payload);
        // A run before this one did not end by itself; that is only known now.
        const at = new Date(payload.startedAt).toISOString();
        note(`The run before, which began at ${at}, came to no heartbeat. ${payload.lines.join(' ')}`);
      });
      bus.publish(watchdogDue, {});
    });
  } finally {
    await runtime.stop('the run is over');
  }
}

function isNeeded({ definition, options }: ConfiguredPlugin): boolean {
  const { name, provides = [] } = definition as PluginDefinition;
  if (provides.some((token) => token === ColumnarDatabaseToken)) return options.url !== undefined;
  return name === 'watchdog' || provides.some((token) => NEEDED.includes(token));
}
