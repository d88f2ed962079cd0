import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  type KeyObject,
  randomBytes,
} from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { canonicalJson } from '../../kernel/canonical-json.ts';
import { KernelError } from '../../kernel/errors/kernel-error.ts';
import { FINGERPRINT_DIGITS, FINGERPRINT_PREFIX, type Fingerprint } from '../../kernel/ids.ts';
import { LOCK_FILE } from '../../kernel/log/lock.ts';
import { createSecretFile, readSecretFile } from '../../kernel/secret-file.ts';
import { HostError } from '../errors/host-error.ts';

const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** First byte of every sealed body, which distinguishes another format from damage. */
const FORMAT = 1;
const HEADER_BYTES = 1 + NONCE_BYTES + TAG_BYTES;

/** The keys of one data folder. As `KeyObject`s they cannot be printed by accident. */
export interface VaultKeys {
  readonly fingerprint: KeyObject;
  readonly sealing: KeyObject;
}

/**
 * Fingerprints and encrypts secrets. A fingerprint shows only whether two secrets are equal. A sealed body can be
 * opened only with the keys of the data folder that sealed it, and for the same purpose.
 */
export class Vault {
  readonly #keys: VaultKeys;

  constructor(keys: VaultKeys) {
    this.#keys = keys;
  }

  /**
   * @param value JSON; the order of keys does not count
   * @returns `fp_` and 32 hexadecimal digits (128 bits of an HMAC-SHA-256)
   * @throws TypeError the value is not JSON
   */
  fingerprint(value: unknown): Fingerprint {
    const mac = createHmac('sha256', this.#keys.fingerprint).update(canonicalJson(value)).digest('hex');
    return `${FINGERPRINT_PREFIX}${mac.slice(0, FINGERPRINT_DIGITS)}` as Fingerprint;
  }

  /**
   * Encrypts and authenticates (AES-256-GCM, a random nonce each time).
   *
   * @param purpose what the body is, e.g. `host.config`; it must be named again to open it
   */
  seal(plain: string, purpose: string): Uint8Array {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#keys.sealing, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(associated(purpose));
    const body = [cipher.update(plain, 'utf8'), cipher.final()];
    return Buffer.concat([Buffer.of(FORMAT), nonce, cipher.getAuthTag(), ...body]);
  }

  /** @throws HF_SECRET_SEALED another key or purpose sealed it, or it is damaged */
  open(sealed: Uint8Array, purpose: string): string {
    const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength);
    if (bytes.length < HEADER_BYTES) unreadable(purpose, 'it is cut short');
    if (bytes[0] !== FORMAT) unreadable(purpose, `its format ${bytes[0]} is not known`);
    const nonce = bytes.subarray(1, 1 + NONCE_BYTES);
    const decipher = createDecipheriv('aes-256-gcm', this.#keys.sealing, nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(associated(purpose));
    decipher.setAuthTag(bytes.subarray(1 + NONCE_BYTES, HEADER_BYTES));
    try {
      return Buffer.concat([decipher.update(bytes.subarray(HEADER_BYTES)), decipher.final()]).toString(
        'utf8',
      );
    } catch (error) {
      return unreadable(purpose, 'the key or the purpose is another one, or it was changed', error);
    }
  }
}

/**
 * The vault of a data folder. Its keys lie in `<dataDir>/secrets`, are made at the first start, and are never
 * replaced: what they sealed could not be read again.
 *
 * Hosts of one cluster make the same fingerprints, by a key that they share. What a host seals it alone can open: the bodies
 * that its records name, e.g. configurations and answers to approvals, stay on it (docs/cluster.md).
 *
 * @param dataDir absolute path of the data folder
 * @param sharedKey 32 bytes by which fingerprints are made instead of by the folder's own key
 * @throws HF_CONFIG_SECRET_MODE a key may be read by others; HF_CONFIG_SECRET_FOLDER the folder may be changed by them
 * @throws HF_CONFIG_SECRET_INVALID a key file does not hold 32 bytes
 */
export function openVault(dataDir: string, sharedKey?: Uint8Array): Vault {
  const folder = join(dataDir, 'secrets');
  const sealed = databaseIn(dataDir);
  for (const key of ['fingerprint-key', 'sealing-key']) {
    if (sealed === undefined || existsSync(join(folder, key))) continue;
    const reason = `it is gone, and ${sealed} holds what was sealed with it`;
    throw new KernelError('HF_CONFIG_SECRET_INVALID', { file: join(folder, key), reason });
  }
  const own = readOrCreateKey(join(folder, 'fingerprint-key'));
  return new Vault({
    fingerprint: sharedKey ? createSecretKey(sharedKey) : own,
    sealing: readOrCreateKey(join(folder, 'sealing-key')),
  });
}

/** @returns the name of a database of this data folder; what it holds may be sealed */
function databaseIn(dataDir: string): string | undefined {
  if (!existsSync(dataDir)) return undefined;
  return readdirSync(dataDir).find((name) => name.endsWith('.db') && name !== LOCK_FILE);
}

function readOrCreateKey(file: string): KeyObject {
  createSecretFile(file, randomBytes(KEY_BYTES));
  const bytes = readSecretFile(file);
  if (bytes.length !== KEY_BYTES) {
    const reason = `it holds ${bytes.length} bytes, not ${KEY_BYTES}`;
    throw new KernelError('HF_CONFIG_SECRET_INVALID', { file, reason });
  }
  const key = createSecretKey(bytes);
  bytes.fill(0);
  return key;
}

function associated(purpose: string): Buffer {
  return Buffer.from(`holdfast/${FORMAT}/${purpose}`, 'utf8');
}

function unreadable(purpose: string, reason: string, cause?: unknown): never {
  throw new HostError('HF_SECRET_SEALED', { purpose, reason }, { cause });
}
