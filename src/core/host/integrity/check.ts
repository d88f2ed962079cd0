import { existsSync, mkdirSync, renameSync, statSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { isCoded } from '../../kernel/errors/holdfast-error.ts';
import { findDamage, type LogDamage } from '../../kernel/log/damage.ts';
import { checkPortable } from '../../kernel/log/portable/check.ts';
import { logFile } from '../../kernel/log/schema.ts';
import { findLogKey } from '../../kernel/log/signing.ts';
import { SqliteReader } from '../../kernel/log/sqlite-reader.ts';
import { compareWithWitness, readWitness } from '../../kernel/log/witnessed-heads.ts';
import { archivesIn } from '../retention/archive-files.ts';
import { compareFiles } from './compare.ts';
import { markRanges } from './damaged-ranges.ts';
import { filesIn, isDatabase, QUARANTINE, statOf } from './files.ts';
import { bounded, type DataCheckResult, type Finding } from './findings.ts';
import { DAMAGED_LEDGER, emptyLedger, type Ledger, loadLedger } from './ledger.ts';

/** The folders and files that a check reads. */
export interface CheckRequest {
  /** Absolute paths. */
  readonly dataDir: string;
  readonly archives: string;
  /** Files of the data folder that plugins overwrite in place, relative to it. */
  readonly overwritten: readonly string[];
  /** Absolute path of a file that gets the heads of the log, where there is one. */
  readonly witness?: string;
  /** Nothing is moved or marked: a look at a stopped instance, which records nothing. */
  readonly isTrial?: boolean;
}

/** What a check found, without its time, and the ledger, which is saved once the findings are recorded. */
export interface Checked {
  readonly result: Omit<DataCheckResult, 'at' | 'tookMs'>;
  readonly ledger: Ledger;
}

/**
 * Reads everything in a data folder and compares it with its checksums: every record, archive, signature and saved state
 * of the log, every page of other databases, and every other file with what was noted of it. Damaged archives are moved
 * aside; damaged ranges of the live log are named in a file. Yields the part that is done, 0 to 1.
 */
export async function* checkFolder({
  dataDir,
  archives,
  witness,
  overwritten,
  isTrial = false,
}: CheckRequest): AsyncGenerator<number, Checked> {
  const loaded = loadLedger(dataDir);
  const ledger = loaded ?? emptyLedger();
  const total = Math.max(1, sizeOf(dataDir));
  let bytes = 0;
  const files = compareFiles(dataDir, ledger, overwritten);
  let step = files.next();
  for (; !step.done; step = files.next()) {
    bytes += step.value;
    yield (0.5 * Math.min(bytes, total)) / total;
  }
  const findings = [...ledger.found, ...(loaded ? [] : [DAMAGED_LEDGER]), ...step.value.findings];
  for (const path of filesIn(dataDir).filter(isDatabase)) {
    if (join(dataDir, path) === logFile(dataDir)) continue;
    findings.push(...databaseFindings(dataDir, path));
    bytes += statOf(join(dataDir, path))?.size ?? 0;
    yield 0.5;
  }
  const log = readLog(dataDir);
  let part = log.next();
  for (; !part.done; part = log.next()) yield 0.5 + 0.3 * part.value;
  bytes += statOf(logFile(dataDir))?.size ?? 0;
  findings.push(...logFindings(part.value));
  if (!isTrial) markRanges(dataDir, part.value.ranges);
  if (witness !== undefined) findings.push(...(await witnessFindings(dataDir, witness)));
  const read = yield* checkArchives(dataDir, archives, ledger, isTrial);
  return {
    result: {
      files: step.value.files,
      bytes,
      records: part.value.records,
      archives: read.archives,
      ...bounded([...findings.filter(({ file }) => !read.moved.has(file)), ...read.findings]),
    },
    ledger: { ...ledger, found: [] },
  };
}

function sizeOf(dataDir: string): number {
  return filesIn(dataDir).reduce((sum, path) => sum + (statOf(join(dataDir, path))?.size ?? 0), 0);
}

/** What SQLite's own check says of a database that is not the log. */
function databaseFindings(dataDir: string, path: string): Finding[] {
  const finding = (reason: string): Finding => ({ kind: 'damaged', file: path, reason });
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(join(dataDir, path), { readOnly: true, timeout: 5_000 });
    const rows = db.prepare('PRAGMA integrity_check(5)').all();
    const texts = rows.map(({ integrity_check: text }) => String(text)).filter((text) => text !== 'ok');
    return texts.map(finding);
  } catch (error) {
    // Another process may hold it alone, or have removed it: that says nothing of its content.
    const code = ((error as { errcode?: number }).errcode ?? 0) & 0xff;
    const isDamaged = code === SQLITE_CORRUPT || code === SQLITE_NOTADB;
    return isDamaged ? [finding(error instanceof Error ? error.message : String(error))] : [];
  } finally {
    db?.close();
  }
}

