import {
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  openSync,
  realpathSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { HoldfastError } from '../../../../core/kernel/errors/holdfast-error.ts';

/**
 * Writes a copy of a config that nobody else may read, mode 0600, into a new file (R35).
 *
 * @param file absolute path
 * @throws HF_ROUTER_COPY it lies in a git work tree, something is there already, or it cannot be written
 */
export function writeCopy(file: string, content: Uint8Array): void {
  const tree = workTreeOf(file);
  if (tree !== undefined)
    refuse(file, `it lies in the git work tree ${tree}, and a copy of the config must never be committed`);
  const descriptor = create(file);
  try {
    for (let done = 0; done < content.length; ) done += writeSync(descriptor, content, done);
    fsyncSync(descriptor);
  } catch (error) {
    unlinkSync(file);
    refuse(file, error instanceof Error ? error.message : String(error));
  } finally {
    closeSync(descriptor);
  }
}

function create(file: string): number {
  try {
    // O_EXCL: an existing file keeps its mode and its readers, and a symbolic link is not followed.
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
    return openSync(file, flags, 0o600);
  } catch (error) {
    return refuse(file, error instanceof Error ? error.message : String(error));
  }
}

/** The work tree around a file, by its real place: a folder may be reached through a link. */
function workTreeOf(file: string): string | undefined {
  let folder: string;
  try {
    folder = realpathSync(dirname(file));
  } catch (error) {
    return refuse(file, error instanceof Error ? error.message : String(error));
  }
  for (;;) {
    if (existsSync(join(folder, '.git'))) return folder;
    const above = dirname(folder);
    if (above === folder) return undefined;
    folder = above;
  }
}

function refuse(file: string, reason: string): never {
  throw new HoldfastError('HF_ROUTER_COPY', { file, reason });
}
