/** Settings; times in milliseconds, sizes in bytes. */
export interface SnapshotJobInput {
  readonly kind: 'snapshot' | 'volume';
  /** How many of the newest are kept. */
  readonly keepNewest?: number;
  /** Or for how many days each is kept. */
  readonly keepDays?: number;
  /** Without a good one for so long, a person is told. */
  readonly staleMs: number;
  /** What one usually has; far from it is a finding. Without it, the one before, once that has a MiB. */
  readonly usualBytes?: number;
  /** What a time that passed without a run means: it is made up for, or told. */
  readonly missed: 'catch-up' | 'report';
  /** Until a run that failed is tried again, twice at most. */
  readonly retryMs: number;
}

export interface Fingerprinted {
  readonly id: number | string;
  readonly fingerprint: string;
}

/** A backup that was made and found in the list afterwards, with what it must reproduce. */
export interface Backup {
  readonly name: string;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly size: number;
  /** Exact, before; absent of a volume copy. */
  readonly count?: number;
  /** Exact, afterwards; absent when nothing was written meanwhile. */
  readonly countAfter?: number;
  readonly seeds?: readonly Fingerprinted[];
  readonly samples?: readonly Fingerprinted[];
  /** Of the store that made it. */
  readonly version?: string;
}

/** A file of our shape as the store lists it. */
export interface ListedBackup {
  readonly name: string;
  /** From its name, epoch milliseconds. */
  readonly at: number;
  readonly size: number;
}

export interface Run {
  readonly op: 'make' | 'prune';
  readonly at: number;
  readonly by: 'schedule' | 'command' | 'catch-up';
  /** Who waits for the answer. */
  readonly request?: string | undefined;
  readonly tries: number;
  readonly made?: Backup;
}

export interface SnapshotJobContext extends SnapshotJobInput {
  /** Newest first. */
  readonly good: readonly Backup[];
  /** Ids of the points that are kept so that a restore can be proven. */
  readonly seeds: readonly (number | string)[];
  readonly run?: Run | undefined;
  /** What the last prune took away. */
  readonly doomed: readonly string[];
  /** When it was first watched: nothing is stale before it could have been made. */
  readonly since?: number;
  /** When the last run that was due began. */
  readonly lastRunAt?: number;
  readonly fault?: string | undefined;
  readonly isStale: boolean;
  /** How many of our shape there were when it last looked. */
  readonly listed: number;
  /** Good ones that were gone then, and that nobody here deleted. */
  readonly vanished: readonly string[];
  /** What is wrong with the store's deployment in its cluster. */
  readonly deployment: readonly string[];
}

export type SnapshotJobEvent =
  | {
      readonly type: 'REQUESTED';
      readonly at: number;
      readonly by: 'schedule' | 'command';
      readonly request?: string;
    }
  | { readonly type: 'PRUNE_REQUESTED'; readonly at: number; readonly request?: string }
  /** At a start and every hour. `due`: when the schedule last wanted a run. */
  | { readonly type: 'WATCHED'; readonly at: number; readonly due: number }
  | { readonly type: 'SEEDED'; readonly ids: readonly (number | string)[] }
  /** The store's deployment, and the backups of its volume, in the cluster. */
  | { readonly type: 'LOOKED_AT'; readonly findings: readonly string[] }
  | { readonly type: 'MADE'; readonly backup: Backup }
  /** There is nothing to back up (yet). */
  | { readonly type: 'NOTHING_THERE'; readonly reason: string }
  | { readonly type: 'LISTED'; readonly at: number; readonly listed: readonly ListedBackup[] }
  | { readonly type: 'PRUNED'; readonly deleted: readonly string[] }
  | { readonly type: 'effect.failed'; readonly effect: string; readonly message: string }
  | { readonly type: 'effect.lost'; readonly effect: string };

export interface BackupParams {
  readonly kind: SnapshotJobInput['kind'];
}
export interface PruneParams extends BackupParams {
  readonly names: readonly string[];
}
