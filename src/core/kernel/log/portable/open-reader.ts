import { statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { KernelError } from '../../errors/kernel-error.ts';
import { indexAll } from '../record-index.ts';
import { INSERT_RECORD, logTables } from '../schema.ts';
import { insertSignature } from '../signing.ts';
import { SqliteReader } from '../sqlite-reader.ts';
import type { End, Ingested, LineSource } from './import.ts';

/**
 * Opens what holds a log: a data folder, a portable file, or several that go on where the one before ends (archives
 * in order, then the folder they came from). Files are read once into a database without a name, which SQLite keeps in
 * its cache, moves to the disk when it is large, and forgets when it is closed: so a file is searched by actor,
 * correlation and number as fast as a folder, and memory stays flat.
 *
 * @throws HF_LOG_MISSING, HF_LOG_FORMAT, HF_LOG_GAP, HF_PORTABLE_*, HF_LOG_CORRUPT
 */
export async function openReader(
  source: string | readonly string[],
  signal?: AbortSignal,
): Promise<SqliteReader> {
  const [first = '', ...rest] = typeof source === 'string' ? [source] : source;
  if (rest.length === 0 && !isFile(first)) return new SqliteReader(first);
  // A data folder needs neither decompression nor the format of files.
  const { ingest } = await import('./import.ts');
  const db = temporaryDatabase();
  try {
    let end: End | undefined;
    for (const path of [first, ...rest]) {
      end = isFile(path)
        ? (await ingest(db, path, () => {}, { chained: false, signal, after: end })).end
        : copyFolder(db, path, end);
    }
    return new SqliteReader(db);
  } catch (error) {
    db.close();
    throw error;
  }
}

/**
 * Reads lines that do not come from a file into a database without a name. Every record is checked against the one before.
 *
 * @throws HF_PORTABLE_*, HF_LOG_CORRUPT, and whatever the lines throw
 */
export async function openLines(
  source: LineSource,
  signal?: AbortSignal,
): Promise<Ingested & { readonly reader: SqliteReader }> {
  const { ingest } = await import('./import.ts');
  const db = temporaryDatabase();
  try {
    const ingested = await ingest(db, source, () => {}, { chained: true, signal });
    return { ...ingested, reader: new SqliteReader(db) };
  } catch (error) {
    db.close();
    throw error;
  }
}

/** SQLite forgets it when it is closed. */
function temporaryDatabase(): DatabaseSync {
  const db = new DatabaseSync('');
  db.exec('PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF');
  logTables(db);
  return db;
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

/** What a folder holds behind the archives that were taken from it. */
function copyFolder(db: DatabaseSync, dir: string, after: End | undefined): End {
  const reader = new SqliteReader(dir);
  try {
    if (!after) {
      const reason = 'a folder stands last, behind the files that were taken from it';
      throw new KernelError('HF_LOG_GAP', { source: dir, reason });
    }
    const first = reader.firstSeq();
    if (first > after.seq + 1) {
      const reason = `its first record is ${first}, and ${after.seq + 1} is the next`;
      throw new KernelError('HF_LOG_GAP', { source: dir, reason });
    }
    if (reader.hashBefore(after.seq + 1) !== after.hash) {
      const reason = `what it is chained to is not record ${after.seq} as the file before has it`;
      throw new KernelError('HF_LOG_CORRUPT', { seq: after.seq + 1, reason });
    }
    const insert = db.prepare(INSERT_RECORD);
    let end = after;
    db.exec('BEGIN');
    for (const page of reader.pages({ from: after.seq + 1 })) {
      for (const { seq, actor, correlation, body, hash } of page) {
        insert.run(seq, actor, correlation, body, hash);
        end = { seq, hash };
      }
    }
    indexAll(db);
    for (const signature of reader.signatures(after.seq + 1)) insertSignature(db, signature);
    db.exec('COMMIT');
    return end;
  } finally {
    reader.close();
  }
}
