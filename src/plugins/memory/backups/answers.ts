/** The operations on backups of the running instance: their paths, and what they answer. */
import { z } from 'zod';
import type { PointId } from '../../../core/contracts/memory-store.ts';
import type { BackupKind } from './actor.ts';

/** The paths that `holdfast backup …` posts to. */
export const BACKUP_PATHS = {
  snapshot: '/memory/backup/snapshot',
  list: '/memory/backup/list',
  prune: '/memory/backup/prune',
  seed: '/memory/backup/seed',
  status: '/memory/backup/status',
  inspect: '/memory/backup/inspect',
} as const;

/** A snapshot that was made; its content is absent where nobody recorded it. */
export const snapshotAnswer = z.looseObject({
  name: z.string(),
  size: z.number(),
  count: z.number().optional(),
  seeds: z.array(z.unknown()).default([]),
  content: z.looseObject({ digest: z.string().optional(), written: z.number() }).optional(),
  sha256: z.string().optional(),
  unread: z.string().optional(),
  /** Names of older backups. */
  deleted: z.array(z.string()).default([]),
});
export type SnapshotAnswer = z.output<typeof snapshotAnswer>;

// Types and not interfaces, because only types count as JSON for the compiler.
export type ListedAnswer = {
  readonly kind: BackupKind;
  readonly name: string;
  /** ISO 8601. */
  readonly at: string;
  /** Bytes. */
  readonly size: number;
  /** Whether Holdfast recorded what it holds. */
  readonly recorded: boolean;
  /** When it was recorded, if somebody else made it, ISO 8601. */
  readonly seenAt?: string;
  readonly count?: number;
};
/** Newest first. */
export type ListAnswer = { readonly collection: string; readonly backups: readonly ListedAnswer[] };

export type PruneAnswer = {
  readonly dryRun: boolean;
  readonly deleted: Readonly<Partial<Record<BackupKind, readonly string[]>>>;
};

export type SeedAnswer = {
  readonly collection: string;
  readonly seeds: readonly PointId[];
  readonly count: number;
};

export type KindStatus = {
  readonly state: string;
  readonly lastGood?: {
    readonly name: string;
    readonly at: string;
    readonly size: number;
    readonly count?: number;
  };
  readonly lastDue: string;
  /** How many good ones there are. */
  readonly kept: number;
  readonly stale: boolean;
  readonly fault?: string;
  readonly findings: readonly string[];
};
/** The backups of a store's volume that its cluster makes, as far as they were seen. */
export type ClusterVolumeStatus = {
  readonly schedule: string;
  readonly newest?: { readonly name: string; readonly at: string };
  /** How many are recorded. */
  readonly recorded: number;
  /** The newest is too old. */
  readonly stale: boolean;
  /** Why nothing is known. */
  readonly unknown?: string;
  readonly findings: readonly string[];
};

/** `seeds`: how many seed points are kept; `clusterVolume` only of a store elsewhere. */
export type StatusAnswer = Readonly<Partial<Record<BackupKind, KindStatus>>> & {
  readonly clusterVolume?: ClusterVolumeStatus;
  readonly seeds: number;
};
