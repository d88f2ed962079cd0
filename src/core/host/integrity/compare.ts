import { join } from 'node:path';
import { findWalDamage } from '../../kernel/sqlite-wal.ts';
import { digests, filesIn, isLiving, isSameFile, type NotedFile, statOf } from './files.ts';
import type { Finding } from './findings.ts';
import { DAMAGED_LEDGER, emptyLedger, type Ledger, loadLedger, saveLedger } from './ledger.ts';

/** The most bytes that a stop or a start digests, because somebody waits for it; larger databases have checks of their own. */
const AT_ONCE = 64 * 1024 * 1024;

/**
 * Compares a data folder with what the last stop left, before anything of it is opened: not one byte may differ then.
 * After a kill only the write-ahead logs can be checked. Quick: files that look as they were noted wait for the check in
 * the background, but for databases, which look different as soon as they are opened.
 *
 * @returns what differs; it is kept in `checksums.json`, too, until a check has recorded it
 */
export function compareBeforeStart(dataDir: string): readonly Finding[] {
  const { ledger, found } = compareWithStop(dataDir);
  const files = new Map(ledger?.files);
  // What changed without a new time goes on being damaged; the rest is noted anew as it is.
  for (const { file, kind } of found) if (kind !== 'damaged') files.delete(file);
  saveLedger(dataDir, { files, stopped: false, read: ledger?.read ?? new Set(), found });
  return found;
}

/** The same without changing anything, for a folder on which nothing runs. */
export function compareWithStop(dataDir: string): {
  /** Undefined when it is damaged itself. */
  readonly ledger: Ledger | undefined;
  readonly found: readonly Finding[];
} {
  const ledger = loadLedger(dataDir);
  if (!ledger) return { ledger, found: [DAMAGED_LEDGER] };
  const found = ledger.stopped ? differencesSinceStop(dataDir, ledger) : damagedWals(dataDir);
  return { ledger, found: [...ledger.found, ...found] };
}

function differencesSinceStop(dataDir: string, { files }: Ledger): Finding[] {
  let left = AT_ONCE;
  return Array.from(files).flatMap(([path, noted]) => {
    const now = statOf(join(dataDir, path));
    if (now && looksSame(now, noted) && !isLiving(path)) return [];
    left -= now?.size ?? 0;
    return (left >= 0 && differenceSinceStop(dataDir, path, noted)) || [];
  });
}

function damagedWals(dataDir: string): Finding[] {
  return filesIn(dataDir).flatMap((path): Finding[] => {
    const damage = path.endsWith('-wal') ? findWalDamage(join(dataDir, path)) : undefined;
    if (!damage) return [];
    const reason = `part ${damage.frame} of ${damage.frames} of this write-ahead log does not fit its checksum; what was written from there on is lost`;
    return [{ kind: 'damaged', file: path, reason }];
  });
}

type Looks = Omit<NotedFile, 'digest'>;

function looksSame(a: Looks, b: Looks): boolean {
  return isSameFile(a, b) && a.size === b.size && a.modified === b.modified;
}

function differenceSinceStop(dataDir: string, path: string, noted: NotedFile): Finding | undefined {
  const file = join(dataDir, path);
  const now = statOf(file);
  if (!now) return { kind: 'missing', file: path, reason: 'the last stop left it here' };
  const read = endOf(digests(file, noted.size));
  if (read?.noted.digest === noted.digest) return undefined;
  return differs(path, noted, now, 'the last stop left another content');
}

function differs(path: string, noted: NotedFile, now: Looks, changed: string): Finding {
  return looksSame(now, noted)
    ? { kind: 'damaged', file: path, reason: 'its content is another one, and nothing wrote it' }
    : { kind: 'changed', file: path, reason: changed };
}

/** Notes what a stop leaves, when everything is closed. What a check has noted and looks the same is not read again. */
export function noteAtStop(dataDir: string): void {
  const { files, read, found } = loadLedger(dataDir) ?? emptyLedger();
  const now = new Map<string, NotedFile>();
  let left = AT_ONCE;
  for (const path of filesIn(dataDir)) {
    const noted = files.get(path);
    const stat = statOf(join(dataDir, path));
    if (noted && stat && looksSame(stat, noted) && !isLiving(path)) {
      now.set(path, { ...noted, made: stat.made });
      continue;
    }
    // Whoever reads a database that was closed makes an empty write-ahead log, or removes it.
    if (stat?.size === 0 && path.endsWith('-wal')) continue;
    left -= stat?.size ?? 0;
    if (left < 0) continue;
    const digested = endOf(digests(join(dataDir, path), 0));
    if (digested) now.set(path, digested.noted);
  }
  saveLedger(dataDir, { files: now, stopped: true, read, found });
}

/**
 * Compares files with what an earlier check noted, and notes them anew. Yields bytes.
 *
 * @param overwritten files that change in place besides databases
 */
export function* compareFiles(
  dataDir: string,
  ledger: Ledger,
  overwritten: readonly string[],
): Generator<number, { readonly findings: Finding[]; readonly files: number }> {
  const findings: Finding[] = [];
  const paths = filesIn(dataDir).filter((path) => !overwritten.includes(path));
  const present = new Set(paths);
  for (const path of ledger.files.keys()) {
    if (!present.has(path)) ledger.files.delete(path);
  }
  for (const path of paths) {
    const noted = ledger.files.get(path);
    if (isLiving(path)) {
      const finding = yield* compareLiving(dataDir, path, ledger);
      if (finding) findings.push(finding);
      continue;
    }
    const digested = yield* digests(join(dataDir, path), noted?.size ?? 0);
    if (!digested) continue;
    const { prefix, noted: now } = digested;
    // Replaced as a whole: this is how Holdfast and editors write.
    if (!noted || !isSameFile(noted, now) || prefix === noted.digest) {
      ledger.files.set(path, now);
      continue;
    }
    const finding = differs(path, noted, now, 'it was overwritten in place, which Holdfast never does');
    findings.push(finding);
    // What was changed is noted as it is now, so that it is reported once; what is damaged, until it is replaced.
    if (finding.kind === 'changed') ledger.files.set(path, now);
  }
  return { findings, files: paths.length };
}

/** The times of a file system move in steps of some milliseconds: what was written just now may be written again unseen. */
const QUIET_MS = 2_000;

/** A database may change at any time; but one that nobody has written since it was noted must be the same. */
function* compareLiving(
  dataDir: string,
  path: string,
  { files }: Ledger,
): Generator<number, Finding | undefined> {
  const noted = files.get(path);
  const now = (yield* digests(join(dataDir, path), 0))?.noted;
  if (now && noted && looksSame(now, noted) && now.digest !== noted.digest)
    return differs(path, noted, now, '');
  if (now && Date.now() - now.modified > QUIET_MS) files.set(path, now);
  else files.delete(path);
  return undefined;
}

/** Runs a generator to its end without pauses. @returns what it returns */
function endOf<T>(steps: Generator<number, T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}
