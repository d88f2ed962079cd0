import { statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { logTables } from '../schema.ts';
import { SqliteReader } from '../sqlite-reader.ts';
import { ingest } from './ingest.ts';

/**
 * Opens what holds a log: a data folder, or a portable file. A file is read once into a database without a name, which
 * SQLite keeps in its cache, moves to the disk when it is large, and forgets when it is closed: so a file is searched
 * by actor, story and number as fast as a folder, and memory stays flat.
 *
 * @throws HF_LOG_MISSING, HF_LOG_FORMAT, HF_PORTABLE_*, HF_LOG_CORRUPT
 */
export async function openReader(path: string, signal?: AbortSignal): Promise<SqliteReader> {
  if (!statSync(path, { throwIfNoEntry: false })?.isFile()) return new SqliteReader(path);
  const db = new DatabaseSync('');
  try {
    db.exec('PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF');
    logTables(db);
    await ingest(db, path, () => {}, { chained: false, signal });
    return new SqliteReader(db);
  } catch (error) {
    db.close();
    throw error;
  }
}
