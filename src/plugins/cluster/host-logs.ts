/**
 * Reads the logs of all hosts for `--host` of the command line, which finds this file by its name. What NATS needs is loaded
 * when a log is read.
 */
import type { HostLogs, OpenHostLogs } from '../../core/host/plugin/command.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';

export const openHostLogs: OpenHostLogs = async ({ config }, env) => {
  const { settingsOf, connectLogs } = await import('./mirror/command-logs.ts');
  const configured = await config().catch((error: unknown) => {
    if (isCoded(error, 'HF_CONFIG_NOT_FOUND')) return undefined;
    throw error;
  });
  const plugin = configured?.plugins.find(({ definition }) => definition.name === 'cluster');
  return connectLogs(settingsOf(plugin?.options, env)) satisfies Promise<HostLogs>;
};
