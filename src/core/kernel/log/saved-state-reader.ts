import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import { KernelError } from '../errors/kernel-error.ts';
import { digestOf, newestFull } from './saved-states.ts';
import { sound } from './schema.ts';
import type { Statements } from './statements.ts';

/** States that are read at once: the event loop waits for them. */
const PAGE = 250;

/** A checkpoint of saved states, as it was signed. */
export interface SignedCheckpoint {
  readonly seq: number;
  readonly digest: string;
  readonly signature: string;
}

/** The reading side of saved states, as `SavedStates` writes them. */
export class SavedStateReader {
  readonly #db: DatabaseSync;
  readonly #statements: Statements;
  readonly #hasCheckpoints: boolean;

  /** @param hasCheckpoints an exported file may have none */
  constructor(db: DatabaseSync, statements: Statements, hasCheckpoints: boolean) {
    this.#db = db;
    this.#statements = statements;
    this.#hasCheckpoints = hasCheckpoints;
  }

  /** The newest seq, not after `upTo`, at which actors were saved; 0 when they never were. */
  snapshotSeq(upTo = Number.MAX_SAFE_INTEGER): number {
    if (!this.#hasCheckpoints) return 0;
    return this.#statements.number('SELECT max(seq) FROM checkpoints WHERE seq <= ?', upTo);
  }

  /**
   * The state of every actor that was saved at a checkpoint, as saved.
   *
   * @param at from `snapshotSeq`
   * @throws HF_LOG_CORRUPT they are not what was saved
   */
  snapshots(at: number): string[] {
    for (const { seq, digest } of this.checkpointsFor(at)) {
      if (this.digestAt(seq) === digest) continue;
      const reason = 'the states saved after it are not what was saved';
      throw new KernelError('HF_LOG_CORRUPT', { seq, reason });
    }
    if (!this.#hasCheckpoints) return [];
    const newest = 'SELECT max(seq), body FROM snapshots WHERE seq BETWEEN ? AND ? GROUP BY actor';
    const rows = this.#statements.all(newest, this.#newestFull(at), at);
    return rows.map(({ body }) => String(body));
  }

  /** The same, a page at a time and unchecked, in the order of their checkpoints. @param at from `snapshotSeq` */
  *snapshotPages(at: number): Iterable<string[]> {
    if (!this.#hasCheckpoints) return;
    const next = this.#statements.prepare(
      'SELECT actor, body FROM snapshots WHERE seq = ? AND actor > ? ORDER BY actor LIMIT ?',
    );
    for (const { seq } of this.checkpointsFor(at)) {
      for (let after = ''; ; ) {
        const rows = sound(() => next.all(seq, after, PAGE));
        if (rows.length > 0) yield rows.map(({ body }) => String(body));
        if (rows.length < PAGE) break;
        after = String(rows.at(-1)?.actor);
      }
    }
  }

  /** The checkpoints that the states at one of them are made of, as they were signed. @param at from `snapshotSeq` */
  checkpointsFor(at: number): SignedCheckpoint[] {
    if (!this.#hasCheckpoints) return [];
    const between = 'SELECT seq, digest, signature FROM checkpoints WHERE seq BETWEEN ? AND ? ORDER BY seq';
    const rows = this.#statements.all(between, this.#newestFull(at), at);
    return rows.map(checkpointOf);
  }

  /** The newest saved state of one actor that is not after `upTo`, as saved. */
  snapshotOf(actor: string, upTo: number): string | undefined {
    const newest = 'SELECT body FROM snapshots WHERE actor = ? AND seq <= ? ORDER BY seq DESC LIMIT 1';
    return this.#statements.text(newest, actor, this.snapshotSeq(upTo));
  }

  /** The digest of the states that were saved at a seq, as they are now; undefined when they are not kept. */
  digestAt(seq: number): string | undefined {
    if (!this.#hasCheckpoints) return undefined;
    const checkpoint = this.#statements.get('SELECT "full" FROM checkpoints WHERE seq = ?', seq);
    return checkpoint && sound(() => digestOf(this.#db, seq, checkpoint.full === 1).digest);
  }

  /** The oldest checkpoint that is not before a record; undefined when there is none. */
  checkpointFrom(seq: number): number | undefined {
    if (!this.#hasCheckpoints) return undefined;
    return this.#statements.number('SELECT min(seq) FROM checkpoints WHERE seq >= ?', seq) || undefined;
  }

  /** Every checkpoint of saved states, as it was signed. */
  checkpoints(): SignedCheckpoint[] {
    if (!this.#hasCheckpoints) return [];
    const rows = this.#statements.all('SELECT seq, digest, signature FROM checkpoints');
    return rows.map(checkpointOf);
  }

  /** Actors under whose name the state of another one is saved. */
  misplacedStates(): string[] {
    const other = `SELECT actor FROM snapshots WHERE json_valid(body) AND json_extract(body, '$.ref') IS NOT actor`;
    return this.#statements.all(`${other} LIMIT 20`).map(({ actor }) => String(actor));
  }

  /** The full checkpoint on which the states at another one stand. */
  #newestFull(at: number): number {
    return sound(() => newestFull(this.#db, at));
  }
}

function checkpointOf({ seq, digest, signature }: Record<string, SQLOutputValue>): SignedCheckpoint {
  return { seq: Number(seq), digest: String(digest), signature: String(signature) };
}
