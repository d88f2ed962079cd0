import { createHash } from 'node:crypto';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { CheckpointPart, SavedCheckpoint } from './commit-request.ts';
import type { LogKey } from './signing.ts';

/** So many full checkpoints are kept in any case, evenly spaced, so that no record is far behind one. */
const SERIES = 32;
/** And all others too while there is at most one saved state for so many records. */
const RECORDS_A_STATE = 20;

/**
 * The writing side of saved states. What is kept is what `replay at`, the console and a start need: the newest full checkpoint
 * with those after it, and of the older ones as many as are small beside the log.
 */
export class SavedStates {
  readonly #db: DatabaseSync;
  readonly #key: LogKey;
  readonly #insert: StatementSync;

  constructor(db: DatabaseSync, key: LogKey) {
    this.#db = db;
    this.#key = key;
    this.#insert = db.prepare('INSERT OR REPLACE INTO snapshots (actor, seq, body) VALUES (?, ?, ?)');
  }

  /** Within the caller's transaction. @returns what the checkpoint holds, with its last part */
  add({ seq, rows, finish }: CheckpointPart): SavedCheckpoint | undefined {
    for (let column = 0; column < rows.length; column += 2) {
      this.#insert.run(rows[column] as string, seq, rows[column + 1] as string);
    }
    return finish && this.#finish(seq, finish.full);
  }

  #finish(seq: number, wanted: boolean): SavedCheckpoint {
    const full = wanted || this.#isDue(seq);
    if (full) this.#carryOver(seq);
    const { count, digest } = digestOf(this.#db, seq, full);
    this.#db
      .prepare('INSERT OR REPLACE INTO checkpoints (seq, "full", digest, signature) VALUES (?, ?, ?, ?)')
      .run(seq, Number(full), digest, this.#key.sign('states', seq, digest).signature);
    if (full) this.#thin(seq);
    return { count, digest };
  }

  /** A full one is due when the parts since the last one have become as large: then it costs no more than they did. */
  #isDue(seq: number): boolean {
    const base = newestFull(this.#db, seq);
    const rows = this.#count('SELECT count(*) AS n FROM snapshots WHERE seq > ?', base);
    const actors = this.#count('SELECT count(*) AS n FROM snapshots WHERE seq = ?', base);
    return rows >= actors;
  }

  /** Copies the states of actors that have not changed since the last full checkpoint. */
  #carryOver(seq: number): void {
    const base = newestFull(this.#db, seq);
    this.#db
      .prepare(
        `INSERT OR IGNORE INTO snapshots (actor, seq, body)
         SELECT actor, ?, body FROM (
           SELECT actor, max(seq), body FROM snapshots WHERE seq >= ? AND seq < ? GROUP BY actor
         )`,
      )
      .run(seq, base, seq);
  }

  #thin(newest: number): void {
    const [older, room] = [
      this.#db.prepare('SELECT seq, "full" FROM checkpoints WHERE seq < ? ORDER BY seq').all(newest),
      newest / RECORDS_A_STATE,
    ];
    const saved = this.#count('SELECT count(*) AS n FROM snapshots WHERE seq < ?', newest);
    const actors = this.#count('SELECT count(*) AS n FROM snapshots WHERE seq = ?', newest);
    const kept =
      saved <= room
        ? older.map(({ seq }) => Number(seq))
        : evenly(
            older.filter(({ full }) => full === 1).map(({ seq }) => Number(seq)),
            Math.max(SERIES, Math.floor(room / actors)),
          );
    const list = JSON.stringify(kept);
    for (const table of ['snapshots', 'checkpoints']) {
      this.#db
        .prepare(`DELETE FROM ${table} WHERE seq < ? AND seq NOT IN (SELECT value FROM json_each(?))`)
        .run(newest, list);
    }
  }

  #count(sql: string, seq: number): number {
    return Number(this.#db.prepare(sql).get(seq)?.n);
  }
}

/** Takes numbers out until so many are left: always the one whose neighbours are nearest to each other, never the first or last. */
function evenly(numbers: readonly number[], most: number): number[] {
  const kept = [...numbers];
  while (kept.length > Math.max(most, 2)) {
    let [least, place] = [Number.POSITIVE_INFINITY, 1];
    for (let index = 1; index < kept.length - 1; index += 1) {
      const gap = (kept[index + 1] ?? 0) - (kept[index - 1] ?? 0);
      if (gap < least) [least, place] = [gap, index];
    }
    kept.splice(place, 1);
  }
  return kept;
}

/** The newest full checkpoint not after a record; 0 when there is none. */
export function newestFull(db: DatabaseSync, upTo: number): number {
  const row = db.prepare('SELECT max(seq) AS seq FROM checkpoints WHERE "full" = 1 AND seq <= ?').get(upTo);
  return Number(row?.seq ?? 0);
}

/** The digest of a checkpoint: its states by actor in order, and whether they are all. */
export function digestOf(db: DatabaseSync, seq: number, full: boolean): SavedCheckpoint {
  const digest = createHash('sha256');
  if (full) digest.update('all\n');
  let count = 0;
  const rows = db.prepare('SELECT actor, body FROM snapshots WHERE seq = ?').all(seq);
  for (const { body } of rows.toSorted(byActor)) {
    digest.update(count === 0 ? String(body) : `\n${body}`);
    count += 1;
  }
  return { count, digest: digest.digest('hex') };
}

function byActor(a: Record<string, unknown>, b: Record<string, unknown>): number {
  return String(a.actor) < String(b.actor) ? -1 : 1;
}
