import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { HoldfastError } from '../../errors/index.ts';
import { logFile, openForWriting } from '../schema.ts';
import { type Ingested, ingest } from './ingest.ts';

/**
 * Makes a data folder's log from a portable file (C6). Every record is checked against the one before; the log
 * appears whole or not at all.
 *
 * @param dataDir made when it is not there; it must not hold a log
 * @throws HF_LOG_EXISTS; HF_PORTABLE_FILTERED the file holds some actors only; HF_PORTABLE_*; HF_LOG_CORRUPT
 */
export async function importLog(file: string, dataDir: string, signal?: AbortSignal): Promise<Ingested> {
  if (existsSync(logFile(dataDir))) throw new HoldfastError('HF_LOG_EXISTS', { dir: dataDir });
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const work = mkdtempSync(join(dataDir, 'import-'));
  try {
    const db = openForWriting(work);
    let ingested: Ingested;
    try {
      const whole = ({ complete }: Ingested['header']) => {
        if (!complete) throw new HoldfastError('HF_PORTABLE_FILTERED', { file });
      };
      ingested = await ingest(db, file, whole, { chained: true, signal });
    } finally {
      db.close(); // the last connection moves the write-ahead log into the database
    }
    if (existsSync(logFile(dataDir))) throw new HoldfastError('HF_LOG_EXISTS', { dir: dataDir });
    renameSync(logFile(work), logFile(dataDir));
    return ingested;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