const SQLITE_CORRUPT = 11;
const SQLITE_NOTADB = 26;

function* readLog(dataDir: string): Generator<number, LogDamage> {
  let reader: SqliteReader;
  try {
    reader = new SqliteReader(dataDir);
  } catch (error) {
    if (!isCoded(error)) throw error;
    return { records: 0, last: 0, ranges: [], others: [String(error.details.reason ?? error.what)] };
  }
  try {
    return yield* findDamage(reader, dataDir);
  } finally {
    reader.close();
  }
}

function logFindings({ ranges, others }: LogDamage): Finding[] {
  return [
    ...ranges.map(
      ({ from, to, reason }): Finding => ({ kind: 'damaged', file: 'log.db', reason, records: { from, to } }),
    ),
    ...others.map((reason): Finding => ({ kind: 'damaged', file: 'log.db', reason })),
  ];
}

/** Whether the past is still the one that went to the witness. */
async function witnessFindings(dataDir: string, file: string): Promise<Finding[]> {
  if (!existsSync(file)) return []; // its sender says when it cannot be reached
  let reader: SqliteReader | undefined;
  try {
    reader = new SqliteReader(dataDir);
    compareWithWitness(reader, await settledWitness(file), findLogKey(dataDir)?.text, file);
    return [];
  } catch (error) {
    if (!isCoded(error)) throw error;
    const { from, to } = error.details;
    const isRange = typeof from === 'number' && typeof to === 'number';
    return [
      { kind: 'damaged', file: 'log.db', reason: error.what, ...(isRange && { records: { from, to } }) },
    ];
  } finally {
    reader?.close();
  }
}

/** The heads in a witness; its sender may have made it this moment, and not have written yet. @throws HF_WITNESS_READ */
async function settledWitness(file: string): ReturnType<typeof readWitness> {
  try {
    return await readWitness(file);
  } catch (error) {
    if (!isCoded(error, 'HF_WITNESS_READ')) throw error;
    await delay(WITNESS_WRITTEN_MS);
    return readWitness(file);
  }
}

/** Longer than it takes to write a line, milliseconds. */
const WITNESS_WRITTEN_MS = 1_000;

interface ArchivesRead {
  readonly archives: number;
  readonly findings: readonly Finding[];
  /** Those that were moved aside, as they were called before. */
  readonly moved: ReadonlySet<string>;
}

async function* checkArchives(
  dataDir: string,
  folder: string,
  ledger: Ledger,
  isTrial: boolean,
): AsyncGenerator<number, ArchivesRead> {
  const archives = archivesIn(folder);
  const findings: Finding[] = [];
  const moved = new Set<string>();
  for (const [index, { file, from, to }] of archives.entries()) {
    const path = placeOf(dataDir, file);
    const digest = ledger.files.get(path)?.digest;
    const noted = `${path} ${digest}`;
    if (digest !== undefined && ledger.read.has(noted)) continue;
    const before = statSync(file, { throwIfNoEntry: false });
    try {
      const lines = checkPortable(file);
      for (let step = await lines.next(); !step.done; step = await lines.next())
        yield 0.8 + (0.2 * index) / archives.length;
      if (digest !== undefined) ledger.read.add(noted);
    } catch (error) {
      if (!isCoded(error)) throw error;
      const after = statSync(file, { throwIfNoEntry: false });
      // It was removed or replaced while it was read: the next check reads what is there then.
      if (!after || after.ino !== before?.ino || error.code === 'HF_PORTABLE_READ') continue;
      findings.push({
        kind: 'damaged',
        file: path,
        reason: String(error.details.reason ?? error.what),
        records: { from, to },
        ...(!isTrial && { movedTo: moveAside(dataDir, file) }),
      });
      moved.add(path);
      ledger.files.delete(path);
    }
  }
  return { archives: archives.length, findings, moved };
}

/** @returns where it is now; a disk of its own keeps it there, in a folder beside it */
function moveAside(dataDir: string, file: string): string {
  const name = `${basename(file)}.damaged`;
  for (const folder of [join(dataDir, QUARANTINE), join(file, '..', QUARANTINE)]) {
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      renameSync(file, join(folder, name));
      return placeOf(dataDir, join(folder, name));
    } catch {
      // Another disk: the next folder lies on the same one.
    }
  }
  return placeOf(dataDir, file);
}

/** A path as findings name it: relative in the data folder, absolute elsewhere. */
function placeOf(dataDir: string, file: string): string {
  const path = relative(dataDir, file);
  return path.startsWith('..') ? file : path;
}
