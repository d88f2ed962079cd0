import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { whoCouldReplace } from '../../kernel/ownership.ts';
import { HostError } from '../errors/host-error.ts';
import type { Environment } from './environment.ts';

/** Where a configuration comes from, and what overrides it. */
export interface ConfigSource {
  /** The file, for messages and for relative paths inside it. */
  readonly file?: string | undefined;
  /** `--data-dir`. */
  readonly dataDir?: string | undefined;
  /** The working directory; the process's unless given. */
  readonly cwd?: string | undefined;
  /** The process's unless given. */
  readonly env?: Environment | undefined;
}

const DATA_DIR = '.holdfast';

/**
 * The data folder: `--data-dir`, else `HOLDFAST_DATA_DIR`, else what the configuration says, else `.holdfast`.
 * Relative paths are relative to the working directory; inside the file, to the file.
 *
 * @param configured `data.dir` of the configuration
 */
export function resolveDataDir(source: ConfigSource, configured?: string): string {
  const cwd = source.cwd ?? process.cwd();
  const given = source.dataDir || (source.env ?? process.env).HOLDFAST_DATA_DIR;
  if (given) return resolve(cwd, given);
  if (configured) return resolve(cwd, source.file ? dirname(source.file) : '.', configured);
  return resolve(cwd, DATA_DIR);
}

/**
 * The rule of `plugins.config.ts` for a data folder that merely lies in the working directory: nobody named it.
 *
 * @param dir absolute path; what is not there is anybody's to make
 * @throws HF_CONFIG_DATA_OWNER somebody but root and this user could have written it
 */
export function foundDataDir(dir: string): string {
  const reason = existsSync(dir) ? whoCouldReplace(dir) : undefined;
  if (reason !== undefined) throw new HostError('HF_CONFIG_DATA_OWNER', { dir, reason });
  return dir;
}
