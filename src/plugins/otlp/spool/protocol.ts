/**
 * Messages between the main thread (`spool.ts`) and the spool thread (`thread.ts`), which posts `opened` first. It answers
 * `take` by `written` and then `synced`, or by `failed`; `read` by `rows`; `done` by `freed` if that deletes a file;
 * `probe` by `freed` or `failed`; `shape` by nothing; and `close` by `closed`, its last message.
 */
import type { TableShape } from '../../../core/contracts/columnar-database.ts';
import type { SignalTable } from '../../../core/contracts/columnar-tables.ts';
import type { Encoding, Signal } from '../decode/decode.ts';

/** A frame: rows of one table that are written, read, inserted and deleted together. */
export interface Frame {
  /** Unique for ever, so that the database recognises a repeated insert. */
  readonly id: string;
  readonly table: SignalTable;
  readonly rows: number;
  /** When the frame was written, ms since the epoch. */
  readonly at: number;
  /** The layout by which its rows were written (`RowWriter.layout`). */
  readonly layout: string;
}

/** A request body whose rows are written. */
export interface Taken {
  readonly id: number;
  /** Ids of the frames that hold its rows. */
  readonly frames: readonly string[];
  readonly rows: number;
  readonly refused: number;
  readonly reasons: Readonly<Record<string, number>>;
  readonly services: readonly string[];
}

/** Why the thread took nothing of a body. */
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
  /** The most that the files of the spool may hold together, bytes. */
  readonly spoolLimit: number;
  /** How long rows wait for others before they are written, ms; a whole frame waits for none. */
  readonly lingerMs: number;
  /** 32-bit integers at `DECODING` and `INSERTING`. */
  readonly shared: SharedArrayBuffer;
  /** The tables whose columns the main thread knows already. */
  readonly shapes: readonly TableShape[];
}

/** From the main thread to the spool thread. */
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
  /** The table has these columns now: the thread writes and reads rows for them from here on. */
  | { readonly type: 'shape'; readonly shape: TableShape }
  /** The main thread requests the rows of a frame. */
  | { readonly type: 'read'; readonly frame: string }
  /** The database has the rows of the frame, so the thread forgets it. */
  | { readonly type: 'done'; readonly frame: string }
  /** The thread tries whether a disk that refused works again; the answer is `freed`, or `failed` without ids. */
  | { readonly type: 'probe' }
  /** The thread ends once everything that it took is written and synced. */
  | { readonly type: 'close' };

/** From the spool thread to the main thread. */
export type FromThread =
  /** The thread is ready; the frames are those that an earlier run left. */
  | {
      readonly type: 'opened';
      readonly frames: readonly Frame[];
      readonly bytes: number;
      /** How many frames are damaged. */
      readonly damaged: number;
    }
  /** The bodies are written, but not yet durable; the message has their rows, so that they need not be read. */
  | {
      readonly type: 'written';
      readonly frames: readonly Frame[];
      /** The rows of each frame, in the order of `frames`, as they are inserted. */
      readonly texts: readonly Uint8Array[];
      readonly taken: readonly Taken[];
      readonly bytes: number;
    }
  /** The bodies with these ids survive a power cut, too. */
  | { readonly type: 'synced'; readonly ids: readonly number[] }
  /** Nothing of the bodies with these ids was taken; no ids: the probe failed. */
  | { readonly type: 'failed'; readonly ids: readonly number[]; readonly failure: Failure }
  /** The rows of a frame as they are inserted; undefined when its file cannot be read. */
  | { readonly type: 'rows'; readonly frame: string; readonly text: Uint8Array | undefined }
  /** The spool writes again or has deleted a file; `bytes` is its new size. */
  | { readonly type: 'freed'; readonly bytes: number }
  | { readonly type: 'closed' };
