import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { CoreError } from '../errors/core-error.ts';
import { findBodyKey, openBody } from './body-keys.ts';
import { hasColumn, hasTable } from './schema.ts';
import { sound } from './sound.ts';

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

  /** Of those that were stored before a time, epoch milliseconds. */
  keys(before: number): string[] {
    if (!this.#hasShredded) return [];
    const older = this.#db.prepare('SELECT key FROM blobs WHERE at < ? ORDER BY key');
    return sound(() => older.all(before)).map((row) => row.key as string);
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
    if (note) shredded(name, new Date(note.at as number).toISOString());
  }

  #get(sql: string, ...values: SQLInputValue[]): Record<string, unknown> | undefined {
    return sound(() => this.#db.prepare(sql).get(...values));
  }
}

function shredded(fingerprint: string, at = 'a time that is not known'): never {
  throw new CoreError('HF_LOG_SHREDDED', { fingerprint, at });
}
