import type { LogRecord } from './record.ts';

/** Bodies stored in the same transaction as the records that name them, by key. */
export type Blobs = ReadonlyMap<string, Uint8Array>;

/** Which records to read; bounds are inclusive. */
export interface ReadRange {
  readonly from?: number;
  readonly to?: number;
  readonly actor?: string;
  readonly correlation?: string;
  /** Newest first. */
  readonly reverse?: boolean;
  readonly limit?: number;
}

/** A log that can be read, whoever writes it. */
export interface LogReader {
  /** Records in order of seq (or newest first). Pages inside; holds nothing open while the caller waits. */
  read(range?: ReadRange): AsyncIterable<LogRecord>;
  /** The newest seq, 0 when the log is empty. */
  lastSeq(): number;
  close(): void;
}

/** How the writing side is. `frozen` means that a commit failed and is being tried again. */
export interface LogStatus {
  readonly state: 'open' | 'frozen' | 'closed';
  /** The newest seq handed to the log. */
  readonly seq: number;
  /** The newest seq that is durable. */
  readonly durableSeq: number;
  /** Why the last commit failed, while frozen. */
  readonly reason?: string;
  /** Records and bytes that wait for a commit. */
  readonly queued: number;
  readonly queuedBytes: number;
}

/** One append: the record, how soon it must be durable, and the bodies that belong to it. */
export interface AppendOptions {
  /** `sync` commits now, with everything queued before it; `batched` waits for the linger. */
  readonly durability: 'sync' | 'batched';
  readonly blobs?: Blobs | undefined;
}
