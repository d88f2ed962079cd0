import { SecretsStoreToken } from '../../../core/contracts/secrets-store.ts';
import { type Heartbeat, UptimeMonitorToken } from '../../../core/contracts/uptime.ts';
import type { CommandContext } from '../../../core/host/plugin/command.ts';
import type { ConfiguredPlugin, PluginDefinition } from '../../../core/host/plugin/definition.ts';
import { CoreError } from '../../../core/kernel/errors/core-error.ts';
import { PUSH_PATH, type PushedByHand } from '../by-hand.ts';
import { UptimeError } from '../errors.ts';
import type { UptimeOptions } from '../options.ts';

const NEEDED: readonly unknown[] = [SecretsStoreToken, UptimeMonitorToken];

/**
 * Pushes by the running instance, or without one by a runtime of the few plugins that it takes; either way tokens are
 * where `uptime()` says, the secrets store too, and the answer stays in the event log.
 *
 * @throws HF_UPTIME_NONE there is neither a configured monitor nor an instance
 * @throws HF_UPTIME_TOKEN
 */
export async function push(
  { url }: UptimeOptions,
  command: CommandContext,
  monitor: string,
  beat: Heartbeat,
): Promise<PushedByHand> {
  const { dataDir } = command;
  const { lockedBy } = await import('../../../core/kernel/log/lock.ts');
  if (lockedBy(dataDir) !== undefined) return ask(command, monitor, beat);
  if (url === undefined) throw new UptimeError('HF_UPTIME_NONE', { dir: dataDir });

  const { createRuntime } = await import('../../../core/host/runtime/runtime.ts');
  const { createLogger } = await import('../../../core/host/logging/logger.ts');
  const { plugins } = await command.config();
  const logger = createLogger({ level: 'silent' });
  const runtime = createRuntime({ plugins: plugins.filter(isNeeded), dataDir, logger });
  try {
    await runtime.start();
    return await ask(command, monitor, beat);
  } finally {
    await runtime.stop('the push is made');
  }
}

async function ask(command: CommandContext, monitor: string, beat: Heartbeat): Promise<PushedByHand> {
  const { askInstance } = await import('../../../core/host/operations/control-client.ts');
  return askInstance<PushedByHand>(command, PUSH_PATH, { monitor, beat }, 'it has no push client');
}

function isNeeded({ definition }: ConfiguredPlugin): boolean {
  const { provides = [] } = definition as PluginDefinition;
  return provides.some((token) => NEEDED.includes(token));
}

/** @throws HF_CLI_USAGE it is no non-negative integer */
export function pingOf(text: unknown, command: string): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,12}$/.test(String(text))) return Number(text);
  const reason = `The ping must be a non-negative integer of milliseconds, not ${String(text)}.`;
  throw new CoreError('HF_CLI_USAGE', { reason, command });
}

/** @throws HF_CLI_USAGE it is neither */
export function statusOf(text: unknown, command: string): Heartbeat['status'] {
  if (text === 'up' || text === 'down') return text;
  throw new CoreError('HF_CLI_USAGE', {
    reason: `--status must be up or down, not ${String(text)}.`,
    command,
  });
}
