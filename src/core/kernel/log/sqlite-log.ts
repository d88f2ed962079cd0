import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises';
import { type Clock, systemClock } from '../clock.ts';
import { KernelError } from '../errors/kernel-error.ts';
import type { CommitResult, Maintenance } from './commit-request.ts';
import type {
  AppendOptions,
  CommitStats,
  EventLog,
  LogStatus,
  ReadRange,
  Snapshot,
  SnapshotsSaved,
} from './event-log.ts';
import { type Batch, CommitPipeline, CommitQueue } from './group-commit.ts';
import type { LogRecord } from './record.ts';
import { openForWriting } from './schema.ts';
import { SqliteReader } from './sqlite-reader.ts';
import { checkBeforeStart } from './trust.ts';

export interface SqliteLogOptions {
  readonly dataDir: string;
  /** How long a `batched` record may wait for others to share its commit, milliseconds; 40 unless set, which leaves 10 for the commit (C2). */
  readonly lingerMs?: number;
  /** A signature at least every so many records; 1,000 unless set. */
  readonly signEvery?: number;
  /** How long one commit may take before the log counts as frozen, milliseconds; 5,000 unless set. */
  readonly patienceMs?: number;
  /** Saved states are due after so many records; 10,000 unless set. A start reads roughly that many at most. */
  readonly checkpointEvery?: number;
  readonly clock?: Clock;
}

/** Saved states are also due after so many bytes: bodies that no state names any more are dropped only then. */
const CHECKPOINT_BYTES = 64 * 1024 * 1024;

/** How many saved states go into one transaction, and are made in one turn of this thread. */
const PART = 256;

/** How long to wait before the write-ahead log is emptied again, while somebody reads in it. */
const SHRED_RETRY_MS = 50;

interface Waiter extends PromiseWithResolvers<void> {
  readonly seq: number;
}

/**
 * The embedded event log: SQLite in WAL mode, written by one worker thread in group commits. Everything that waits
 * goes out in one transaction as soon as the one before is durable; one fsync serves them all.
 */
export class SqliteLog implements EventLog {
  readonly #lingerMs: number;
  readonly #checkpointEvery: number;
  readonly #clock: Clock;
  readonly #reader: SqliteReader;
  readonly #queue: CommitQueue;
  readonly #pipeline: CommitPipeline;
  readonly #durableListeners: ((seq: number, stats: CommitStats) => void)[] = [];
  readonly #roomListeners: (() => void)[] = [];
  readonly #checkpointListeners: (() => void)[] = [];
  readonly #frozenListeners: ((reason: string | undefined) => void)[] = [];
  readonly #needs: (() => number)[] = [];
  #waiters: Waiter[] = [];
  #cancelLinger: (() => void) | undefined;
  #scheduled = false;
  /** The newest record that does not linger any more. */
  #dueSeq: number;
  #seq: number;
  #durableSeq: number;
  /** The record at which states were saved last, and the bytes written since. */
  #savedSeq: number;
  #unsavedBytes = 0;
  #hadRoom = true;
  #closing: Promise<void> | undefined;
  #closed = false;

