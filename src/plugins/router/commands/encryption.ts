import { resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import type { NetworkConfig } from '../../../core/contracts/router.ts';
import { HostError } from '../../../core/host/errors/host-error.ts';
import { readTokenFile } from '../../../core/host/secrets/token-file.ts';
import { readSecretFile } from '../../../core/kernel/secret-file.ts';
import { parseConfig, readBytes, unusable } from './config-file.ts';
import { putSecretsBack } from './leaves.ts';

type Flags = Readonly<Record<string, unknown>>;

const HEADER = 'age-encryption.org/v1';
const ARMOR = '-----BEGIN AGE ENCRYPTED FILE-----';

/**
 * Encrypts for the recipients of `--recipient-file`, else with the passphrase of `--passphrase-file` or the one that
 * is entered on the terminal. A passphrase is never an argument.
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

function isEncrypted(content: Buffer): boolean {
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
  throw new HostError('HF_CLI_USAGE', { reason, command: `router ${command}` });
}

/**
 * Asks for a passphrase on the terminal, which shows nothing of it.
 *
 * @throws HF_CLI_USAGE it is empty, or the two differ
 */
async function askPassphrase(twice: boolean): Promise<string> {
  const first = await ask('Passphrase: ');
  if (first === '') usage('The passphrase is empty.');
  if (twice && (await ask('Once more: ')) !== first) usage('The two passphrases differ.');
  return first;
}

async function ask(question: string): Promise<string> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: process.stdin, output: nowhere, terminal: true });
  // The prompt is printed only after the terminal has stopped echoing, so that a quick answer is not shown.
  process.stderr.write(question);
  const given = Promise.withResolvers<string>();
  lines.once('line', given.resolve);
  lines.once('close', () => given.resolve(''));
  lines.once('SIGINT', () => {
    lines.close();
    process.kill(process.pid, 'SIGINT');
  });
  const line = await given.promise;
  lines.close();
  process.stderr.write('\n');
  return line;
}

function usage(reason: string): never {
  throw new HostError('HF_CLI_USAGE', { reason, command: 'router get' });
}

/**
 * A config from a file: plain JSON, or encrypted with age and then decrypted in memory only.
 *
 * @param active the config whose secrets replace placeholders
 * @throws HF_ROUTER_FILE, HF_ROUTER_CONTROL_FIELDS, HF_ROUTER_PLACEHOLDER
 */
export async function readConfigFile(
  name: string,
  flags: Readonly<Record<string, unknown>>,
  active: NetworkConfig,
): Promise<NetworkConfig> {
  const file = resolve(name);
  const content = readBytes(file, true);
  const text = isEncrypted(content) ? await decrypt(content, file, flags) : content.toString('utf8');
  return putSecretsBack(parseConfig(text, file), active);
}
