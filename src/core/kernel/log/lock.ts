import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { KernelError } from '../errors/kernel-error.ts';
import { isReadable, userOf, whoCouldReplace } from '../ownership.ts';

/** Somebody who only looks whether the folder is taken holds it for an instant; so long a start waits. */
const PATIENCE_MS = 200;
/** Its name in a data folder; it holds nothing but the lock. */
export const LOCK_FILE = 'lock.db';

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
 * @throws HF_LOG_FOLDER the folder cannot be made or written
 * @throws HF_LOG_OWNER it, its log or its keys are somebody else's, or others may write to a folder on the way
 */
export function lockDataDir(dataDir: string): () => void {
  let db: DatabaseSync | undefined;
  checkOwners(dataDir);
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    db = new DatabaseSync(lockFile(dataDir), { timeout: PATIENCE_MS });
    db.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    db?.close();
    if ((error as { errcode?: number }).errcode !== SQLITE_BUSY) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new KernelError('HF_LOG_FOLDER', { dir: dataDir, reason }, { cause: error });
    }
    throw new KernelError('HF_LOG_LOCKED', { dir: dataDir, pid: holder(dataDir) }, { cause: error });
  }
  writeAnew(join(dataDir, 'lock.pid'), `${process.pid}\n`);
  const held = db;
  return () => held.close();
}

/** Files of somebody else in the folder may have been put there before it was closed to others. @throws HF_LOG_OWNER */
function checkOwners(dataDir: string): void {
  const files = existsSync(dataDir) ? readdirSync(dataDir).map((name) => join(dataDir, name)) : [];
  for (const path of [dataDir, ...files]) {
    const reason = whoCouldReplace(path);
    if (reason === undefined) continue;
    throw new KernelError('HF_LOG_OWNER', { dir: dataDir, reason, user: userOf(process.geteuid?.() ?? 0) });
  }
}

/** Writes a file of mode 0600 in the place of what is there: never through a link that somebody else left. */
function writeAnew(file: string, text: string): void {
  rmSync(file, { force: true });
  writeFileSync(file, text, { mode: 0o600, flag: 'wx' });
}

/**
 * Looks, without changing anything in the folder.
 *
 * @returns the pid of the process that holds the folder (0 while it has not said), or undefined when it is free
 * @throws HF_LOG_UNREADABLE this user may not look
 */
export function lockedBy(dataDir: string): number | undefined {
  if (!isReadable(lockFile(dataDir), dataDir)) return undefined;
  const db = new DatabaseSync(lockFile(dataDir), { readOnly: true });
  try {
    db.prepare('SELECT count(*) FROM sqlite_master').get();
    return undefined;
  } catch (error) {
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return Number(holder(dataDir)) || 0;
    throw error;
  } finally {
    db.close();
  }
}

const SQLITE_BUSY = 5;

function lockFile(dataDir: string): string {
  return join(dataDir, LOCK_FILE);
}

function holder(dataDir: string): number | string {
  try {
    return Number(readFileSync(join(dataDir, 'lock.pid'), 'utf8'));
  } catch {
    return 'unknown';
  }
}
