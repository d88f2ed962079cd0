import { statfsSync, statSync } from 'node:fs';
import { type ClockJump, timeByPresentClock } from '../../kernel/clock-jumps.ts';
import type { Json } from '../../kernel/json.ts';
import type { SqliteReader } from '../../kernel/log/sqlite-reader.ts';
import { sizeText } from '../size.ts';
import { archivesIn, totalBytes } from './archive-files.ts';
import { newestBefore } from './plan.ts';
import type { RetentionSettings } from './settings.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** What growth is computed from. Sizes in bytes. */
export interface Storage {
  readonly live: number;
  readonly archives: number;
  /** How many bytes the live log gains a day; undefined while it is younger than an hour. */
  readonly aDay: number | undefined;
  /** Epoch milliseconds since the oldest record of the live log. */
  readonly ageMs: number;
  /** What an archive holds of what it took from the live log; undefined before the first. */
  readonly ratio: number | undefined;
  /** Free on the disk of the live log and of the archives; `shared` when that is one disk. */
  readonly free: { readonly live: number; readonly archives: number; readonly shared: boolean };
}

/** What comes first, and in how many days: the limits, from when on the oldest archive goes, or a full disk. */
export interface Outlook {
  readonly first: 'limit' | 'disk' | 'never' | 'unknown';
  readonly days?: number;
}

/**
 * Foretells when space runs out at the present growth. The live log grows until it reaches a limit; from then on the
 * archives grow, by what compression leaves. Before there is an archive they are taken to grow as fast as the live log.
 */
export function outlook(storage: Storage, settings: RetentionSettings): Outlook {
  const { live, archives, aDay, ageMs, ratio = 1, free } = storage;
  if (aDay === undefined) return { first: 'unknown' };
  if (aDay <= 0) return { first: 'never' };
  const { keepBytes = Number.POSITIVE_INFINITY, olderThanMs = Number.POSITIVE_INFINITY } = settings;
  const untilFull = Math.max(0, Math.min((keepBytes - live) / aDay, (olderThanMs - ageMs) / DAY_MS));
  if (free.live < untilFull * aDay) return { first: 'disk', days: free.live / aDay };
  const archiveADay = aDay * ratio;
  const room = free.shared ? free.live - untilFull * aDay : free.archives;
  const untilDisk = untilFull + room / archiveADay;
  const { keepArchiveBytes = Number.POSITIVE_INFINITY } = settings;
  const untilLimit = untilFull + Math.max(0, keepArchiveBytes - archives) / archiveADay;
  return untilLimit <= untilDisk ? { first: 'limit', days: untilLimit } : { first: 'disk', days: untilDisk };
}

/**
 * Measures a log and its archives. The growth is that of the last day, or of the log's life when that is shorter.
 *
 * @param now epoch milliseconds
 * @param jumps of the wall clock
 */
export function measureStorage(
  reader: SqliteReader,
  dataDir: string,
  { folder }: RetentionSettings,
  now: number,
  jumps: readonly ClockJump[],
): Storage {
  const [first, last] = [reader.firstSeq(), reader.lastSeq()];
  const live = reader.usedBytes();
  const oldest = first === 0 ? now : timeByPresentClock(reader.record(first).at, first, jumps);
  const span = Math.min(DAY_MS, now - oldest);
  const since = first === 0 ? 0 : last - newestBefore(reader, now - span, jumps);
  const bytesARecord = live / Math.max(1, last - first + 1);
  const files = archivesIn(folder);
  const archives = totalBytes(files);
  const archived = files.reduce((sum, { from, to }) => sum + to - from + 1, 0);
  return {
    live,
    archives,
    aDay: span < HOUR_MS ? undefined : (since * bytesARecord * DAY_MS) / span,
    ageMs: now - oldest,
    ratio: archived > 0 ? archives / (archived * bytesARecord) : undefined,
    free: freeSpace(dataDir, folder),
  };
}

function freeSpace(dataDir: string, folder: string): Storage['free'] {
  const elsewhere = statSync(folder, { throwIfNoEntry: false });
  const free = (path: string) => {
    const { bavail, bsize } = statfsSync(path);
    return bavail * bsize;
  };
  const live = free(dataDir);
  const shared = elsewhere === undefined || elsewhere.dev === statSync(dataDir).dev;
  return { live, archives: shared ? live : free(folder), shared };
}

/**
 * The fact of health pages and of `holdfast status`.
 *
 * @param now epoch milliseconds
 * @param jumps of the wall clock: growth counts from the time that passed
 * @param problem why nothing is archived, although a limit may be passed
 */
export function storageFact(
  reader: SqliteReader,
  dataDir: string,
  settings: RetentionSettings,
  now: number,
  jumps: readonly ClockJump[] = [],
  problem?: string,
): Json {
  const storage = measureStorage(reader, dataDir, settings, now, jumps);
  const next = outlook(storage, settings);
  const { live, archives, aDay, free } = storage;
  const text = [
    aDay === undefined
      ? 'growth a day unknown: the log is younger than an hour'
      : `grows ${sizeText(aDay)} a day`,
    `live ${sizeText(live)}${settings.keepBytes === undefined ? '' : ` of ${sizeText(settings.keepBytes)}`}`,
    `archives ${sizeText(archives)}${settings.keepArchiveBytes === undefined ? '' : ` of ${sizeText(settings.keepArchiveBytes)}`}`,
    outlookText(next, settings),
    `${sizeText(free.live)} of the disk are free`,
    ...(problem === undefined ? [] : [`nothing is archived: ${problem}`]),
  ];
  return {
    text: text.join('; '),
    liveBytes: live,
    archiveBytes: archives,
    bytesADay: aDay === undefined ? 'unknown' : Math.round(aDay),
    freeBytes: free.live,
    ...(problem !== undefined && { problem }),
    next: next.first,
    ...(next.days !== undefined && { days: Math.round(next.days * 10) / 10 }),
  };
}

function outlookText({ first, days = 0 }: Outlook, settings: RetentionSettings): string {
  const when =
    days < 1 ? 'within a day' : days > 3_650 ? 'in more than ten years' : `in about ${Math.round(days)} days`;
  switch (first) {
    case 'disk':
      return settings.keepArchiveBytes === undefined
        ? `the disk is full ${when}, and no limit holds before that`
        : `the disk is full ${when}, before the limits are reached`;
    case 'limit':
      return `the limits are reached ${when}: from then on the oldest archive is deleted`;
    case 'never':
      return 'it does not grow';
    case 'unknown':
      return 'when space runs out is unknown';
  }
}
