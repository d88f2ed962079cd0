import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Makes a file, or the entries of a folder (its new and renamed files), survive a power cut. It blocks until the disk
 * has answered: for threads of their own, starts and commands, never for a request.
 *
 * @throws what the disk says
 */
export function syncPath(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Puts a file, mode 0600, in the place of one that may be there, and makes it durable. Whoever reads meanwhile, or after a
 * kill, finds the old content or the new one, never a part. It blocks as `syncPath` does, and is for one writer at a time.
 *
 * @throws what the disk says; the file is then as it was
 */
export function replaceFile(file: string, content: string | Uint8Array): void {
  const draft = `${file}.new`;
  rmSync(draft, { force: true });
  // `wx` follows no link that somebody else may have left there.
  writeFileSync(draft, content, { flag: 'wx', mode: 0o600, flush: true });
  renameSync(draft, file);
  syncPath(dirname(file));
}
