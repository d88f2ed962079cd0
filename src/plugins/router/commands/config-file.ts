import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  realpathSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import type { NetworkConfig } from '../../../core/contracts/router.ts';
import type { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { CONTROL_FIELDS } from '../config/network-config.ts';
import { RouterError } from '../errors.ts';

/** Far more than the size of any router's config. */
const LARGEST_BYTES = 16 * 1024 * 1024;

/** @throws HF_ROUTER_FILE it cannot be read, or is a symbolic link where none is followed */
export function readBytes(file: string, follow: boolean): Buffer {
  let descriptor: number;
  try {
    const flags = constants.O_RDONLY | constants.O_NONBLOCK | (follow ? 0 : constants.O_NOFOLLOW);
    descriptor = openSync(file, flags);
  } catch (error) {
    throw unusable(file, error instanceof Error ? error.message : String(error));
  }
  try {
    const stat = fstatSync(descriptor);
    if (!stat.isFile()) throw unusable(file, 'it is not a regular file');
    if (stat.size > LARGEST_BYTES) throw unusable(file, `it is larger than ${LARGEST_BYTES} bytes`);
    return readFileSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * A config from a file's text.
 *
 * @throws HF_ROUTER_FILE it is no JSON object
 * @throws HF_ROUTER_CONTROL_FIELDS it contains fields that control a write, which only the command itself may send (R4)
 */
export function parseConfig(text: string, file: string): NetworkConfig {
  const config = parseJsonObject(text, file);
  const found = CONTROL_FIELDS.filter((field) => Object.hasOwn(config, field));
  if (found.length > 0) throw new RouterError('HF_ROUTER_CONTROL_FIELDS', { file, fields: found.join(', ') });
  return config;
}

/** @throws HF_ROUTER_FILE it is no JSON object */
export function parseJsonObject(text: string, file: string): NetworkConfig {
  let config: unknown;
  try {
    config = JSON.parse(text);
  } catch (error) {
    // The parser's own message quotes the text, which may hold secrets.
    const [, where] = /(at position \d+|line \d+ column \d+)/.exec(String(error)) ?? [];
    throw unusable(file, `it is no JSON${where ? ` (${where})` : ''}`);
  }
  if (!isObject(config)) throw unusable(file, 'it holds no JSON object');
  return config;
}

export function unusable(file: string, reason: string): HoldfastError {
  return new RouterError('HF_ROUTER_FILE', { file, reason });
}

/**
 * Writes a copy of a config into a new file that only this user may read (mode 0600; R35).
 *
 * @param file absolute path
 * @throws HF_ROUTER_COPY it is in a git work tree, the file exists already, or it cannot be written
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
  throw new RouterError('HF_ROUTER_COPY', { file, reason });
}
