import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { CoreError } from '../../errors/core-error.ts';
import { logFile, openForWriting } from '../schema.ts';
import { insertSignature } from '../signatures.ts';
import { writeHead } from '../signed-head.ts';
import { type LogKey, openLogKey, type Signature } from '../signing.ts';
import { sync } from './file.ts';
import { type Ingested, ingest } from './ingest.ts';

export interface ImportOptions {
  /** Called when the file has proved whole and no log is there yet: for what must be older than the log, such as keys. */
  readonly prepare?: () => void;
  readonly signal?: AbortSignal;
}

/** The indices are filled in the order of the records, which is not theirs: as much of them stays in memory. */
const CACHE_KIB = 32 * 1024;

/**
 * Makes a data folder's log from a portable file (C6). Every record is checked against the one before; the log
 * appears whole or not at all.
 *
 * @param dataDir made when it is not there; it must not hold a log
 * @throws HF_LOG_EXISTS; HF_PORTABLE_FILTERED the file holds some actors only; HF_PORTABLE_*; HF_LOG_CORRUPT
 */
export async function importLog(
  file: string,
  dataDir: string,
  { prepare, signal }: ImportOptions = {},
): Promise<Ingested> {
  if (existsSync(logFile(dataDir))) throw new CoreError('HF_LOG_EXISTS', { dir: dataDir });
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const work = mkdtempSync(join(dataDir, 'import-'));
  try {
    const db = openForWriting(work);
    // Nobody sees it before it is whole: it needs no journal, and is synced once, at the end.
    db.exec(`PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -${CACHE_KIB}`);
    let ingested: Ingested;
    let head: Signature;
    try {
      const whole = ({ complete }: Ingested['header']) => {
        if (!complete) throw new CoreError('HF_PORTABLE_FILTERED', { file });
      };
      ingested = await ingest(db, file, whole, { chained: true, signal });
      prepare?.();
      head = adopt(db, openLogKey(dataDir), ingested.header);
      db.exec('PRAGMA journal_mode = WAL');
    } finally {
      db.close();
    }
    await sync(logFile(work));
    if (existsSync(logFile(dataDir))) throw new CoreError('HF_LOG_EXISTS', { dir: dataDir });
    renameSync(logFile(work), logFile(dataDir));
    await sync(dataDir);
    writeHead(dataDir, head);
    return ingested;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** The folder's own key vouches for what was imported, as it was when it came. */
function adopt(db: DatabaseSync, key: LogKey, { range, chainStart }: Ingested['header']): Signature {
  const newest = db.prepare('SELECT seq, hash FROM records ORDER BY seq DESC LIMIT 1').get();
  const head = key.sign('record', newest?.seq as number, newest?.hash as string);
  insertSignature(db, head);
  const begin = key.sign('begin', range.from, chainStart);
  db.prepare('UPDATE links SET key = ?, signature = ? WHERE seq = ?').run(
    begin.key,
    begin.signature,
    begin.seq,
  );
  const before = range.from - 1;
  const digest = db.prepare('SELECT digest FROM checkpoints WHERE seq = ?').get(before)?.digest as string;
  const { signature } = key.sign('states', before, digest);
  db.prepare('UPDATE checkpoints SET signature = ? WHERE seq = ?').run(signature, before);
  return head;
}
