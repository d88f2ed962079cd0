import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { KernelError } from '../errors/kernel-error.ts';
import { createSecretFile, readSecretFile } from '../secret-file.ts';

/** What a signature is about: a record and all before it, the states saved at one, where a pruned log begins, or what a repair lost. */
export type Subject = 'record' | 'states' | 'begin' | 'missing';

/** Says that the holder of `key` saw this hash at this place. */
export interface Signature {
  readonly seq: number;
  /** The record's hash, the digest of the states, or the hash that the first record chains to. */
  readonly hash: string;
  /** `ed25519:` and the public key, base64url. */
  readonly key: string;
  /** Base64url. */
  readonly signature: string;
}

const HASH = /^[0-9a-f]{64}$/;
const KEY = /^ed25519:[\w-]{43}$/;
const SIGNATURE = /^[\w-]{86}$/;

/**
 * Guards signatures that come from outside. It is plain code, not a schema: the thread that writes the log signs, and a
 * schema library would be loaded into that thread a second time, for some 5 MB of memory.
 *
 * @returns its four fields, or undefined where one is missing or malformed
 */
export function parseSignature(value: unknown): Signature | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { seq, hash, key, signature } = value as Partial<Record<string, unknown>>;
  if (typeof seq !== 'number' || !Number.isSafeInteger(seq) || seq < 0) return undefined;
  if (!matches(hash, HASH) || !matches(key, KEY) || !matches(signature, SIGNATURE)) return undefined;
  return { seq, hash, key, signature };
}

const matches = (value: unknown, pattern: RegExp): value is string =>
  typeof value === 'string' && pattern.test(value);

/** The private key of one data folder: Ed25519. */
export class LogKey {
  readonly #private: KeyObject;
  /** `ed25519:` and the public key, base64url. */
  readonly text: string;

  constructor(key: KeyObject) {
    this.#private = key;
    this.text = `ed25519:${createPublicKey(key).export({ format: 'jwk' }).x}`;
  }

  sign(subject: Subject, seq: number, hash: string): Signature {
    const signature = sign(null, statement(subject, seq, hash), this.#private).toString('base64url');
    return { seq, hash, key: this.text, signature };
  }
}

/** @returns whether the holder of its key made it */
export function isGenuine(subject: Subject, { seq, hash, key, signature }: Signature): boolean {
  try {
    const x = key.slice(key.indexOf(':') + 1);
    const publicKey = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
    return verify(null, statement(subject, seq, hash), publicKey, Buffer.from(signature, 'base64url'));
  } catch {
    return false; // no key, or no signature
  }
}

/** @returns whether a text is a public key as `LogKey.text` gives it */
export function isPublicKey(text: string): boolean {
  return KEY.test(text);
}

/**
 * The key of a data folder, in `<dataDir>/secrets`, mode 0600; made when it is not there.
 *
 * @throws HF_CONFIG_SECRET_MODE, HF_CONFIG_SECRET_FOLDER others have rights on it
 * @throws HF_CONFIG_SECRET_INVALID it is none; or it is gone, and the head that it signed is there
 */
export function openLogKey(dataDir: string): LogKey {
  const file = keyFile(dataDir);
  if (!existsSync(file)) {
    if (existsSync(headFile(dataDir))) {
      const reason = 'it is gone, and log-head beside it was signed with it';
      throw new KernelError('HF_CONFIG_SECRET_INVALID', { file, reason });
    }
    const { privateKey } = generateKeyPairSync('ed25519');
    createSecretFile(file, Buffer.from(privateKey.export({ type: 'pkcs8', format: 'pem' })));
  }
  return readKey(file);
}

/** Finds the key for a reader of the log. @returns undefined when there is none, or this user may not read it */
export function findLogKey(dataDir: string): LogKey | undefined {
  try {
    return readKey(keyFile(dataDir));
  } catch {
    return undefined;
  }
}

/** Where the newest signature is noted, out of reach of who has the database alone. */
export function headFile(dataDir: string): string {
  return join(dataDir, 'secrets', 'log-head');
}

function keyFile(dataDir: string): string {
  return join(dataDir, 'secrets', 'log-signing-key');
}

function readKey(file: string): LogKey {
  const bytes = readSecretFile(file, undefined, statSync(dirname(dirname(file))).uid);
  try {
    const key = createPrivateKey(bytes);
    if (key.asymmetricKeyType === 'ed25519') return new LogKey(key);
  } catch {
    // It is not a key at all: reported below.
  } finally {
    bytes.fill(0);
  }
  throw new KernelError('HF_CONFIG_SECRET_INVALID', { file, reason: 'it holds no Ed25519 key' });
}

function statement(subject: Subject, seq: number, hash: string): Buffer {
  return Buffer.from(`holdfast/log/1\n${subject}\n${seq}\n${hash}\n`);
}

const COLUMNS = 'seq, hash, key, signature';

/** Adds the signature of a record. */
export function insertSignature(db: DatabaseSync, { seq, hash, key, signature }: Signature): void {
  db.prepare(`INSERT OR REPLACE INTO signatures (${COLUMNS}) VALUES (?, ?, ?, ?)`).run(
    seq,
    hash,
    key,
    signature,
  );
}

/** Lets the log begin at a record: it is chained to the signed hash of the one before, which is not there any more. */
export function insertBegin(db: DatabaseSync, { seq, hash, key, signature }: Signature): void {
  db.prepare(`INSERT OR REPLACE INTO links (${COLUMNS}) VALUES (?, ?, ?, ?)`).run(seq, hash, key, signature);
  db.prepare("INSERT OR REPLACE INTO meta (key, value) VALUES ('begin', ?)").run(String(seq));
}

/** The newest signature that a key made. */
export function newestSignature(db: DatabaseSync, key: string): Signature | undefined {
  const newest = `SELECT ${COLUMNS} FROM signatures WHERE key = ? ORDER BY seq DESC LIMIT 1`;
  const row = db.prepare(newest).get(key);
  return row && signatureOf(row);
}

/** Signatures of records from one seq to another, inclusive, in order. */
export function signaturesBetween(db: DatabaseSync, from: number, to: number): Signature[] {
  const between = `SELECT ${COLUMNS} FROM signatures WHERE seq BETWEEN ? AND ? ORDER BY seq, key`;
  return db.prepare(between).all(from, to).map(signatureOf);
}

/** A row with the columns of a signature. */
export function signatureOf({ seq, hash, key, signature }: Readonly<Record<string, unknown>>): Signature {
  return { seq: Number(seq), hash: String(hash), key: String(key), signature: String(signature) };
}
