import { hash } from 'node:crypto';
import type { Worker } from 'node:worker_threads';
import { type Clock, systemClock } from '../clock.ts';
import { HoldfastError } from '../errors/index.ts';
import { startWorker } from '../worker.ts';
import { type Batch, CommitQueue } from './commit-queue.ts';
import type {
  AppendOptions,
  CommitStats,
  EventLog,
  LogStatus,
  ReadRange,
  Snapshot,
  SnapshotsSaved,
} from './event-log.ts';
import type { CommitReply } from './protocol.ts';
import type { LogRecord } from './record.ts';
import { openForWriting } from './schema.ts';
import { SqliteReader } from './sqlite-reader.ts';

export interface SqliteLogOptions {
  readonly dataDir: string;
  /** How long a `batched` record may wait for company, milliseconds; 50 unless set. */
  readonly lingerMs?: number;
  readonly clock?: Clock;
}

const FIRST_RETRY_MS = 100;
const LONGEST_RETRY_MS = 5_000;
/** While the writer syncs one batch it has the next at hand already. */
const PIPELINE = 2;

/**
 * The embedded event log: SQLite in WAL mode, written by one worker thread in group commits. Everything that waits
 * goes out in one transaction as soon as the one before is durable; one fsync serves them all.
 */
export class SqliteLog implements EventLog {
  readonly #dataDir: string;
  readonly #lingerMs: number;
  readonly #clock: Clock;
  readonly #reader: SqliteReader;
  readonly #queue: CommitQueue;
  readonly #durableListeners: ((seq: number, stats: CommitStats) => void)[] = [];
  readonly #roomListeners: (() => void)[] = [];
  readonly #frozenListeners: ((reason: string | undefined) => void)[] = [];
  #waiters: { seq: number; resolve: () => void; reject: (error: unknown) => void }[] = [];
  #worker: Worker | undefined;
  #cancelRetry: (() => void) | undefined;
  /** On their way to the disk, oldest first. */
  readonly #inFlight: (Batch & { postedAt: number })[] = [];
  #cancelLinger: (() => void) | undefined;
  #scheduled = false;
  #seq: number;
  #durableSeq: number;
  #frozen: string | undefined;
  #retryMs = FIRST_RETRY_MS;
  #hadRoom = true;
  #closing: PromiseWithResolvers<void> | undefined;
  #closed = false;

  /**
   * Opens (or makes) the log of a data folder that the caller has locked.
   *
   * @throws HF_LOG_FORMAT
   */
  constructor({ dataDir, lingerMs = 50, clock = systemClock }: SqliteLogOptions) {
    this.#dataDir = dataDir;
    this.#lingerMs = lingerMs;
    this.#clock = clock;
    openForWriting(dataDir).close();
    this.#reader = new SqliteReader(dataDir);
    this.#seq = this.#reader.lastSeq();
    this.#durableSeq = this.#seq;
    this.#queue = new CommitQueue(this.#seq + 1);
    this.#worker = this.#spawn();
  }

