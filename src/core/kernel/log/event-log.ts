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

/** Which records are searched. */
export interface SearchRange extends ReadRange {
  /** Records whose body has none of these texts may be left out: whoever reads looks at the rest itself. */
  readonly holding?: readonly string[];
}

/** A record as the log keeps it. */
export interface RawRecord {
  readonly seq: number;
  readonly actor: string;
  readonly correlation: string;
  /** JSON, exactly as it was hashed. */
  readonly body: string;
  readonly hash: string;
}

/**
 * A log that states, explanations and replays are made from, wherever it is kept: `SqliteReader` reads a data folder, and
 * `MemoryReader` the lines of an export where no file system is.
 */
export interface HistoryReader extends LogReader {
  /** Whether records of some actors only are here: then gaps are no fault. */
  readonly partial: boolean;
  /** Raw records a page at a time. */
  pages(range?: SearchRange): Iterable<RawRecord[]>;
  /** The oldest seq kept, 0 when the log is empty. */
  firstSeq(): number;
  /** Bytes that the log takes. */
  usedBytes(): number;
  /** @throws HF_LOG_RANGE there is no such record */
  record(seq: number): LogRecord;
  /**
   * Finds the newest record of an actor, not after `upTo`, that entered another state. Yields between steps: an actor may
   * have stayed in a state for a hundred thousand records.
   *
   * @returns its seq; undefined when it is not in this log any more
   */
  stateEntered(actor: string, upTo: number): Generator<undefined, number | undefined>;
  /** Finds the newest record of an actor, not after `upTo`, that set a field of its context to a number. @returns its seq */
  contextSet(
    actor: string,
    upTo: number,
    field: string,
    value: number,
  ): Generator<undefined, number | undefined>;
  /** Hash of a record, to check the chain from there on. */
  hashOf(seq: number): string | undefined;
  /** The hash that a record chains to: that of the one before, or the one an export kept of a record left out. */
  hashBefore(seq: number): string | undefined;
  /** Whether a record's hash is that of its body behind the record before. @param previous hash of that one */
  isChained(record: RawRecord, previous: string): boolean;
  /** Whether a repair signed each of these records as missing. Inclusive. */
  isMissing(from: number, to: number): boolean;
  /** The newest seq, not after `upTo`, at which actors were saved; 0 when they never were. */
  snapshotSeq(upTo?: number): number;
  /**
   * The state of every actor that was saved at a checkpoint, as saved.
   *
   * @param at from `snapshotSeq`
   * @throws HF_LOG_CORRUPT they are not what was saved
   */
  snapshots(at: number): string[];
  /** The same in parts, and as they are now: later ones of an actor replace earlier ones. */
  snapshotPages(at: number): Iterable<string[]>;
  /** The newest saved state of one actor that is not after `upTo`, as saved. */
  snapshotOf(actor: string, upTo: number): string | undefined;
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
  /**
   * Keeps records that are still needed elsewhere from being pruned automatically, as long as the disk has room for them.
   *
   * @param oldest asked at each look: the oldest record that is needed
   */
  keepFrom(oldest: () => number): void;
  /** The oldest record that somebody still needs; infinite when nobody does. */
  keptFrom(): number;
  /** Makes stored bodies unreadable for ever, in the database and its write-ahead log. @throws HF_LOG_CLOSED */
  shred(keys: readonly string[]): Promise<void>;
  status(): LogStatus;
  /** Commits what is queued and lets go of the files. */
  close(): Promise<void>;
}
