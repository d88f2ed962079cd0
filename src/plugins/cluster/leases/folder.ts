import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import type { Clock } from '../../../core/kernel/clock.ts';

/**
 * Says which data folder a process works in, so that a host that starts again need not wait for the lease of its own last
 * process: two processes with the same value ran on one kernel since its boot, in one folder, whose lock the older one has
 * lost. A copy of the folder, and the folder after a boot or on another machine, have another value: then the host waits
 * as any other, for nothing proves there that the old process has ended.
 *
 * @param dataDir its lock is held by this process
 */
export function folderIdentity(dataDir: string, host: string, clock: Clock): string {
  const { dev, ino } = statSync(dataDir, { bigint: true });
  const boot = clock.sinceBoot?.()?.boot ?? `${process.pid} ${performance.timeOrigin}`;
  return createHash('sha256').update(`${host}\n${boot}\n${dev}\n${ino}`).digest('hex').slice(0, 32);
}
