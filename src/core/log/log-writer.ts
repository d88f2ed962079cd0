import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { CHAIN_START, chainHash } from './chain.ts';
import type { CommitRequest, Saved } from './protocol.ts';
import { SavedStates } from './saved-states.ts';
import { INSERT_RECORD, openForWriting } from './schema.ts';

/** The one writing connection of a log: chains records and commits them with what belongs to them. */
export class LogWriter {
  readonly #db: DatabaseSync;
  readonly #states: SavedStates;
  readonly #insertRecord: StatementSync;
  readonly #insertBlob: StatementSync;
  #head: { readonly seq: number; readonly hash: string };

  constructor(dataDir: string) {
    const db = openForWriting(dataDir);
    this.#db = db;
    this.#states = new SavedStates(db);
    this.#insertRecord = db.prepare(INSERT_RECORD);
    this.#insertBlob = db.prepare('INSERT OR REPLACE INTO blobs (key, body) VALUES (?, ?)');
    const newest = db.prepare('SELECT seq, hash FROM records ORDER BY seq DESC LIMIT 1').get();
    this.#head = newest
      ? { seq: newest.seq as number, hash: newest.hash as string }
      : { seq: 0, hash: CHAIN_START };
  }

  /** One transaction, durable when this returns. */
  commit(request: CommitRequest): Saved | undefined {
    return this.#transaction(() => {
      const head = this.#append(request);
      for (const [key, body] of request.blobs) this.#insertBlob.run(key, body);
      const saved = request.saving && this.#states.add(request.saving);
      if (request.saving?.finish?.keep) this.#dropBlobs(request.saving.finish.keep);
      return { head, saved };
    });
  }

  close(): void {
    this.#db.close();
  }

  #transaction(
    work: () => { head: { seq: number; hash: string }; saved: Saved | undefined },
  ): Saved | undefined {
    this.#db.exec('BEGIN IMMEDIATE');
    try {
      const { head, saved } = work();
      this.#db.exec('COMMIT');
      this.#head = head;
      return saved;
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      throw error;
    }
  }

  #append({ firstSeq, rows }: CommitRequest): { seq: number; hash: string } {
    let { seq: head, hash } = this.#head;
    if (firstSeq > head + 1) throw new Error(`record ${firstSeq} does not follow record ${head}`);
    let seq = firstSeq;
    for (let column = 0; column < rows.length; column += 3) {
      const body = rows[column + 2] as string;
      // A batch is sent again when its answer got lost: what is there already is not written twice.
      if (seq > head) {
        hash = chainHash(hash, body);
        this.#insertRecord.run(seq, rows[column] as string, rows[column + 1] as string, body, hash);
        head = seq;
      }
      seq += 1;
    }
    return { seq: head, hash };
  }

  #dropBlobs(keep: readonly string[]): void {
    this.#db
      .prepare('DELETE FROM blobs WHERE key NOT IN (SELECT value FROM json_each(?))')
      .run(JSON.stringify(keep));
  }
}
