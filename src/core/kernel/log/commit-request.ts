// The messages between the log and its writer thread. They are cloned between the two.

/** Asks for one transaction: the records from `firstSeq` on, and what belongs to them. */
export interface CommitRequest {
  readonly id: number;
  readonly firstSeq: number;
  /** Actor, correlation and body of each record, one after another: a flat list is cloned fastest. */
  readonly rows: readonly string[];
  readonly blobs: readonly (readonly [key: string, body: Uint8Array])[];
  readonly saving?: CheckpointPart;
  /** Delete the records up to this one, a slice at a time. */
  readonly prune?: number;
  /** Make these blobs unreadable for ever. */
  readonly shred?: readonly string[];
}

/** Work on the log that goes with a transaction beside records. */
export type Maintenance = Pick<CommitRequest, 'saving' | 'prune' | 'shred'>;

/** The result of a transaction. */
export interface CommitResult {
  /** The checkpoint that became valid. */
  readonly saved?: SavedCheckpoint | undefined;
  /** Whether records are left to be deleted, or the write-ahead log still has what was shredded. */
  readonly more?: boolean | undefined;
}

/** A part of a checkpoint: the saved states of some actors; with `finish` it becomes valid. */
export interface CheckpointPart {
  /** The record after which the actors had these states. */
  readonly seq: number;
  /** Actor and state of each, one after another. */
  readonly rows: readonly string[];
  /** In the last part only. */
  readonly finish?: {
    /** The blobs that are still needed; when absent, none is dropped. */
    readonly keep?: readonly string[];
    /** Save the actors too that have not changed, so that no older checkpoint is needed. */
    readonly full: boolean;
  };
}

/** What a finished checkpoint holds. */
export interface SavedCheckpoint {
  readonly count: number;
  readonly digest: string;
}

export type CommitReply =
  | { readonly id: number; readonly ok: true; readonly ms: number; readonly done: CommitResult }
  | { readonly id: number; readonly ok: false; readonly reason: string };
