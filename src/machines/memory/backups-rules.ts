/**
 * The backups of the memory store without their statechart: settings, context, events, and the rules by which a backup is
 * good, missed, stale, of an unusual size or expired. Times are epoch milliseconds, sizes bytes.
 */
import { isAhead } from '../backup-age.ts';
import { type ClockSet, moved, movedAll } from '../clock-set.ts';

/** Settings for one kind of backup. */
export interface BackupSettings {
  readonly kind: 'snapshot' | 'volume';
  /** How many of the newest are kept. */
  readonly keepNewest?: number;
  /** Or for how many days each is kept. */
  readonly keepDays?: number;
  /** An alert is raised when the newest good backup is older than this, milliseconds. */
  readonly staleMs: number;
  /** The usual size. Without it, a backup is compared with the previous one if that has at least a MiB. */
  readonly usualBytes?: number;
  /** Whether a missed run is made later, or only reported. */
  readonly missed: 'catch-up' | 'report';
  /** How long after a failed run the next attempt begins, milliseconds. */
  readonly retryMs: number;
}

export interface PointFingerprint {
  readonly id: number | string;
  readonly fingerprint: string;
}

/** What a collection held: `list` is the SHA-256 of a file with the fingerprints of all points. */
export interface BackupContent {
  /** All of them in one number; absent where points were written meanwhile. */
  readonly digest?: string;
  /** Points that were written meanwhile. */
  readonly written: number;
  /** The vector parameters, canonical JSON. */
  readonly vectors: string;
  readonly list: string;
}

/** A backup that was made and found in the list afterwards, or seen there, with what a restore of it must reproduce. */
export interface Backup {
  readonly name: string;
  /** When it was made. */
  readonly at: number;
  readonly size: number;
  /** When it was first seen, if somebody else made it. */
  readonly seenAt?: number;
  /** Exact count of points before it was made; absent where its content is not recorded. */
  readonly count?: number;
  /** Exact count afterwards, when it differs. */
  readonly countAfter?: number;
  /** What it must hold; absent where nobody recorded it. */
  readonly content?: BackupContent;
  /** SHA-256 of its file. */
  readonly sha256?: string;
  /** Why its file could not be read. */
  readonly unread?: string;
  /** The seeds that were there and not written meanwhile. */
  readonly seeds?: readonly PointFingerprint[];
  /** Version of the store that made it. */
  readonly version?: string;
}

/** A backup file as the store lists it; only files with our names are listed. */
export interface ListedBackup {
  readonly name: string;
  /** From its name. */
  readonly at: number;
  readonly size: number;
}

/** The run that is under way, or the last one. */
export interface BackupRun {
  readonly operation: 'make' | 'prune';
  readonly at: number;
  readonly by: 'schedule' | 'command' | 'catch-up';
  /** The request that gets the answer; a run without one is answered to nobody. */
  readonly request?: string | undefined;
  /** Failed attempts before this one. */
  readonly retries: number;
  readonly made?: Backup;
}

export interface BackupsContext extends BackupSettings {
  /** Newest first. */
  readonly good: readonly Backup[];
  /** Those that somebody else made, as they were when they were first seen. */
  readonly seen?: readonly Backup[];
  /** Ids of the points by which an operator recognises the collection. */
  readonly seeds: readonly (number | string)[];
  readonly run?: BackupRun | undefined;
  /** Names that the last prune deleted. */
  readonly deleted: readonly string[];
  /** When it was first checked: nothing is stale before it could have been made. */
  readonly since?: number;
  /** When the last run began that was due. */
  readonly lastRunAt?: number;
  /** The clock was set since then. */
  readonly isClockSet?: boolean;
  /**
   * When each listed backup was made or first listed, from when the clock was set for the first time: names have the time
   * of the clock as it was then.
   */
  readonly datedAt?: Readonly<Record<string, number>>;
  /** Why the last run failed. */
  readonly fault?: string | undefined;
  readonly isStale: boolean;
  /** How many backups the store listed last. */
  readonly listed: number;
  /** Good backups that were missing in that list though nobody deleted them here. */
  readonly vanished: readonly string[];
  /** Findings about the store's deployment in its cluster. */
  readonly deployment: readonly string[];
}

