import { type Place, referenceTime } from '../../core/host/history/place.ts';
import { type ArchiveFile, archivesIn } from '../../core/host/retention/archive-files.ts';
import { notedSettings } from '../../core/host/retention/settings.ts';
import { KernelError } from '../../core/kernel/errors/kernel-error.ts';
import { logFile } from '../../core/kernel/log/schema.ts';
import { SqliteReader } from '../../core/kernel/log/sqlite-reader.ts';
import { isReadable } from '../../core/kernel/ownership.ts';
import { parsePlace } from './place.ts';

/** So many archives are read for one record: the one that holds it, and those behind it, where its consequences are. */
const MOST = 4;

interface Context {
  readonly dataDir: string;
  readonly note: (line: string) => void;
}

/**
 * Finds what a command must read when no source is named: the data folder, and before it the archives that hold what is
 * older than the folder's first record.
 *
 * @param places texts such as a record's number or a time, as the command got them; the oldest decides
 * @param whole whether everything from there on is read; otherwise a few archives are enough
 * @returns the data folder alone when it holds all of that, or no archive does
 */
export async function sourcesFrom(
  places: readonly (string | undefined)[],
  { dataDir, note }: Context,
  whole = false,
): Promise<string[]> {
  const given = places.filter((text) => text !== undefined);
  const archives = given.length === 0 ? [] : archivesOf(dataDir);
  if (archives.length === 0) return [dataDir];
  const live = new SqliteReader(dataDir);
  let older: ArchiveFile[];
  try {
    const now = referenceTime(live);
    const wanted = given.map((text) => parsePlace(text, 'The place', now));
    const first = live.firstSeq();
    if (wanted.every((place) => isAfter(place, live, first))) return [dataDir];
    older = chained(archives, first);
    const from = await firstNeeded(older, wanted);
    older = older.slice(from);
  } finally {
    live.close();
  }
  if (whole || older.length <= MOST) return [...older.map(({ file }) => file), dataDir];
  const read = older.slice(0, MOST);
  note(`Records up to ${read.at(-1)?.to} are read; name the archives and the folder to read further.`);
  return read.map(({ file }) => file);
}

/** All archives that go on to the folder without a gap, in order, and the folder. */
export function allSources(dataDir: string): string[] {
  const archives = archivesOf(dataDir);
  if (archives.length === 0) return [dataDir];
  const live = new SqliteReader(dataDir);
  try {
    return [...chained(archives, live.firstSeq()).map(({ file }) => file), dataDir];
  } finally {
    live.close();
  }
}

/** @throws HF_LOG_UNREADABLE this user may not look into the data folder */
function archivesOf(dataDir: string): readonly ArchiveFile[] {
  return isReadable(logFile(dataDir), dataDir) ? archivesIn(notedSettings(dataDir).folder) : [];
}

function isAfter(place: Place, live: SqliteReader, first: number): boolean {
  if (first <= 1) return true;
  return 'seq' in place ? place.seq >= first : place.at >= live.record(first).at;
}

/** The archives that lead to a record without a gap, oldest first. */
function chained(archives: readonly ArchiveFile[], first: number): ArchiveFile[] {
  const found: ArchiveFile[] = [];
  let next = first;
  for (const archive of archives.toReversed()) {
    if (archive.from >= next || archive.to < next - 1) continue;
    found.unshift(archive);
    next = archive.from;
  }
  return found;
}

/** @returns the place of the newest archive that begins at or before all places; the oldest when none does */
async function firstNeeded(archives: readonly ArchiveFile[], wanted: readonly Place[]): Promise<number> {
  for (let index = archives.length - 1; index > 0; index -= 1) {
    const archive = archives[index];
    if (archive && (await begins(archive, wanted))) return index;
  }
  return 0;
}

async function begins({ file, from }: ArchiveFile, wanted: readonly Place[]): Promise<boolean> {
  let beganAt: number | undefined;
  for (const place of wanted) {
    if ('seq' in place && from > place.seq) return false;
    beganAt ??= 'at' in place ? await beginOf(file) : undefined;
    if ('at' in place && (beganAt ?? 0) > place.at) return false;
  }
  return true;
}

/** @returns the time of its first record, epoch milliseconds */
async function beginOf(file: string): Promise<number> {
  // Most commands read no archive.
  const [{ readLines }, { parseHeader }] = await Promise.all([
    import('../../core/kernel/log/portable/file.ts'),
    import('../../core/kernel/log/portable/format.ts'),
  ]);
  for await (const { text } of readLines(file)) return parseHeader(text, file).time.from;
  throw new KernelError('HF_PORTABLE_FOREIGN', { file, reason: 'it is empty' });
}
