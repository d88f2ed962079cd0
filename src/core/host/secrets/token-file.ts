import type { HoldfastError } from '../../kernel/errors/holdfast-error.ts';
import { KernelError } from '../../kernel/errors/kernel-error.ts';
import { readSecretFile } from '../../kernel/secret-file.ts';

/**
 * Reads a token from a secret file: text without the line break that an editor leaves at the end.
 *
 * @param file absolute path
 * @throws HF_CONFIG_SECRET_MISSING there is no such file, or it cannot be opened
 * @throws HF_CONFIG_SECRET_MODE group or others have any right on it
 * @throws HF_CONFIG_SECRET_INVALID it is not a regular file, too large or empty, or holds control characters
 */
export function readTokenFile(file: string): string {
  const token = readSecretFile(file).toString('utf8').trim();
  if (token === '') throw invalid(file, 'it is empty');
  // A control character would end a header early; it is never part of a token.
  if ([...token].some((character) => character < ' ' || character === '\u007f')) {
    throw invalid(file, 'it holds more than one line, or control characters');
  }
  return token;
}

function invalid(file: string, reason: string): HoldfastError {
  return new KernelError('HF_CONFIG_SECRET_INVALID', { file, reason });
}
