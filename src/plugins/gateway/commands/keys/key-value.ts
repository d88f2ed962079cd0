import { resolve } from 'node:path';
import { HoldfastError } from '../../../../core/kernel/errors/holdfast-error.ts';
import { readTokenFile } from '../../../../core/kernel/secret-file.ts';

const LARGEST_BYTES = 4_096;

/**
 * Reads the value of a key: arguments are seen by everybody on the machine, so it comes from a file or a pipe.
 *
 * @param file path (mode 0600), or `-` for standard input
 * @throws HF_CONFIG_SECRET_MISSING, HF_CONFIG_SECRET_MODE, HF_CONFIG_SECRET_INVALID, HF_CLI_USAGE
 */
export async function readKey(file: string, command: string): Promise<string> {
  if (file !== '-') return readTokenFile(resolve(file));
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of process.stdin) {
    size += (chunk as Buffer).length;
    if (size > LARGEST_BYTES) throw usage('What came on standard input is no key.', command);
    chunks.push(chunk as Buffer);
  }
  const value = Buffer.concat(chunks).toString('utf8').trim();
  if (value === '') throw usage('Nothing came on standard input.', command);
  return value;
}

/** How a command says which key it is about: an id or an alias, or a file with the value. */
export async function keyNamed(
  name: string | undefined,
  file: unknown,
  command: string,
): Promise<{ name: string } | { key: string }> {
  if (name !== undefined && /^(?:bearer\s+)?sk-/i.test(name)) {
    const reason =
      "A key's value does not belong in an argument, where others see it: use --key-file, and rotate that key.";
    throw usage(reason, command);
  }
  if ((name === undefined) === (typeof file !== 'string')) {
    throw usage('Name one key: by its id or alias, or with --key-file.', command);
  }
  return typeof file === 'string' ? { key: await readKey(file, command) } : { name: name ?? '' };
}

export const usage = (reason: string, command: string): HoldfastError =>
  new HoldfastError('HF_CLI_USAGE', { reason, command });
