import type { LogRecord } from './record.ts';

/** Bodies stored in the same transaction as the records that name them, by key. */
export type Blobs = ReadonlyMap<string, Uint8Array>;

/** Which records to read; bounds are inclusive. @public */
export interface ReadRange {
  readonly from?: number;
  readonly to?: number;
  readonly actor?: string;
  readonly correlation?: string;
  /** Newest first. */
  readonly reverse?: boolean;
  readonly limit?: number;
}

/** A log that can be read, whoever writes it. @public */
export interface LogReader {
  /** Records in order of seq (or newest first). Pages inside; holds nothing open while the caller waits. */
  read(range?: ReadRange): AsyncIterable<LogRecord>;
  /** The newest seq, 0 when the log is empty. */
  lastSeq(): number;
  close(): void | Promise<void>;
}

/** The state of the writing side. `frozen` means that a commit failed and is being tried again. */
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
  /** `sync` commits now, with everything queued before it; `batched` waits for the linger, unless somebody waits for it. */
  readonly durability: 'sync' | 'batched';
  readonly blobs?: Blobs | undefined;
}

/** A state of an actor to be saved: derived from the records, never needed to trust them. */
export interface Snapshot {
  readonly actor: string;
  /** The actor's state as JSON. */
  readonly body: string;
}

/** Tells that states are durable; the digest covers them, by actor in order. */
export interface SnapshotsSaved {
  readonly seq: number;
  readonly count: number;
  readonly digest: string;
}

/** The size and duration of one commit. */
export interface CommitStats {
  readonly records: number;
  /** From handing the batch to the writer until it was durable, milliseconds. */
  readonly ms: number;
  readonly bytes: number;
}

/** The log of a running runtime (`docs/log.md`). One process writes it; readers are welcome. @public */
export interface EventLog extends LogReader {
  /**
   * Queues a record, whose seq must follow the newest. Returns at once; disk trouble shows in `status()` and the
   * record is tried again until it is durable.
   *
   * @throws HF_LOG_CLOSED
   */
  append(record: LogRecord, options: AppendOptions): void;
  /** Resolves when the record of this seq is durable; a `batched` one that lingers is committed at once. */
  whenDurable(seq: number): Promise<void>;
  /** Calls back with the newest durable seq after each commit, before `whenDurable` resolves. */
  onDurable(listener: (seq: number, stats: CommitStats) => void): void;
  /** False while a commit is failing or the queue is full. */
  hasRoom(): boolean;
  /** Calls back when there is room again. */
  onRoom(listener: () => void): void;
  /** Calls back after a commit when so much has been written since `saveSnapshots` that it should be called again. */
  onCheckpointDue(listener: () => void): void;
  /** Calls back when a commit fails for the first time, and when it works again (with no reason). */
  onFrozen(listener: (reason: string | undefined) => void): void;
  /**
   * A body stored beside a record, sealed as it was handed in.
   *
   * @throws HF_LOG_SHREDDED it was here, and was made unreadable
   */
  blob(key: string): Uint8Array | undefined;
  /**
   * Saves the states of actors as of the newest record, in parts, so that neither this thread nor a commit is held
   * up for long. Nothing counts as saved before all of it is durable. One at a time.
   *
   * @param states taken one after another while they are written: they must not change any more
   * @param keep asked at the end which blobs are still needed; the others are dropped
   * @throws HF_LOG_CLOSED
   */
  saveSnapshots(states: Iterable<Snapshot>, keep: () => Iterable<string>): Promise<SnapshotsSaved>;
  /**
   * Deletes the oldest records, a little at a time, between commits.
   *
   * @param to the last that goes; the newest record must stay
   * @param states of all actors right after it, in parts: actor and state as JSON, one after another
   * @throws HF_LOG_CLOSED
   */
  prune(to: number, states: Iterable<readonly string[]>): Promise<void>;
  /** Makes stored bodies unreadable for ever, in the database and its write-ahead log. @throws HF_LOG_CLOSED */
  shred(keys: readonly string[]): Promise<void>;
  status(): LogStatus;
  /** Commits what is queued and lets go of the files. */
  close(): Promise<void>;
}
