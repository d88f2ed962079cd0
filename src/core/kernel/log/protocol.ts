/** One transaction: rows from `firstSeq` on, and what belongs to them. */
export interface CommitRequest {
  readonly id: number;
  readonly firstSeq: number;
  /** Actor, correlation and body of each record, one after another: flat, because it is cloned between threads. */
  readonly rows: readonly string[];
  readonly blobs: readonly (readonly [key: string, body: Uint8Array])[];
  readonly saving?: SavingPart;
  /** Records up to this one go, a slice at a time. */
  readonly prune?: number;
  /** Blobs that must not be read by anybody any more. */
  readonly shred?: readonly string[];
}

/** What goes with a transaction beside records. */
export type Chore = Pick<CommitRequest, 'saving' | 'prune' | 'shred'>;

/** What came of it. */
export interface Done {
  /** The checkpoint that became valid. */
  readonly saved?: Saved | undefined;
  /** Whether records are left to be deleted, or the write-ahead log still has what was shredded. */
  readonly more?: boolean | undefined;
}

/** A part of a checkpoint: the saved states of some actors; with `finish` it becomes valid. */
export interface SavingPart {
  /** The record after which the actors were so. */
  readonly seq: number;
  /** Actor and state of each, one after another. */
  readonly rows: readonly string[];
  /** Stands in the last part alone. */
  readonly finish?: {
    /** The blobs that are still needed; absent: none is dropped. */
    readonly keep?: readonly string[];
    /** Save also the actors that have not changed, so that nothing older is needed. */
    readonly full: boolean;
  };
}

/** What a finished checkpoint holds. */
export interface Saved {
  readonly count: number;
  readonly digest: string;
}

export type CommitReply =
  | { readonly id: number; readonly ok: true; readonly ms: number; readonly done: Done }
  | { readonly id: number; readonly ok: false; readonly reason: string };
