import type { TableShape } from '../../../core/contracts/columnar-database.ts';
import type { SignalTable } from '../../../core/contracts/columnar-tables.ts';
import type { Encoding, Signal } from '../decode/decode.ts';

/** Rows of one table that are inserted together: written, read, inserted and forgotten as one. */
export interface Frame {
  /** Unique for ever, so that the database recognises a repeated insert. */
  readonly id: string;
  readonly table: SignalTable;
  readonly rows: number;
  /** When it was written, ms since the epoch. */
  readonly at: number;
  /** The layout of the writer of its rows. */
  readonly layout: string;
}

/** A body whose rows are written. */
export interface Taken {
  readonly id: number;
  /** Frames that hold its rows. */
  readonly frames: readonly string[];
  readonly rows: number;
  readonly refused: number;
  readonly reasons: Readonly<Record<string, number>>;
  readonly services: readonly string[];
}

/** Why nothing of a body was taken. */
export type Failure =
  | { readonly kind: 'invalid'; readonly reason: string }
  | { readonly kind: 'too-large' }
  | { readonly kind: 'full' }
  | { readonly kind: 'disk'; readonly reason: string }
  | { readonly kind: 'interrupted'; readonly reason: string };

/** Index in the shared integers: the number of the body that is being decoded, 0 for none. */
export const DECODING = 0;
/** Index in the shared integers: how many inserts are under way. */
export const INSERTING = 1;

export interface ThreadSettings {
  readonly dir: string;
  /** Largest body after inflating, bytes. */
  readonly bodyLimit: number;
  /** Largest sum of the files, bytes. */
  readonly spoolLimit: number;
  /** The least time between two commits unless there is a whole frame, ms. */
  readonly lingerMs: number;
  /** 32-bit integers at `DECODING` and `INSERTING`. */
  readonly shared: SharedArrayBuffer;
  /** The tables that are known already. */
  readonly shapes: readonly TableShape[];
}

export type ToThread =
  | {
      readonly type: 'take';
      readonly id: number;
      readonly signal: Signal;
      readonly encoding: Encoding;
      readonly gzip: boolean;
      readonly body: Uint8Array;
      /** The clock of the main thread, ms since the epoch. */
      readonly now: number;
    }
  /** A table as it is now: rows are written and read for it from here on. */
  | { readonly type: 'shape'; readonly shape: TableShape }
  | { readonly type: 'read'; readonly frame: string }
  | { readonly type: 'done'; readonly frame: string }
  /** Try whether a disk that refused works again. Answered by `freed`, or by `failed` without a body. */
  | { readonly type: 'probe' }
  | { readonly type: 'close' };

export type FromThread =
  /** Once, at first: what an earlier run left. */
  | {
      readonly type: 'opened';
      readonly frames: readonly Frame[];
      readonly bytes: number;
      /** Frames that cannot be read any more. */
      readonly damaged: number;
    }
  /** Written, not yet durable; the rows come along, so that they need not be read. */
  | {
      readonly type: 'written';
      readonly frames: readonly Frame[];
      /** One of each frame, as it is inserted. */
      readonly texts: readonly Uint8Array[];
      readonly taken: readonly Taken[];
      readonly bytes: number;
    }
  /** These bodies survive a power cut too. */
  | { readonly type: 'synced'; readonly ids: readonly number[] }
  | { readonly type: 'failed'; readonly ids: readonly number[]; readonly failure: Failure }
  /** As it is inserted; undefined when the file does not give it any more. */
  | { readonly type: 'rows'; readonly frame: string; readonly text: Uint8Array | undefined }
  | { readonly type: 'freed'; readonly bytes: number }
  | { readonly type: 'closed' };
