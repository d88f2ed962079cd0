import { closeSync, constants, fstatSync, openSync, readSync, unwatchFile, watchFile } from 'node:fs';
import { type EffectiveConfig, readEffectiveConfig, unreadable } from './effective-config.ts';

const LARGEST_BYTES = 1024 * 1024;

/** Reads an effective collector config as it is now; what can't be read is a finding. @param file absolute path */
export function readConfigFile(file: string): EffectiveConfig {
  let descriptor: number;
  try {
    // Non-blocking, or opening a pipe would wait for its writer and hold up everything.
    descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    return unreadable(error instanceof Error && 'code' in error ? String(error.code) : 'it does not open');
  }
  try {
    const stat = fstatSync(descriptor);
    if (!stat.isFile()) return unreadable('it is not a regular file');
    if (stat.size > LARGEST_BYTES) return unreadable(`it is larger than ${LARGEST_BYTES} bytes`);
    const content = Buffer.alloc(stat.size);
    return readEffectiveConfig(content.toString('utf8', 0, readSync(descriptor, content, 0, stat.size, 0)));
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Calls back when the file is another one, or its content changed. It is looked at by its status and not by events of
 * its folder: mounts of a cluster swap a link two folders up, which no event of this one tells.
 *
 * @returns ends it
 */
export function watchConfigFile(file: string, everyMs: number, changed: () => void): () => void {
  const look = () => changed();
  watchFile(file, { interval: everyMs, persistent: false }, look);
  return () => unwatchFile(file, look);
}
