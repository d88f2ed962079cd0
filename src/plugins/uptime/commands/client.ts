import { systemClock } from '../../../core/clock.ts';
import { HoldfastError } from '../../../core/errors/index.ts';
import type { CommandContext } from '../../../core/plugin/command.ts';
import { monitorBase } from '../base.ts';
import type { UptimeOptions } from '../options.ts';
import { PushClient } from '../push-client.ts';
import { readPushToken } from '../tokens.ts';

/**
 * The client as the command line uses it: the configured monitor, else the one of the running instance.
 *
 * @throws HF_UPTIME_NONE there is neither
 */
export async function commandClient(
  options: UptimeOptions,
  { dataDir }: CommandContext,
): Promise<PushClient> {
  const { url, connect, caFile, timeoutMs, monitors } = options;
  const { lockedBy } = await import('../../../core/log/index.ts');
  const pid = url === undefined ? lockedBy(dataDir) : undefined;
  const base = url ?? (pid === undefined ? undefined : monitorBase(undefined, dataDir));
  if (base === undefined) throw new HoldfastError('HF_UPTIME_NONE', { dir: dataDir });
  return new PushClient({
    base: () => base,
    connect: url === undefined ? undefined : connect,
    caFile,
    timeoutMs,
    clock: systemClock,
    token: (monitor) => readPushToken(monitor, { dataDir, monitors, store: () => undefined }),
  });
}

/** @throws HF_CLI_USAGE it is no non-negative integer */
export function pingOf(text: unknown, command: string): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,12}$/.test(String(text))) return Number(text);
  const reason = `The ping must be a non-negative integer of milliseconds, not ${String(text)}.`;
  throw new HoldfastError('HF_CLI_USAGE', { reason, command });
}
