import { createHash } from 'node:crypto';
import { closeSync, fstatSync, lstatSync, openSync, readdirSync, readSync, type Stats } from 'node:fs';
import { join, relative } from 'node:path';

/** What is known of a file at rest. */
export interface NotedFile {
  readonly inode: number;
  /** When it came into being, epoch milliseconds; absent in rows of earlier versions. */
  readonly made?: number | undefined;
  readonly size: number;
  /** Epoch milliseconds. */
  readonly modified: number;
  /** SHA-256 of its `size` bytes, as hex. */
  readonly digest: string;
}

/** Where damaged files are moved to, in the data folder; nothing in it is checked. */
export const QUARANTINE = 'quarantine';

/**
 * Files of an instance that runs. They say nothing that outlives it: a start makes them anew, and SQLite makes the
 * shared memory of a database anew.
 */
const OF_A_RUN =
  /^(lock\.db(-journal)?|lock\.pid|runtime\.json|checksums\.json(\.new)?|disk-reserve|.*\.db-shm|.*\.part|.*\.new)$/;

/**
 * Databases and what is overwritten in place: their content may be any at any time, so only their own checks tell
 * while the instance runs. Between a stop and the next start they must not change at all.
 */
const LIVING = /(\.(db|sqlite)(-wal|-journal)?|^secrets\/(body-keys|log-mark|log-head))$/;

export function isLiving(path: string): boolean {
  return LIVING.test(path);
}

export function isDatabase(path: string): boolean {
  return /\.(db|sqlite)$/.test(path) && !OF_A_RUN.test(path);
}

/** The regular files of a data folder, relative, in order. Links are not followed: what they lead to is not ours. */
export function filesIn(root: string): string[] {
  const found: string[] = [];
  const walk = (folder: string) => {
    for (const entry of entriesOf(folder)) {
      const path = relative(root, join(folder, entry.name));
      if (entry.isDirectory() && path !== QUARANTINE) walk(join(folder, entry.name));
      else if (entry.isFile() && !OF_A_RUN.test(path)) found.push(path);
    }
  };
  walk(root);
  return found.toSorted();
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return []; // it was removed meanwhile
  }
}

/** @returns undefined when it is no regular file (any more) */
export function statOf(file: string): Omit<NotedFile, 'digest'> | undefined {
  const stat = lstatSync(file, { throwIfNoEntry: false });
  return stat?.isFile() ? { ...identityOf(stat), size: stat.size } : undefined;
}

function identityOf({ ino, birthtimeMs, mtimeMs }: Stats): Pick<NotedFile, 'inode' | 'made' | 'modified'> {
  return { inode: ino, made: Math.floor(birthtimeMs), modified: Math.floor(mtimeMs) };
}

/**
 * Whether two looks at a path saw one file, whatever it held; else it was replaced as a whole. The inode alone does not tell: a file system
 * gives the one of a file that was replaced to the next that is made.
 */
export function isSameFile(
  a: Pick<NotedFile, 'inode' | 'made'>,
  b: Pick<NotedFile, 'inode' | 'made'>,
): boolean {
  return a.inode === b.inode && (a.made === undefined || b.made === undefined || a.made === b.made);
}

const CHUNK = 256 * 1024;

/**
 * Digests the first bytes of a file, a quarter of a mebibyte between two steps.
 *
 * @param at where the file was noted to end: what was appended since does not count
 * @returns the digest of the first `at` bytes, and of all as they are now; undefined when it cannot be read
 */
export function* digests(
  file: string,
  at: number,
): Generator<number, { readonly prefix: string | undefined; readonly noted: NotedFile } | undefined> {
  let descriptor: number;
  try {
    descriptor = openSync(file, 'r');
  } catch {
    return undefined;
  }
  try {
    const identity = identityOf(fstatSync(descriptor));
    const digest = createHash('sha256');
    const chunk = Buffer.allocUnsafe(CHUNK);
    let prefix = at === 0 ? digest.copy().digest('hex') : undefined;
    let size = 0;
    for (;;) {
      const wanted = size < at ? Math.min(CHUNK, at - size) : CHUNK;
      const read = readSync(descriptor, chunk, 0, wanted, size);
      if (read === 0) break;
      digest.update(chunk.subarray(0, read));
      size += read;
      if (size === at) prefix = digest.copy().digest('hex');
      yield read;
    }
    return {
      prefix,
      noted: { ...identity, size, digest: digest.digest('hex') },
    };
  } catch {
    return undefined;
  } finally {
    closeSync(descriptor);
  }
}
