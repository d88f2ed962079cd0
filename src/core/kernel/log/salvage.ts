import { hash } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { isCoded } from '../errors/holdfast-error.ts';
import { CHAIN_START, chainHash } from './chain-hash.ts';
import type { RawRecord } from './event-log.ts';
import type { MissingRange } from './missing.ts';
import { pageSizeOf, recordsInPages } from './raw-pages.ts';
import { parseRecord } from './record.ts';
import { logFile } from './schema.ts';
import type { SqliteReader } from './sqlite-reader.ts';

/** A record that was saved. */
export interface Salvaged extends RawRecord {
  /** The hash that it chains to, where the record before it is lost. */
  readonly previous?: string;
}

/** Records of one transaction of the temporary table, and between two steps. */
const STEP = 1_000;
/** Sizes of pages of a log, where no header says it. */
const PAGE_SIZES = [512, 4_096, 1_024, 8_192];

/**
 * Finds every record in a damaged log: through SQLite where it can read, and in the pages themselves. Of several versions
 * of one record the chain of hashes tells which was written; a record goes where its own content says, not where it was
 * found.
 */
export class Salvage {
  /** Everything that was found; without a name it lies in SQLite's cache, and on the disk when it is large. */
  readonly #found = new DatabaseSync('');
  readonly missing: MissingRange[] = [];

  constructor() {
    this.#found.exec(`
      PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
      CREATE TABLE found (
        seq INTEGER NOT NULL, digest TEXT NOT NULL, hash TEXT NOT NULL, actor TEXT NOT NULL, correlation TEXT NOT NULL,
        body TEXT NOT NULL, PRIMARY KEY (seq, digest, hash)
      ) STRICT, WITHOUT ROWID`);
  }

  /** Reads all that can be read. Yields how many bytes that were. @param reader undefined when SQLite cannot open the log */
  *read(dataDir: string, reader: SqliteReader | undefined): Generator<number> {
    let rows = 0;
    let bytes = 0;
    const insert = this.#found.prepare('INSERT OR IGNORE INTO found VALUES (?, ?, ?, ?, ?, ?)');
    this.#found.exec('BEGIN');
    for (const raw of all(dataDir, reader)) {
      const record = parsed(raw);
      if (!record) continue;
      insert.run(
        record.seq,
        hash('sha256', raw.body, 'hex'),
        raw.hash,
        record.actor,
        record.correlation,
        raw.body,
      );
      rows += 1;
      bytes += raw.body.length;
      if (rows % STEP === 0) yield bytes;
    }
    this.#found.exec('COMMIT');
  }

  /**
   * The records that the chain proves, in order; `missing` is complete when it has ended. One that can be read, and whose
   * content nothing proves because the record before is lost with its hash, counts as missing: it may have been changed.
   *
   * @param from where the log begins
   * @param begin the hash that its first record is chained to, where it is known
   * @param to the newest record that is known to have been there
   */
  *records(from: number, begin: string | undefined, to: number): Generator<Salvaged> {
    let known = from <= 1 ? [CHAIN_START] : [begin].filter((hash) => hash !== undefined);
    let lost: { from: number; reason: string } | undefined;
    const newest = this.#found.prepare('SELECT max(seq) AS seq FROM found').get()?.seq;
    const last = Math.max(to, Number(newest ?? 0));
    for (let seq = from; seq <= last; seq += 1) {
      const versions = this.#versions(seq);
      const chosen = this.#proven(versions, known, seq);
      if (chosen) {
        if (lost) this.missing.push({ ...lost, to: seq - 1 });
        const { previous, ...record } = chosen;
        yield lost ? { ...record, previous } : record;
        lost = undefined;
        known = [record.hash];
        continue;
      }
      const reason = reasonOf(versions, known);
      if (lost?.reason !== reason) {
        if (lost) this.missing.push({ ...lost, to: seq - 1 });
        lost = { from: seq, reason };
      }
      // Its content is lost; its hash may still be what the next one is chained to.
      known = versions.map((version) => version.hash);
    }
    if (lost) this.missing.push({ ...lost, to: last });
  }

  close(): void {
    this.#found.close();
  }

  /** A version whose hash, as it was stored or as the next record proves it, fits a known hash of the record before. */
  #proven(
    versions: readonly RawRecord[],
    known: readonly string[],
    seq: number,
  ): (Salvaged & { previous: string }) | undefined {
    for (const previous of known) {
      const fitting = versions.find(({ body, hash }) => chainHash(previous, body) === hash);
      if (fitting) return { ...fitting, previous };
    }
    const next = this.#versions(seq + 1);
    for (const previous of known) {
      for (const version of versions) {
        const hash = chainHash(previous, version.body);
        if (next.some((one) => chainHash(hash, one.body) === one.hash)) return { ...version, hash, previous };
      }
    }
    return undefined;
  }

  #versions(seq: number): RawRecord[] {
    const rows = this.#found.prepare('SELECT * FROM found WHERE seq = ?').all(seq);
    return rows.map(({ actor, correlation, body, hash }) => ({
      seq,
      actor: String(actor),
      correlation: String(correlation),
      body: String(body),
      hash: String(hash),
    }));
  }
}

function reasonOf(versions: readonly RawRecord[], known: readonly string[]): string {
  if (versions.length === 0) return 'it cannot be read';
  return known.length === 0
    ? 'nothing proves its content, because the record before it is lost'
    : 'its content does not fit its hash';
}

function* all(dataDir: string, reader: SqliteReader | undefined): Generator<RawRecord> {
  if (reader) yield* readable(reader);
  const size = pageSizeOf(logFile(dataDir));
  for (const pageSize of size === undefined ? PAGE_SIZES : [size])
    yield* recordsInPages(logFile(dataDir), pageSize);
}

/** What SQLite reads, up to the first fault; the pages have the rest. */
function* readable(reader: SqliteReader): Generator<RawRecord> {
  try {
    for (const page of reader.pages()) yield* page;
  } catch (error) {
    if (!isCoded(error)) throw error;
  }
}

function parsed({ seq, body }: RawRecord): { seq: number; actor: string; correlation: string } | undefined {
  try {
    return parseRecord(seq, body);
  } catch (error) {
    if (!isCoded(error)) throw error;
    return undefined;
  }
}
