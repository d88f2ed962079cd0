/** A record on its way to the writer: its columns, the body already JSON. */
export type Row = readonly [actor: string, correlation: string, body: string];

/** One transaction: rows from `firstSeq` on, and what belongs to them. */
export interface CommitRequest {
  readonly id: number;
  readonly firstSeq: number;
  readonly rows: readonly Row[];
  readonly blobs: readonly (readonly [key: string, body: Uint8Array])[];
  readonly snapshots?: {
    readonly rows: readonly (readonly [actor: string, seq: number, body: string])[];
    readonly keep: readonly string[];
  };
}

export type CommitReply =
  | { readonly id: number; readonly ok: true; readonly ms: number }
  | { readonly id: number; readonly ok: false; readonly reason: string };
