import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { CliError } from './errors.ts';

/**
 * Makes the data folder, readable by its user alone, folder by folder: Node's own recursion never ends where a folder
 * can neither be made nor found (`/proc`).
 *
 * @throws HF_CLI_DATA_DIR
 */
export function makeDataFolder(dir: string): void {
  try {
    make(dir);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CliError('HF_CLI_DATA_DIR', { dir, reason }, { cause: error });
  }
}

function make(dir: string): void {
  if (isFolder(dir)) return;
  make(dirname(dir));
  try {
    mkdirSync(dir, { mode: 0o700 });
  } catch (error) {
    if (!isFolder(dir)) throw error; // somebody else may have made it meanwhile
  }
}

function isFolder(dir: string): boolean {
  return statSync(dir, { throwIfNoEntry: false })?.isDirectory() === true;
}
