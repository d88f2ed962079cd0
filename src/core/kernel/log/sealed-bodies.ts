import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { closeSync, existsSync, fdatasyncSync, openSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { isCoded } from '../errors/holdfast-error.ts';
import { KernelError } from '../errors/kernel-error.ts';
import { createSecretFile, readSecretFile } from '../secret-file.ts';
import { hasColumn, hasTable, sound } from './schema.ts';

interface StoredBody {
  readonly body: Uint8Array;
  readonly sealed_by: string | null;
}

/** The sealed bodies beside the records of a log: opened by the data key of each, or told as shredded. */
export class StoredBodies {
  readonly #db: DatabaseSync;
  readonly #hasShredded: boolean;
  /** Where the data keys of bodies lie; undefined when no body has one. */
  readonly #keysIn: string | undefined;

  /** @param dataDir of the log; undefined for a database that is none's, whose bodies have no keys */
  constructor(db: DatabaseSync, dataDir: string | undefined) {
    this.#db = db;
    this.#hasShredded = sound(() => hasTable(db, 'shredded'));
    this.#keysIn = sound(() => hasColumn(db, 'blobs', 'sealed_by')) ? dataDir : undefined;
  }

  /** @throws HF_LOG_SHREDDED it was here, and was made unreadable; HF_LOG_DAMAGED it was changed */
  open(name: string): Uint8Array | undefined {
    if (this.#keysIn === undefined) return this.#stored(name)?.body ?? this.#shredded(name);
    const first = this.#stored(name);
    const body = first && this.#opened(this.#keysIn, name, first);
    if (body) return body;
    // Its writer may have stored it anew in between, under another key.
    const again = this.#stored(name);
    return again ? (this.#opened(this.#keysIn, name, again) ?? shredded(name)) : this.#shredded(name);
  }

  /** The names of bodies that were stored before a time, epoch milliseconds. */
  keys(before: number): string[] {
    if (!this.#hasShredded) return [];
    const older = this.#db.prepare('SELECT key FROM blobs WHERE at < ? ORDER BY key');
    return sound(() => older.all(before)).map((row) => String(row.key));
  }

  /** What is wrong with each body that cannot be opened: who needs one of them would find out too late. */
  damaged(): string[] {
    let names: string[];
    try {
      names = this.#db
        .prepare('SELECT key FROM blobs')
        .all()
        .map((row) => String(row.key));
    } catch (error) {
      return [`the stored bodies cannot be read: ${error instanceof Error ? error.message : String(error)}`];
    }
    return names.flatMap((name) => {
      try {
        this.open(name);
        return [];
      } catch (error) {
        if (!isCoded(error)) throw error;
        // One that was made unreadable on purpose has a note, and is not listed any more.
        if (error.code === 'HF_LOG_SHREDDED')
          return this.#stored(name) ? [`the stored body ${name} has no key`] : [];
        return [`the stored body ${name} cannot be opened`];
      }
    });
  }

  #stored(name: string): StoredBody | undefined {
    const columns = this.#keysIn === undefined ? 'body, NULL AS sealed_by' : 'body, sealed_by';
    return this.#get(`SELECT ${columns} FROM blobs WHERE key = ?`, name) as StoredBody | undefined;
  }

  /** @returns undefined when its key is gone */
  #opened(dataDir: string, name: string, { body, sealed_by: id }: StoredBody): Uint8Array | undefined {
    if (id === null) return body;
    const key = findBodyKey(dataDir, id);
    return key && sound(() => openBody(key, name, body));
  }

  #shredded(name: string): undefined {
    if (!this.#hasShredded) return undefined;
    const note = this.#get('SELECT at FROM shredded WHERE key = ?', name);
    if (note) shredded(name, new Date(Number(note.at)).toISOString());
  }

  #get(sql: string, ...values: SQLInputValue[]): Record<string, unknown> | undefined {
    return sound(() => this.#db.prepare(sql).get(...values));
  }
}

function shredded(fingerprint: string, at = 'a time that is not known'): never {
  throw new KernelError('HF_LOG_SHREDDED', { fingerprint, at });
}

const ID_BYTES = 16;
const KEY_BYTES = 32;
const TAG_BYTES = 16;
/** A slot never lies across two sectors of a disk, so a power cut leaves it whole, old or new. */
const SLOT = 64;
/** Keys that are made and synced at once, in advance: most bodies find a key that is durable already. */
const SPARE = 64;
const LARGEST = 256 * 1024 * 1024;
/** A data key seals one body and no other, so the nonce may always be the same. */
const NONCE = Buffer.alloc(12);

/** Seals one stored body, and nothing else. */
export interface BodyKey {
  /** Random; 32 hexadecimal digits. */
  readonly id: string;
  readonly key: Uint8Array;
}

/**
 * The data keys of stored bodies, in `secrets/body-keys` of the data folder: apart from the database, so that a body
 * is unreadable in every copy of the database as soon as its key is overwritten here.
 */
export class BodyKeys {
  readonly #file: string;
  readonly #slots = new Map<string, number>();
  #free: number[] = [];
  /** Durable, and of no body yet. A later run does not know them and sweeps them. */
  #spare: BodyKey[] = [];
  #size = 0;
  #descriptor: number | undefined;

  /** @throws HF_CONFIG_SECRET_MODE, HF_CONFIG_SECRET_INVALID */
  constructor(dataDir: string) {
    this.#file = keysFile(dataDir);
    if (!existsSync(this.#file)) return;
    const bytes = readSecretFile(this.#file, LARGEST, statSync(dataDir).uid);
    this.#size = bytes.length - (bytes.length % SLOT);
    for (let at = 0; at < this.#size; at += SLOT) {
      const slot = bytes.subarray(at, at + SLOT);
      if (slot.every((byte) => byte === 0)) this.#free.push(at);
      else this.#slots.set(slot.toString('hex', 0, ID_BYTES), at);
    }
    bytes.fill(0);
  }

  /** Keys that were never handed out, durable when this returns. */
  take(count: number): BodyKey[] {
    if (this.#spare.length < count) this.#make(Math.max(count, SPARE));
    return this.#spare.splice(-count);
  }

  /** Overwrites all keys but those that are named, for good when this returns. */
  retain(ids: ReadonlySet<string>): void {
    const spare = new Set(this.#spare.map(({ id }) => id));
    const gone = [...this.#slots].filter(([id]) => !ids.has(id) && !spare.has(id));
    if (gone.length === 0) return;
    const file = this.#open();
    for (const [, at] of gone) writeWhole(file, Buffer.alloc(SLOT), at);
    fdatasyncSync(file);
    for (const [id, at] of gone) {
      this.#slots.delete(id);
      this.#free.push(at);
    }
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }

  #open(): number {
    if (this.#descriptor === undefined) {
      createSecretFile(this.#file, Buffer.alloc(0));
      this.#descriptor = openSync(this.#file, 'r+');
    }
    return this.#descriptor;
  }

  #make(count: number): void {
    const file = this.#open();
    const made = Array.from({ length: count }, () => {
      const [id, key] = [randomBytes(ID_BYTES), randomBytes(KEY_BYTES)];
      const at = this.#free.pop() ?? this.#size;
      if (at === this.#size) this.#size += SLOT;
      this.#slots.set(id.toString('hex'), at);
      writeWhole(file, Buffer.concat([id, key, Buffer.alloc(SLOT - ID_BYTES - KEY_BYTES)]), at);
      return { id: id.toString('hex'), key };
    });
    fdatasyncSync(file);
    this.#spare.push(...made);
  }
}

/** @returns undefined when it was dropped, or is not there @throws HF_CONFIG_SECRET_MODE, HF_CONFIG_SECRET_INVALID */
function findBodyKey(dataDir: string, id: string): BodyKey | undefined {
  const file = keysFile(dataDir);
  if (!existsSync(file)) return undefined;
  const bytes = readSecretFile(file, LARGEST, statSync(dataDir).uid);
  const wanted = Buffer.from(id, 'hex');
  for (let at = 0; at + SLOT <= bytes.length; at += SLOT) {
    if (!bytes.subarray(at, at + ID_BYTES).equals(wanted)) continue;
    return { id, key: bytes.subarray(at + ID_BYTES, at + ID_BYTES + KEY_BYTES) };
  }
  return undefined;
}

/** @param name what the body is stored under; it must be named again to open it */
export function sealBody({ key }: BodyKey, name: string, body: Uint8Array): Uint8Array {
  const cipher = createCipheriv('aes-256-gcm', key, NONCE, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(name));
  const sealed = [cipher.update(body), cipher.final()];
  return Buffer.concat([cipher.getAuthTag(), ...sealed]);
}

/** @throws Error another key sealed it, under another name, or it was changed */
function openBody({ key }: BodyKey, name: string, sealed: Uint8Array): Uint8Array {
  const decipher = createDecipheriv('aes-256-gcm', key, NONCE, { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(name));
  decipher.setAuthTag(sealed.subarray(0, TAG_BYTES));
  return Buffer.concat([decipher.update(sealed.subarray(TAG_BYTES)), decipher.final()]);
}

function keysFile(dataDir: string): string {
  return join(dataDir, 'secrets', 'body-keys');
}

function writeWhole(file: number, bytes: Uint8Array, at: number): void {
  for (let done = 0; done < bytes.length; )
    done += writeSync(file, bytes, done, bytes.length - done, at + done);
}
