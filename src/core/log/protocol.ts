/** One transaction: rows from `firstSeq` on, and what belongs to them. */
export interface CommitRequest {
  readonly id: number;
  readonly firstSeq: number;
  /** Actor, correlation and body of each record, one after another: flat, because it is cloned between threads. */
  readonly rows: readonly string[];
  readonly blobs: readonly (readonly [key: string, body: Uint8Array])[];
  readonly snapshots?: {
    readonly rows: readonly (readonly [actor: string, seq: number, body: string])[];
    readonly keep: readonly string[];
  };
}

export type CommitReply =
  | { readonly id: number; readonly ok: true; readonly ms: number }
  | { readonly id: number; readonly ok: false; readonly reason: string };