  append(record: LogRecord, { durability, blobs }: AppendOptions): void {
    if (this.#closed || this.#closing) throw new HoldfastError('HF_LOG_CLOSED');
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
    if (this.#closed) throw new HoldfastError('HF_LOG_CLOSED');
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waiters.push({ seq, resolve, reject });
    return promise;
  }

  onDurable(listener: (seq: number, stats: CommitStats) => void): void {
    this.#durableListeners.push(listener);
  }

  hasRoom(): boolean {
    return this.#frozen === undefined && !this.#queue.full && !this.#closed;
  }

  onRoom(listener: () => void): void {
    this.#roomListeners.push(listener);
  }

  onFrozen(listener: (reason: string | undefined) => void): void {
    this.#frozenListeners.push(listener);
  }

  blob(key: string): Uint8Array | undefined {
    const onItsWay = this.#inFlight
      .flatMap(({ request }) => request.blobs)
      .findLast(([name]) => name === key)?.[1];
    return this.#queue.blob(key) ?? onItsWay ?? this.#reader.blob(key);
  }

  async saveSnapshots(unsorted: readonly Snapshot[], keep: ReadonlySet<string>): Promise<SnapshotsSaved> {
    const seq = this.#seq;
    // In an order that whoever verifies the digest can find again.
    const snapshots = unsorted.toSorted((a, b) => (a.actor < b.actor ? -1 : 1));
    const done = this.#queue.pushSnapshots(seq, snapshots, keep);
    this.#commitSoon();
    await done;
    const digest = hash('sha256', snapshots.map((snapshot) => snapshot.body).join('\n'), 'hex');
    return { seq, count: snapshots.length, digest };
  }

  status(): LogStatus {
    return {
      state: this.#closed ? 'closed' : this.#frozen === undefined ? 'open' : 'frozen',
      seq: this.#seq,
      durableSeq: this.#durableSeq,
      ...(this.#frozen !== undefined && { reason: this.#frozen }),
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

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closing ??= Promise.withResolvers<void>();
    this.#commit();
    await this.#closing.promise;
  }

  #commitSoon(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    // One turn later: what else is decided in this turn shares the fsync.
    setImmediate(() => {
      this.#scheduled = false;
      this.#commit();
    });
  }

  #commit(): void {
    if (this.#closed) return;
    this.#cancelLinger?.();
    this.#cancelLinger = undefined;
    while (this.#inFlight.length < PIPELINE && this.#frozen === undefined) {
      const batch = this.#queue.take();
      if (!batch) break;
      const posted = { ...batch, postedAt: 0 };
      this.#inFlight.push(posted);
      this.#post(posted);
    }
    if (this.#closing && this.#inFlight.length === 0) this.#shut();
  }

  #post(batch: Batch & { postedAt: number }): void {
    batch.postedAt = performance.now();
    this.#worker ??= this.#spawn();
    this.#worker.ref(); // what is being written keeps the process alive until it is durable
    this.#worker.postMessage(batch.request);
  }

  #replied(reply: CommitReply): void {
    const batch = this.#inFlight[0];
    // A batch behind one that failed fails too, and is tried again with it.
    if (batch?.request.id !== reply.id) return;
    if (!reply.ok) {
      this.#freeze(reply.reason);
      return;
    }
    this.#inFlight.shift();
    if (this.#inFlight.length === 0) this.#worker?.unref();
    this.#durableSeq = batch.lastSeq;
    this.#queue.bytes -= batch.bytes;
    this.#thaw();
    const stats = {
      records: batch.request.rows.length / 3,
      ms: performance.now() - batch.postedAt,
      bytes: batch.bytes,
    };
    for (const listener of this.#durableListeners) listener(this.#durableSeq, stats);
    batch.saved?.();
    this.#wake();
    // What arrived while the commit ran need not linger: it goes with what must be written anyway.
    if (this.#queue.waiting || this.#closing) this.#commit();
    if (!this.#hadRoom && this.hasRoom()) {
      this.#hadRoom = true;
      for (const listener of this.#roomListeners) listener();
    }
  }

  #wake(): void {
    const ready = this.#waiters.filter(({ seq }) => seq <= this.#durableSeq);
    if (ready.length === 0) return;
    this.#waiters = this.#waiters.filter(({ seq }) => seq > this.#durableSeq);
    for (const { resolve } of ready) resolve();
  }

  /** The same batch again, later and later: nothing is recomputed, and nothing that depends on it runs. */
  #freeze(reason: string): void {
    this.#hadRoom = false;
    if (this.#closing) {
      this.#shut(new HoldfastError('HF_LOG_WRITE', { reason }));
      return;
    }
    if (this.#frozen === undefined) for (const listener of this.#frozenListeners) listener(reason);
    this.#frozen = reason;
    this.#cancelRetry?.();
    this.#cancelRetry = this.#clock.after(this.#retryMs, () => {
      for (const batch of this.#inFlight) this.#post(batch);
    });
    this.#retryMs = Math.min(this.#retryMs * 2, LONGEST_RETRY_MS);
  }

  #thaw(): void {
    this.#retryMs = FIRST_RETRY_MS;
    if (this.#frozen === undefined) return;
    this.#frozen = undefined;
    for (const listener of this.#frozenListeners) listener(undefined);
  }

  #spawn(): Worker {
    const worker: Worker = startWorker({
      module: './writer',
      base: import.meta.url,
      name: 'log-writer',
      data: { dataDir: this.#dataDir },
      onMessage: (reply: CommitReply) => this.#replied(reply),
      onEnd: (reason) => this.#ended(worker, reason),
    });
    return worker;
  }

  /** A writer that died (out of memory, a file taken away) is replaced when there is something to write. */
  #ended(worker: Worker, reason: string): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    if (this.#closed) this.#closing?.resolve();
    else if (this.#inFlight.length > 0) this.#freeze(`the writer ended: ${reason}`);
  }

  #shut(error?: unknown): void {
    this.#closed = true;
    this.#cancelRetry?.();
    this.#reader.close();
    for (const { reject } of this.#waiters.splice(0)) reject(new HoldfastError('HF_LOG_CLOSED'));
    if (error) this.#closing?.reject(error);
    if (!this.#worker) {
      this.#closing?.resolve();
      return;
    }
    this.#worker.ref();
    this.#worker.postMessage('close');
  }
}