  /**
   * Opens (or makes) the log of a data folder that the caller has locked, and looks whether it is what was signed.
   *
   * @throws HF_LOG_FORMAT, HF_LOG_DAMAGED, HF_LOG_FOLDER; HF_LOG_UNTRUSTED, HF_LOG_CORRUPT it is not what was written
   */
  constructor({
    dataDir,
    lingerMs = 40,
    signEvery = 1_000,
    patienceMs = 5_000,
    checkpointEvery = 10_000,
    clock = systemClock,
  }: SqliteLogOptions) {
    this.#lingerMs = lingerMs;
    this.#checkpointEvery = checkpointEvery;
    this.#clock = clock;
    openForWriting(dataDir).close();
    this.#reader = new SqliteReader(dataDir);
    try {
      checkBeforeStart(this.#reader, dataDir);
    } catch (error) {
      this.#reader.close();
      throw error;
    }
    this.#seq = this.#reader.lastSeq();
    this.#dueSeq = this.#seq;
    this.#durableSeq = this.#seq;
    this.#savedSeq = this.#seq;
    this.#queue = new CommitQueue(this.#seq + 1);
    this.#pipeline = new CommitPipeline({
      writer: { dataDir, signEvery },
      clock,
      patienceMs,
      queue: this.#queue,
      onCommitted: (batch, ms) => this.#committed(batch, ms),
      onFrozen: (reason) => this.#frozen(reason),
      onDrained: () => {
        this.#closed = true;
        this.#reader.close();
      },
    });
  }

  append(record: LogRecord, { durability, blobs }: AppendOptions): void {
    this.#refuseClosed();
    if (record.seq !== this.#seq + 1)
      throw new RangeError(`record ${record.seq} does not follow ${this.#seq}`);
    this.#seq = record.seq;
    this.#queue.push(record, blobs);
    this.#hadRoom &&= this.hasRoom();
    if (durability === 'sync' || this.#queue.full) this.#commitSoon();
    else this.#cancelLinger ??= this.#clock.after(this.#lingerMs, () => this.#commit());
  }

  async whenDurable(seq: number): Promise<void> {
    if (seq <= this.#durableSeq) return;
    if (this.#closed) throw new KernelError('HF_LOG_CLOSED');
    const waiter = { seq, ...Promise.withResolvers<void>() };
    this.#waiters.push(waiter);
    if (seq > this.#dueSeq) this.#commitSoon();
    return waiter.promise;
  }

  onDurable(listener: (seq: number, stats: CommitStats) => void): void {
    this.#durableListeners.push(listener);
  }

  hasRoom(): boolean {
    return this.#pipeline.frozen === undefined && !this.#queue.full && !this.#closed;
  }

  onRoom(listener: () => void): void {
    this.#roomListeners.push(listener);
  }

  onCheckpointDue(listener: () => void): void {
    this.#checkpointListeners.push(listener);
  }

  onFrozen(listener: (reason: string | undefined) => void): void {
    this.#frozenListeners.push(listener);
  }

  blob(key: string): Uint8Array | undefined {
    return this.#queue.blob(key) ?? this.#pipeline.blob(key) ?? this.#reader.blob(key);
  }

  async saveSnapshots(states: Iterable<Snapshot>, keep: () => Iterable<string>): Promise<SnapshotsSaved> {
    const seq = this.#seq;
    this.#unsavedBytes = 0;
    let rows: string[] = [];
    for (const { actor, body } of states) {
      rows.push(actor, body);
      if (rows.length < 2 * PART) continue;
      await this.#maintain({ saving: { seq, rows } });
      await turn(); // a commit that is done at once would otherwise leave no room for anything else
      rows = [];
    }
    const finish = { keep: [...keep()], full: false };
    const { saved } = await this.#maintain({ saving: { seq, rows, finish } });
    this.#savedSeq = seq;
    return { seq, count: 0, digest: '', ...saved };
  }

  async prune(to: number, states: Iterable<readonly string[]>): Promise<void> {
    for (const rows of states) {
      await this.#maintain({ saving: { seq: to, rows } });
      await turn();
    }
    await this.#maintain({ saving: { seq: to, rows: [], finish: { full: true } } });
    while ((await this.#maintain({ prune: to })).more) await turn();
  }

  keepFrom(oldest: () => number): void {
    this.#needs.push(oldest);
  }

  keptFrom(): number {
    return Math.min(...this.#needs.map((oldest) => oldest()));
  }

  async shred(keys: readonly string[]): Promise<void> {
    while ((await this.#maintain({ shred: keys })).more) await delay(SHRED_RETRY_MS);
  }

  status(): LogStatus {
    const reason = this.#pipeline.frozen;
    return {
      state: this.#closed ? 'closed' : reason === undefined ? 'open' : 'frozen',
      seq: this.#seq,
      durableSeq: this.#durableSeq,
      ...(reason !== undefined && { reason }),
      queued: this.#seq - this.#durableSeq,
      queuedBytes: this.#queue.bytes,
    };
  }

  read(range?: ReadRange): AsyncIterable<LogRecord> {
    return this.#reader.read(range);
  }

  lastSeq(): number {
    return this.#seq;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#cancelLinger?.();
    const reason = await this.#pipeline.close();
    const error = new KernelError('HF_LOG_CLOSED');
    for (const { reject } of this.#waiters.splice(0)) reject(error);
    this.#queue.rejectTasks(error);
    if (reason !== undefined) throw new KernelError('HF_LOG_WRITE', { reason });
  }

  async #maintain(task: Maintenance): Promise<CommitResult> {
    this.#refuseClosed();
    const done = this.#queue.pushTask(task, this.#seq);
    this.#commitSoon();
    return done;
  }

  #refuseClosed(): void {
    if (this.#closed || this.#closing !== undefined) throw new KernelError('HF_LOG_CLOSED');
  }

  #commitSoon(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    // One turn later, so that all records of this turn share the fsync.
    setImmediate(() => {
      this.#scheduled = false;
      this.#commit();
    });
  }

  #commit(): void {
    this.#cancelLinger?.();
    this.#cancelLinger = undefined;
    this.#dueSeq = this.#seq;
    this.#pipeline.run();
  }

  #committed({ request, lastSeq, bytes }: Batch, ms: number): void {
    this.#durableSeq = lastSeq;
    this.#queue.bytes -= bytes;
    const stats = { records: request.rows.length / 3, ms, bytes };
    for (const listener of this.#durableListeners) listener(lastSeq, stats);
    this.#unsavedBytes += bytes;
    if (lastSeq - this.#savedSeq >= this.#checkpointEvery || this.#unsavedBytes >= CHECKPOINT_BYTES) {
      for (const listener of this.#checkpointListeners) listener();
    }
    const ready = this.#waiters.filter(({ seq }) => seq <= lastSeq);
    if (ready.length > 0) this.#waiters = this.#waiters.filter(({ seq }) => seq > lastSeq);
    for (const { resolve } of ready) resolve();
    if (!this.#hadRoom && this.hasRoom()) {
      this.#hadRoom = true;
      for (const listener of this.#roomListeners) listener();
    }
  }

  #frozen(reason: string | undefined): void {
    if (reason !== undefined) this.#hadRoom = false;
    for (const listener of this.#frozenListeners) listener(reason);
  }
}
