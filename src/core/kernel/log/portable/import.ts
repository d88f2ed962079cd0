import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { setImmediate as turn } from 'node:timers/promises';
import { KernelError } from '../../errors/kernel-error.ts';
import { chainHash } from '../chain-hash.ts';
import { writeHead } from '../head.ts';
import { checkRecord, goesBack } from '../record.ts';
import { indexAll } from '../record-index.ts';
import { digestOf } from '../saved-states.ts';
import { INSERT_RECORD, logFile, openForWriting } from '../schema.ts';
import { insertSignature, type LogKey, openLogKey, type Signature } from '../signing.ts';
import { readLines, sync } from './file.ts';
import { type PortableHeader, parseHeader, parseLine } from './format.ts';

export interface ImportOptions {
  /** Called when the file has proved whole and no log is there yet: for what must be older than the log, such as keys. */
  readonly prepare?: () => void;
  /** Gets the bytes that were read and the part that is done, 0 to 1. */
  readonly onProgress?: (bytes: number, part?: number) => void;
  readonly signal?: AbortSignal;
}

/** Lines of a portable file, from wherever they come. */
export interface LineSource {
  /** Named in errors: a file, or a stream. */
  readonly name: string;
  readonly lines: AsyncIterable<{ readonly text: string; readonly line: number }>;
  /** Somebody still writes it: it has no last line, and the signature of a record may stand behind later ones. */
  readonly isOpen?: boolean;
}

/** How much of the index stays in memory: it is filled in the order of the records, which is not its own. */
const CACHE_KIB = 32 * 1024;

/**
 * Makes a data folder's log from a portable file (C6), or from lines that come from elsewhere. Every record is checked
 * against the one before; the log appears whole or not at all.
 *
 * @param dataDir made when it is not there; it must not hold a log
 * @throws HF_LOG_EXISTS; HF_PORTABLE_EMPTY the lines hold no record; HF_PORTABLE_FILTERED the file holds some actors only; HF_PORTABLE_*; HF_LOG_CORRUPT
 */