export type BackupsEvent =
  | {
      readonly type: 'REQUESTED';
      readonly at: number;
      readonly by: 'schedule' | 'command';
      readonly request?: string | undefined;
    }
  | { readonly type: 'PRUNE_REQUESTED'; readonly at: number; readonly request?: string | undefined }
  /** Sent every hour, and after a start. `due` is when the schedule last required a run, `dueBefore` when the time before. */
  | { readonly type: 'CHECK'; readonly at: number; readonly due: number; readonly dueBefore?: number }
  | ClockSet
  | { readonly type: 'SEEDED'; readonly ids: readonly (number | string)[] }
  | { readonly type: 'DEPLOYMENT_CHECKED'; readonly findings: readonly string[] }
  | { readonly type: 'MADE'; readonly backup: Backup }
  /** Backups of others that nobody had recorded; `gone`: names of recorded ones that are no longer there. */
  | { readonly type: 'SEEN'; readonly backups: readonly Backup[]; readonly gone?: readonly string[] }
  /** The store holds nothing to back up yet. */
  | { readonly type: 'NOTHING_TO_BACK_UP'; readonly reason: string }
  | { readonly type: 'LISTED'; readonly at: number; readonly listed: readonly ListedBackup[] }
  | { readonly type: 'PRUNED'; readonly deleted: readonly string[] }
  | { readonly type: 'effect.failed'; readonly effect: string; readonly message: string }
  | { readonly type: 'effect.lost'; readonly effect: string };

export interface BackupParams {
  readonly kind: BackupSettings['kind'];
}
export interface PruneParams extends BackupParams {
  readonly names: readonly string[];
}

/** What XState gives to guards and actions. */
export interface Args {
  readonly context: BackupsContext;
  readonly event: BackupsEvent;
}

const DAY_MS = 86_400_000;
/** A size this many times larger or smaller than usual is reported. */
const UNUSUAL_FACTOR = 4;
/** The next backup is not compared with a smaller one, because small ones vary too much. */
const SMALLEST_MEASURE = 1024 * 1024;
/** A run that is due may begin this much later. */
const GRACE_MS = 5 * 60_000;
/** Points grew by this factor while the backups did not. */
const GROWTH_FACTOR = 1.25;

/** Sorts the newest first; when two were made in the same second, the one with the greater number is newer. */
export const newestFirst = (a: ListedBackup, b: ListedBackup): number =>
  b.at - a.at || (a.name < b.name ? 1 : -1);

/**
 * The backups to delete: those beyond the newest `keepNewest`, or older than `keepDays`. The newest backup and the newest
 * good one are always kept, so that a series of bad backups cannot remove the last good one.
 *
 * @param now epoch milliseconds
 * @returns names
 */
export function expiredBackups(
  listed: readonly ListedBackup[],
  good: readonly Backup[],
  { keepNewest, keepDays }: Pick<BackupSettings, 'keepNewest' | 'keepDays'>,
  now: number,
): string[] {
  const sorted = [...listed].sort(newestFirst);
  const lastGood = sorted.find(({ name }) => good.some((one) => one.name === name))?.name;
  return sorted
    .filter(({ name, at }, index) => {
      if (index === 0 || name === lastGood) return false;
      const isBeyondCount = keepNewest !== undefined && index >= keepNewest;
      return isBeyondCount || (keepDays !== undefined && at < now - keepDays * DAY_MS);
    })
    .map(({ name }) => name);
}

/**
 * The listed backups with the times at which they were made, by the clock as it is set now. As long as the clock was never
 * set, their names have them. Then what nobody knew before counts as made when it was first listed: it is kept for longer.
 *
 * @param now epoch milliseconds
 */
export function datedBackups(
  listed: readonly ListedBackup[],
  { datedAt }: Pick<BackupsContext, 'datedAt'>,
  now: number,
): readonly ListedBackup[] {
  return datedAt ? listed.map((one) => ({ ...one, at: datedAt[one.name] ?? now })) : listed;
}

