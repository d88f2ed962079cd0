import type { Alert } from '../effect.ts';

/** `a`: a snapshot of the store itself; `b`: a copy of its volume. */
export type DrillPath = 'a' | 'b';

/** The phases that can fail, in their order. */
export type Phase = 'choosing' | 'preparing' | 'recovering' | 'verifying';

/** What a drill was asked for; times are epoch milliseconds. */
export interface Drill {
  readonly id: string;
  readonly path: DrillPath;
  /** A snapshot or backup by its name, in the place of the newest good one. */
  readonly snapshot?: string;
  /** Who asked, e.g. `command`, `schedule`. */
  readonly by: string;
  readonly at: number;
}

/** What is restored. */
export interface Source {
  readonly kind: 'snapshot' | 'volume' | 'backup';
  readonly name: string;
  /** As its store tells it. */
  readonly madeAt?: string;
  /** Bytes. */
  readonly size?: number;
  /** Points that it must hold, where that was recorded when it was made. */
  readonly count?: number;
}

/** Points by id: how many, and the first of them. */
export interface PointList {
  readonly total: number;
  readonly ids: readonly (number | string)[];
}

/** Between which an exact count must lie: more than one number where writes went on meanwhile. */
export interface Bounds {
  readonly least: number;
  readonly most: number;
}

/** What the comparison of a restored collection found. Counts are exact unless they say otherwise. */
export interface Report {
  readonly ok: boolean;
  /** One sentence. */
  readonly verdict: string;
  /** What the restored count had to be, and who says so. */
  readonly expected: Bounds & { readonly from: 'record' | 'copy' | 'live' };
  readonly restored: { readonly count: number; readonly approximate: number };
  readonly live: { readonly count: number; readonly approximate: number };
  readonly seeds: {
    readonly checked: number;
    readonly missing: readonly (number | string)[];
    readonly changed: readonly (number | string)[];
  };
  /** How many points were compared by payload, and of how many the vector too. */
  readonly compared: { readonly payloads: number; readonly vectors: number };
  /** Against the live store as it is now. */
  readonly differences: {
    readonly onlyLive: PointList;
    readonly onlyRestored: PointList;
    readonly changed: PointList;
    /** Written in the live store while it was compared: says nothing of the restore. */
    readonly moving: PointList;
  };
  /** The vector parameters of both, where they differ. */
  readonly vectors?: { readonly live: string; readonly restored: string };
}

export interface Failure {
  readonly phase: Phase;
  readonly code?: string;
  readonly reason: string;
}

/** One drill, when all of it is over. */
export interface Result extends Drill {
  readonly outcome: 'completed' | 'failed';
  readonly endedAt: number;
  readonly source?: Source;
  /** Where it was restored to, for people. */
  readonly place?: string;
  readonly report?: Report;
  readonly failure?: Failure;
  /** How often the clean-up failed before it worked. */
  readonly cleanFailures: number;
}

/** Times in milliseconds; a left-out one is the default. */
export interface RestoreSettings {
  /** Until a clean-up that failed is tried again; it doubles with each failure up to an hour. */
  readonly retryMs?: number;
}

export interface RestoreContext {
  readonly retryMs: number;
  /** The drill that runs. */
  readonly drill?: Drill | undefined;
  readonly source?: Source | undefined;
  /** Where its scratch instance is. */
  readonly url?: string | undefined;
  readonly place?: string | undefined;
  /** What the live store held while its volume was copied. */
  readonly copied?: Bounds | undefined;
  readonly report?: Report | undefined;
  readonly failure?: Failure | undefined;
  /** Scratch instances that an earlier run left behind. */
  readonly leftovers: readonly string[];
  readonly cleanFailures: number;
  /** Why the clean-up failed last. */
  readonly cleanReason?: string | undefined;
  /** Oldest first, the last few. */
  readonly results: readonly Result[];
}

export type RestoreEvent =
  | ({ readonly type: 'ASKED' } & Drill)
  | { readonly type: 'CANCEL'; readonly reason: string }
  /** The runtime has started; `leftovers` are the scratch instances that it found. */
  | ({ readonly type: 'STARTED'; readonly leftovers: readonly string[] } & RestoreSettings)
  | { readonly type: 'CHOSEN'; readonly source: Source }
  | {
      readonly type: 'PREPARED';
      readonly place: string;
      readonly url?: string;
      readonly copied?: Bounds;
    }
  | { readonly type: 'RECOVERED'; readonly url: string }
  | { readonly type: 'VERIFIED'; readonly report: Report }
  | { readonly type: 'CLEANED'; readonly at: number; readonly removed: readonly string[] }
  | {
      readonly type: 'effect.failed';
      readonly effect: string;
      readonly code?: string;
      readonly message: string;
    }
  | { readonly type: 'effect.lost'; readonly effect: string };

/** Parameters of the effects `restore.choose`, `.prepare`, `.recover` and `.verify`: what is known by then. */
export interface StepParams {
  readonly drill: Drill;
  readonly source?: Source;
  readonly url?: string;
  readonly copied?: Bounds;
}

/** Parameters of the effect `restore.clean`. */
export interface CleanParams {
  readonly ids: readonly string[];
}

export interface ReplyParams {
  readonly status: number;
  readonly body: { readonly id: string; readonly phase?: string };
}

export const drillFailed = ({ id, path }: Drill, { phase, reason }: Failure): Alert => ({
  name: 'restore.drill_failed',
  severity: 'critical',
  text: `A restore drill of the memory store failed while ${phase}: ${reason}`,
  labels: { drill: id, path, phase },
});

export const scratchLeft = ({ drill, leftovers }: RestoreContext, reason: string): Alert => ({
  name: 'restore.scratch_left',
  severity: 'warning',
  text: `A scratch instance of the memory store could not be removed, and is tried again: ${reason}`,
  labels: { scratch: [...(drill ? [drill.id] : []), ...leftovers].join(',') },
});
