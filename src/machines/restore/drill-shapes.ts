import type { Alert } from '../effect.ts';

/** `a`: a snapshot of the store itself; `b`: a copy of its volume. */
export type DrillPath = 'a' | 'b';

/** The phases that can fail, in their order. */
export type Phase = 'choosing' | 'preparing' | 'recovering' | 'verifying';

/** A drill as it was requested; times are epoch milliseconds. */
export interface Drill {
  readonly id: string;
  readonly path: DrillPath;
  /** The snapshot or backup to restore; the newest good one unless set. */
  readonly snapshot?: string | undefined;
  /** Who requested it, e.g. `command`, `schedule`. */
  readonly by: string;
  readonly at: number;
}

/** The backup that is restored. */
export interface Source {
  readonly kind: 'snapshot' | 'volume' | 'backup';
  readonly name: string;
  /** As its store gives it. */
  readonly madeAt?: string;
  /** Bytes. */
  readonly size?: number;
  /** Points that it must hold, if that is recorded. */
  readonly count?: number;
  /** Set when somebody else made it: when its content was recorded, epoch milliseconds. */
  readonly seenAt?: number;
}

/** Points by id: how many, and the first of them. */
export interface PointList {
  readonly total: number;
  readonly ids: readonly (number | string)[];
}

/** What the live store held while its volume was copied, as the plugin of the store records it. */
export interface Copied {
  /** Exact. */
  readonly count: number;
  readonly countAfter?: number | undefined;
  readonly digest?: string | undefined;
  readonly written: number;
  readonly vectors: string;
  readonly list: string;
}

/** Whether something is as it was recorded; `unknown` of what could not be looked at, with the reason. */
export interface Likeness {
  readonly state: 'same' | 'different' | 'unknown';
  readonly reason?: string;
}

/** The result of comparing a restored collection. Counts are exact unless they say otherwise. */
export interface Report {
  readonly ok: boolean;
  /** One sentence. */
  readonly verdict: string;
  /** The count that the restored collection must have, and which reading of the live store decides. */
  readonly expected: {
    readonly least: number;
    readonly most: number;
    /** `made`, `seen` and `copied`: recorded when the backup was made, first seen or copied; `live`: nothing is recorded. */
    readonly by: 'made' | 'seen' | 'copied' | 'live';
    /** When that was, epoch milliseconds. */
    readonly at?: number;
  };
  readonly restored: { readonly count: number; readonly approximate: number };
  readonly live: { readonly count: number; readonly approximate: number };
  /** The bytes of the snapshot's file. */
  readonly file?: Likeness;
  /** Every restored point, with id, payload and vectors. */
  readonly points: {
    /** Those that were compared and are as expected. */
    readonly same: number;
    readonly missing: PointList;
    readonly unexpected: PointList;
    readonly changed: PointList;
    /** Written while the record was made, and now in neither of the two states that were read: nobody can say what they were. */
    readonly unsettled: PointList;
    /** The digest over all points, where one is recorded. */
    readonly digest?: Likeness;
    /** Why no list of the points could be compared. */
    readonly unlisted?: string;
  };
  readonly seeds: {
    readonly checked: number;
    readonly missing: readonly (number | string)[];
    readonly changed: readonly (number | string)[];
  };
  /** What was written into the live store since, which is no fault of the backup. */
  readonly drift: { readonly added: PointList; readonly deleted: PointList; readonly changed: PointList };
  /** Written in the live store during the comparison with it, so they prove nothing. */
  readonly moving: PointList;
  /** The vector parameters, where they are not as expected. */
  readonly vectors?: { readonly expected: string; readonly restored: string };
}

export interface Failure {
  readonly phase: Phase;
  readonly code?: string;
  readonly reason: string;
}

/** A drill that has ended, its clean-up included. */
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

/** Settings; a missing one has its default. */
export interface DrillSettings {
  /** Milliseconds until a clean-up that failed is tried again; it doubles with each failure up to an hour. */
  readonly retryMs?: number;
}

export interface DrillContext {
  readonly retryMs: number;
  /** The drill that runs. */
  readonly drill?: Drill | undefined;
  readonly source?: Source | undefined;
  /** URL of its scratch instance. */
  readonly url?: string | undefined;
  readonly place?: string | undefined;
  /** What the live store held while its volume was copied. */
  readonly copied?: Copied | undefined;
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

export type DrillEvent =
  | ({ readonly type: 'REQUESTED' } & Drill)
  | { readonly type: 'CANCEL'; readonly reason: string }
  /** The runtime has started; `leftovers` are ids of the scratch instances that it found. */
  | ({ readonly type: 'STARTED'; readonly leftovers: readonly string[] } & DrillSettings)
  | { readonly type: 'CHOSEN'; readonly source: Source }
  | {
      readonly type: 'PREPARED';
      readonly place: string;
      readonly url?: string;
      readonly copied?: Copied;
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

/** Parameters of the effects `restore.choose`, `.prepare`, `.recover` and `.verify`: the results of the steps before. */
export interface StepParams {
  readonly drill: Drill;
  readonly source?: Source;
  readonly url?: string;
  readonly copied?: Copied;
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

export const scratchLeft = ({ drill, leftovers }: DrillContext, reason: string): Alert => ({
  name: 'restore.scratch_left',
  severity: 'warning',
  text: `A scratch instance of the memory store could not be removed, and is tried again: ${reason}`,
  labels: { scratch: [...(drill ? [drill.id] : []), ...leftovers].join(',') },
});