export async function importLog(
  from: string | LineSource,
  dataDir: string,
  { prepare, onProgress, signal }: ImportOptions = {},
): Promise<Ingested> {
  if (existsSync(logFile(dataDir))) throw new KernelError('HF_LOG_EXISTS', { dir: dataDir });
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const source = sourceOf(from);
  const work = mkdtempSync(join(dataDir, 'import-'));
  try {
    const db = openForWriting(work);
    // Nobody sees it before it is whole: it needs no journal, and is synced once, at the end.
    db.exec(`PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -${CACHE_KIB}`);
    let ingested: Ingested;
    let head: Signature;
    try {
      const whole = ({ complete }: Ingested['header']) => {
        if (!complete) throw new KernelError('HF_PORTABLE_FILTERED', { file: source.name });
      };
      ingested = await ingest(db, source, whole, { chained: true, onProgress, signal });
      const { header, records, end } = ingested;
      if (records === 0) throw new KernelError('HF_PORTABLE_EMPTY', { from: header.range.from, to: end.seq });
      prepare?.();
      head = adopt(db, openLogKey(dataDir), ingested.header);
      db.exec('PRAGMA journal_mode = WAL');
    } finally {
      db.close();
    }
    await sync(logFile(work));
    if (existsSync(logFile(dataDir))) throw new KernelError('HF_LOG_EXISTS', { dir: dataDir });
    renameSync(logFile(work), logFile(dataDir));
    await sync(dataDir);
    writeHead(dataDir, head);
    return ingested;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function sourceOf(from: string | LineSource): LineSource {
  return typeof from === 'string' ? { name: from, lines: readLines(from) } : from;
}

/** The folder's own key vouches for what was imported, as it was when it came. */
function adopt(db: DatabaseSync, key: LogKey, { range, chainStart }: Ingested['header']): Signature {
  const newest = db.prepare('SELECT seq, hash FROM records ORDER BY seq DESC LIMIT 1').get();
  const head = key.sign('record', Number(newest?.seq), String(newest?.hash));
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

const TURN = 2_000;

/** The result of reading a portable file. */
export interface Ingested {
  readonly header: PortableHeader;
  readonly records: number;
  /** Its last record. */
  readonly end: End;
}

/** Where a log ends. */
export interface End {
  readonly seq: number;
  readonly hash: string;
}

export interface IngestOptions {
  /** Whether every record is checked against the one before. */
  readonly chained: boolean;
  /** Where the file before ends, when it goes on from there. */
  readonly after?: End | undefined;
  readonly onProgress?: ImportOptions['onProgress'] | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Reads a portable file, or lines that come from elsewhere, into the tables of a log, in one transaction, a line at a time.
 *
 * @param accept looks at the header first, and throws when it wants none of it
 * @throws HF_PORTABLE_* the file is not whole; HF_LOG_GAP it does not go on from the file before; HF_LOG_CORRUPT naming the first record that is not what was written
 */
export async function ingest(
  db: DatabaseSync,
  from: string | LineSource,
  accept: (header: PortableHeader) => void,
  options: IngestOptions,
): Promise<Ingested> {
  db.exec('BEGIN');
  try {
    const ingested = await fill(db, sourceOf(from), accept, options);
    db.exec('COMMIT');
    return ingested;
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

async function fill(
  db: DatabaseSync,
  { name: file, lines: source, isOpen = false }: LineSource,
  accept: (header: PortableHeader) => void,
  { chained, after, onProgress, signal }: IngestOptions,
): Promise<Ingested> {
  const insertRecord = db.prepare(INSERT_RECORD);
  const insertLink = db.prepare('INSERT INTO links (seq, hash) VALUES (?, ?)');
  const insertState = db.prepare('INSERT OR REPLACE INTO snapshots (actor, seq, body) VALUES (?, ?, ?)');
  let header: PortableHeader | undefined;
  let newest = { seq: 0, hash: '' };
  let time = 0;
  let records = 0;
  let ended = false;
  let lines = 0;
  let bytes = 0;
  for await (const { text, line } of source) {
    lines = line;
    bytes += text.length + 1;
    if (line % TURN === 0) {
      onProgress?.(bytes, header?.complete ? records / (header.range.to - header.range.from + 1) : undefined);
      await turn();
      signal?.throwIfAborted();
    }
    if (!header) {
      header = parseHeader(text, file);
      accept(header);
      newest = { seq: header.range.from - 1, hash: header.chainStart };
      if (after) goesOn(header, file, after);
      else insertLink.run(header.range.from, header.chainStart);
      insertMeta(db, header);
      continue;
    }
    const damaged = (reason: string) => new KernelError('HF_PORTABLE_DAMAGED', { file, line, reason });
    if (ended) throw damaged('there is more behind the end');
    const parsed = parseLine(text, file, line);
    switch (parsed.kind) {
      case 'state':
        if (records > 0) throw damaged('a state stands behind records');
        if (!after) insertState.run(parsed.ref, header.range.from - 1, parsed.body);
        break;
      case 'record': {
        const { body, value, hash, previous } = parsed;
        const record = checkRecord(newest.seq + 1, value, chained);
        const { seq, at, actor, correlation } = record;
        if (goesBack(record, time)) {
          const reason = `its time lies ${time - at} ms before that of the record before`;
          throw new KernelError('HF_LOG_CORRUPT', { seq, reason });
        }
        time = at;
        if (seq <= newest.seq) throw damaged(`record ${seq} stands behind record ${newest.seq}`);
        if (seq > newest.seq + 1) {
          if (previous === undefined || header.complete) {
            throw new KernelError('HF_LOG_CORRUPT', { seq: newest.seq + 1, reason: 'it is missing' });
          }
          insertLink.run(seq, previous);
        }
        const link = seq === newest.seq + 1 ? newest.hash : previous;
        if (chained && chainHash(link ?? '', body) !== hash) {
          const reason = 'its hash does not fit what stands before it';
          throw new KernelError('HF_LOG_CORRUPT', { seq, reason });
        }
        if (after && seq <= after.seq) {
          if (seq === after.seq && hash !== after.hash) {
            throw new KernelError('HF_LOG_CORRUPT', { seq, reason: 'the file before has another' });
          }
          newest = { seq, hash };
          records += 1;
          break;
        }
        try {
          insertRecord.run(seq, actor, correlation, body, hash);
        } catch (error) {
          const reason = error instanceof Error ? error.message : String(error); // a full disk, say
          throw new KernelError('HF_LOG_WRITE', { reason }, { cause: error });
        }
        newest = { seq, hash };
        records += 1;
        break;
      }
      case 'signature':
        if (parsed.signature.seq !== newest.seq && !(isOpen && isOfRecord(db, parsed.signature)))
          throw damaged('a signature stands apart from its record');
        insertSignature(db, parsed.signature);
        break;
      case 'end':
        if (
          parsed.end.records !== records ||
          parsed.end.seq !== newest.seq ||
          parsed.end.hash !== newest.hash
        ) {
          throw damaged(`it tells of ${parsed.end.records} records up to ${parsed.end.seq}, not of these`);
        }
        ended = true;
        break;
    }
  }
  if (!header) {
    throw new KernelError('HF_PORTABLE_FOREIGN', { file, reason: 'it is empty' });
  }
  if (!ended && !isOpen) {
    const reason = `the end is missing; the file is cut off behind record ${newest.seq}`;
    throw new KernelError('HF_PORTABLE_DAMAGED', { file, line: lines + 1, reason });
  }
  indexAll(db);
  if (after) return { header, records, end: newest };
  const before = header.range.from - 1;
  const { digest } = digestOf(db, before, true);
  db.prepare(`INSERT INTO checkpoints (seq, "full", digest, signature) VALUES (?, 1, ?, '')`).run(
    before,
    digest,
  );
  return { header, records, end: newest };
}

function isOfRecord(db: DatabaseSync, { seq, hash }: Signature): boolean {
  return db.prepare('SELECT 1 FROM records WHERE seq = ? AND hash = ?').get(seq, hash) !== undefined;
}

function insertMeta(db: DatabaseSync, { complete }: PortableHeader): void {
  const insert = db.prepare('INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)');
  if (!complete) insert.run('partial', 'true');
}

/** An archive may begin earlier than the one before ends: a prune that was killed is done again from its begin. */
function goesOn({ complete, range, chainStart }: PortableHeader, file: string, after: End): void {
  const gap = (reason: string) => new KernelError('HF_LOG_GAP', { source: file, reason });
  if (!complete) throw gap('it holds some actors only');
  if (range.from > after.seq + 1)
    throw gap(`its first record is ${range.from}, and ${after.seq + 1} is the next`);
  if (range.to <= after.seq) throw gap(`its last record is ${range.to}, and ${after.seq} stands before it`);
  if (range.from === after.seq + 1 && chainStart !== after.hash) {
    const reason = `what it is chained to is not record ${after.seq} as the file before has it`;
    throw new KernelError('HF_LOG_CORRUPT', { seq: range.from, reason });
  }
}
