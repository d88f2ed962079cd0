import { createHash } from 'node:crypto';
import { closeSync, openSync, readSync, renameSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { syncPath } from '../../../core/kernel/durable-file.ts';
import { MemoryStoreError } from '../errors.ts';
import { SPARE_BYTES } from '../limits.ts';

const CHUNK = 1024 * 1024;

/** Beside a snapshot: its SHA-256. */
export const checksumFile = (file: string): string => `${file}.checksum`;
/** Name of a file that is still being written. Drafts are not listed, and are removed at a start. */
export const draftOf = (file: string): string => `${file}.part`;

/** @throws HF_MEMORY_STORE_FULL less than `bytes` and the spare is free in the folder */
export function refuseFullDisk(folder: string, bytes: number, what: string): void {
  const { bavail, bsize } = statfsSync(folder);
  if (bavail * bsize < bytes + SPARE_BYTES) throw new MemoryStoreError('HF_MEMORY_STORE_FULL', { what });
}

/** Runs `write` on a draft, makes it durable, lets `seal` see it, and gives it its name. A failure leaves no file. */
export function writeWhole(
  file: string,
  write: (draft: string) => void,
  seal?: (draft: string) => void,
): void {
  const draft = draftOf(file);
  try {
    rmSync(draft, { force: true });
    write(draft);
    syncPath(draft);
    seal?.(draft);
    renameSync(draft, file);
    syncPath(dirname(file));
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}

/** Reads the file in chunks, so that memory does not grow with it. */
export function sha256Of(file: string): string {
  const hash = createHash('sha256');
  const chunk = Buffer.alloc(CHUNK);
  const descriptor = openSync(file, 'r');
  try {
    for (let read = readSync(descriptor, chunk); read > 0; read = readSync(descriptor, chunk)) {
      hash.update(chunk.subarray(0, read));
    }
  } finally {
    closeSync(descriptor);
  }
  return hash.digest('hex');
}

export function noteChecksum(file: string, draft: string): void {
  writeFileSync(checksumFile(file), sha256Of(draft), { mode: 0o600, flush: true });
}
