import { resolve } from 'node:path';
import { HoldfastError } from '../../../../core/kernel/errors/holdfast-error.ts';
import { readSecretFile, readTokenFile } from '../../../../core/kernel/secret-file.ts';
import { readBytes, unusable } from '../config/config-file.ts';
import { askPassphrase } from './passphrase.ts';

type Flags = Readonly<Record<string, unknown>>;

const HEADER = 'age-encryption.org/v1';
const ARMOR = '-----BEGIN AGE ENCRYPTED FILE-----';

/**
 * Encrypts for the recipients of `--recipient-file`, else with the passphrase of `--passphrase-file` or the one that
 * is asked for. A passphrase is never an argument.
 *
 * @throws HF_ROUTER_FILE the file holds no recipient
 * @throws HF_CLI_USAGE there is neither, and no terminal to ask on
 */
export async function encrypt(text: string, flags: Flags): Promise<Uint8Array> {
  const { Encrypter } = await import('age-encryption');
  const encrypter = new Encrypter();
  if (typeof flags.recipientFile === 'string') {
    const lines = readBytes(resolve(flags.recipientFile), true).toString('utf8').split('\n');
    const recipients = lines
      .map((line) => line.trim())
      .filter((line) => line !== '' && !line.startsWith('#'));
    if (recipients.length === 0) throw unusable(flags.recipientFile, 'it names no recipient (age1…)');
    for (const recipient of recipients) {
      try {
        encrypter.addRecipient(recipient);
      } catch {
        throw unusable(flags.recipientFile, 'a line of it is no recipient (age1…)');
      }
    }
  } else {
    encrypter.setPassphrase(await passphrase(flags, 'get', true));
  }
  return encrypter.encrypt(text);
}

export function isEncrypted(content: Buffer): boolean {
  const start = content.subarray(0, ARMOR.length).toString('latin1');
  return start.startsWith(HEADER) || start === ARMOR;
}

/** @throws HF_ROUTER_FILE it cannot be decrypted */
export async function decrypt(content: Buffer, file: string, flags: Flags): Promise<string> {
  const { armor, Decrypter } = await import('age-encryption');
  const decrypter = new Decrypter();
  if (typeof flags.identityFile === 'string') {
    const lines = readSecretFile(resolve(flags.identityFile)).toString('utf8').split('\n');
    const keys = lines.map((line) => line.trim()).filter((line) => line.startsWith('AGE-SECRET-KEY-'));
    if (keys.length === 0) throw unusable(flags.identityFile, 'it holds no AGE-SECRET-KEY');
    for (const key of keys) decrypter.addIdentity(key);
  } else {
    decrypter.addPassphrase(await passphrase(flags, 'apply', false));
  }
  try {
    const sealed = content.toString('latin1').startsWith(ARMOR)
      ? armor.decode(content.toString('latin1'))
      : new Uint8Array(content);
    return await decrypter.decrypt(sealed, 'text');
  } catch {
    throw unusable(file, 'it cannot be decrypted with this key or passphrase');
  }
}

async function passphrase(flags: Flags, command: string, twice: boolean): Promise<string> {
  if (typeof flags.passphraseFile === 'string') return readTokenFile(resolve(flags.passphraseFile));
  if (process.stdin.isTTY === true && process.stderr.isTTY === true) return askPassphrase(twice);
  const files = twice ? '--recipient-file or --passphrase-file' : '--identity-file or --passphrase-file';
  const reason = `An age file needs ${files} where no terminal is to ask on.`;
  throw new HoldfastError('HF_CLI_USAGE', { reason, command: `router ${command}` });
}
