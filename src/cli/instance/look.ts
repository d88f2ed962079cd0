import { readRuntimeFile } from '../../core/host/runtime/runtime-file.ts';
import { lockedBy } from '../../core/kernel/log/lock.ts';
import { askHealth } from './health.ts';
import { readLastRun } from './last-run.ts';
import type { Instance } from './shapes.ts';

/** Looks at a data folder. Never throws for what it finds there: that is the answer. */
export async function lookAt(dataDir: string, now: number, signal: AbortSignal): Promise<Instance> {
  let pid: number | undefined;
  try {
    pid = lockedBy(dataDir);
  } catch (error) {
    const reason = `the folder cannot be looked into (${error instanceof Error ? error.message : error})`;
    return { state: 'unreachable', running: false, dataDir, reason };
  }
  if (pid === undefined)
    return { state: 'stopped', running: false, dataDir, ...(await readLastRun(dataDir, now)) };
  const file = readRuntimeFile(dataDir);
  const said = file && {
    pid: file.pid,
    startedAt: file.startedAt,
    version: file.version,
    surfaces: file.surfaces,
  };
  const known = { running: true, dataDir, ...said };
  if (!file) return { state: 'starting', ...known, ...(pid > 0 && { pid }) };
  const console = file.surfaces.console?.url;
  if (console === undefined) {
    return {
      state: 'unreachable',
      ...known,
      reason: 'no plugin serves a health page (the console plugin would)',
    };
  }
  const health = await askHealth(console, file.pid, signal);
  if ('reason' in health) return { state: 'unreachable', ...known, reason: health.reason };
  return { ...known, ...health };
}
