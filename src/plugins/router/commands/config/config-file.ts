import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import type { NetworkConfig } from '../../../../core/contracts/router.ts';
import { HoldfastError } from '../../../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../../../core/kernel/json.ts';
import { CONTROL_FIELDS } from '../../request.ts';

/** No config of a router is nearly as large. */
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
 * @throws HF_ROUTER_CONTROL_FIELDS it steers a write, which only the command itself does (R4)
 */
export function parseConfig(text: string, file: string): NetworkConfig {
  let config: unknown;
  try {
    config = JSON.parse(text);
  } catch (error) {
    // The parser's own words quote the text, which may hold secrets.
    const [, where] = /(at position \d+|line \d+ column \d+)/.exec(String(error)) ?? [];
    throw unusable(file, `it is no JSON${where ? ` (${where})` : ''}`);
  }
  if (!isObject(config)) throw unusable(file, 'it holds no JSON object');
  const found = CONTROL_FIELDS.filter((field) => Object.hasOwn(config, field));
  if (found.length > 0)
    throw new HoldfastError('HF_ROUTER_CONTROL_FIELDS', { file, fields: found.join(', ') });
  return config;
}

export function unusable(file: string, reason: string): HoldfastError {
  return new HoldfastError('HF_ROUTER_FILE', { file, reason });
}