/** The clock was set: no backup becomes older or younger by it. */
export function followClock({ context, event }: Args): Partial<BackupsContext> {
  if (event.type !== 'CLOCK_SET') return {};
  const { byMs } = event;
  const dated = { ...Object.fromEntries(context.good.map(({ name, at }) => [name, at])), ...context.datedAt };
  return {
    ...moved(context, byMs, 'since', 'lastRunAt'),
    ...(context.lastRunAt !== undefined && { isClockSet: true }),
    datedAt: movedAll(dated, byMs),
    good: context.good.map((one) => ({ ...one, ...moved(one, byMs, 'at') })),
  };
}

/** The size that the next backup is compared with; undefined when there is none. */
export function usualSize(
  good: readonly Backup[],
  { usualBytes }: Pick<BackupSettings, 'usualBytes'>,
): number | undefined {
  if (usualBytes !== undefined) return usualBytes;
  const previous = good[0]?.size ?? 0;
  return previous >= SMALLEST_MEASURE ? previous : undefined;
}

export function isUnusualSize(size: number, usual: number | undefined): boolean {
  return usual !== undefined && (size > usual * UNUSUAL_FACTOR || size < usual / UNUSUAL_FACTOR);
}

/**
 * Whether the run that was due did not happen.
 *
 * @param due when the schedule last required a run
 * @param lastRun when the last run began; 0 without one
 * @param earlyMs how much earlier than due it may have begun, because the clock was set since
 */
export function isMissed(now: number, due: number, lastRun: number, earlyMs = 0): boolean {
  if (now - due < GRACE_MS) return false;
  // The clock may have been ahead when it last ran, so a time in the future proves nothing.
  return lastRun < due - earlyMs || isAhead(lastRun, now);
}

/**
 * Findings about backups that were all made successfully, as sentences for a person.
 *
 * @param version the version that the live store reports, if it answered
 */
export function backupFindings(
  {
    good,
    listed,
    keepNewest,
    vanished,
    now,
  }: {
    readonly good: readonly Backup[];
    /** How many backups the store lists. */
    readonly listed: number;
    readonly keepNewest?: number | undefined;
    /** Good backups that somebody else deleted. */
    readonly vanished: readonly string[];
    /** Epoch milliseconds. */
    readonly now: number;
  },
  version?: string,
): string[] {
  const [newest] = good;
  const oldest = good.at(-1);
  const isOnlyGood = good.length === 1 && keepNewest !== undefined && keepNewest > 1 && listed >= keepNewest;
  const findings: string[] = [];
  if (vanished.length > 0) {
    findings.push(
      `somebody else deleted the good backup ${vanished.join(', ')}: another retention is at work`,
    );
  }
  const ahead = good.filter(({ at }) => isAhead(at, now)).map(({ name }) => name);
  if (ahead.length > 0) {
    findings.push(`dated in the future, and so not counted as recent: ${ahead.join(', ')}`);
  }
  if (isOnlyGood) {
    findings.push(
      `only ${newest?.name} of the ${listed} kept backups is recorded as good: the retention removes the others`,
    );
  }
  if (newest && oldest && hasNotGrown(newest, oldest)) {
    findings.push(
      `they do not grow: ${oldest.count} points in ${oldest.size} bytes, then ${newest.count} in ${newest.size}`,
    );
  }
  if (
    newest?.version !== undefined &&
    version !== undefined &&
    release(newest.version) !== release(version)
  ) {
    findings.push(
      `${newest.name} is of version ${newest.version}, and the store has ${version}: take a new snapshot`,
    );
  }
  return findings;
}

const hasNotGrown = (newest: Backup, oldest: Backup): boolean =>
  newest.count !== undefined &&
  oldest.count !== undefined &&
  newest.count > oldest.count * GROWTH_FACTOR &&
  newest.size <= oldest.size;

/** A store reads snapshots of its own release, for example `1.19`. */
const release = (version: string): string => version.split('.', 2).join('.');
