import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { HoldfastError } from '../errors/index.ts';

/** Where a running instance says who it is and where it listens. */
export function runtimeFile(dataDir: string): string {
  return join(dataDir, 'runtime.json');
}

/**
 * Takes the data folder for this process. The lock is SQLite's own on a file of its own: `kill -9` frees it at
 * once, and no stale pid file can lock anybody out.
 *
 * @returns lets go of the folder
 * @throws HF_LOG_LOCKED another process holds it; the error names its pid
 */
export function lockDataDir(dataDir: string): () => void {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const db = new DatabaseSync(join(dataDir, 'lock.db'));
  try {
    db.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    db.close();
    throw new HoldfastError('HF_LOG_LOCKED', { dir: dataDir, pid: holder(dataDir) }, { cause: error });
  }
  return () => db.close();
}

/** @returns the pid of the process that holds the folder, or undefined when it is free */
export function lockedBy(dataDir: string): number | undefined {
  try {
    lockDataDir(dataDir)();
    return undefined;
  } catch (error) {
    if (error instanceof HoldfastError && error.code === 'HF_LOG_LOCKED')
      return Number(error.details.pid) || 0;
    throw error;
  }
}

function holder(dataDir: string): number | string {
  try {
    return Number(JSON.parse(readFileSync(runtimeFile(dataDir), 'utf8')).pid);
  } catch {
    return 'unknown';
  }
}
