import { closeSync, fsyncSync, openSync } from 'node:fs';

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
