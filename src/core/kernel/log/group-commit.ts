import type { Worker } from 'node:worker_threads';
import type { Clock } from '../clock.ts';
import { startWorker } from '../worker.ts';
import type { CommitReply, CommitRequest, CommitResult, Maintenance } from './commit-request.ts';
import type { Blobs } from './event-log.ts';
import type { LogWriterOptions } from './log-writer.ts';
import type { LogRecord } from './record.ts';

// Group commit: what is appended while one transaction is being written is written together in the next, so that one
// fsync serves all of it. The queue holds what waits; the pipeline keeps what the writer thread has.

/** The most records in one transaction, so that a commit stays short. */
const BATCH_RECORDS = 512;
/** The log is full when so many bytes are not durable yet. */
const QUEUE_BYTES = 8 * 1024 * 1024;
const FIRST_RETRY_MS = 100;
const LONGEST_RETRY_MS = 5_000;
const REPLY_MS = 50;
/** How many batches the writer has at hand: while it syncs one, the next is there already. */
const BATCHES_IN_FLIGHT = 2;

/** The records, and perhaps the maintenance, of one transaction. */
export interface Batch {
  readonly request: CommitRequest;
  readonly lastSeq: number;
  readonly bytes: number;
  readonly task: QueuedTask | undefined;
}

/** Actor, correlation and body of a record. */
const COLUMNS = 3;

/** Bodies that are stored in the transaction of a record. */
interface QueuedBlobs {
  readonly seq: number;
  readonly blobs: Blobs;
}

interface QueuedTask extends PromiseWithResolvers<CommitResult> {
  readonly task: Maintenance;
  /** The newest record when the task was queued: it runs right after that record is written. */
  readonly after: number;
}

/** What waits for a commit, in order. Records become JSON when they are queued, so that later changes cannot reach them. */
export class CommitQueue {
  /** Actor, correlation and body of each record, one after another, as in a request. */
  readonly #rows: string[] = [];
  readonly #blobs: QueuedBlobs[] = [];
  #tasks: QueuedTask[] = [];
  #nextId = 1;
  #nextSeq: number;
  /** Bytes that are queued or with the writer. */
  bytes = 0;

  constructor(nextSeq: number) {
    this.#nextSeq = nextSeq;
  }

  get waiting(): boolean {
    return this.#rows.length > 0 || this.#tasks.length > 0;
  }

  get full(): boolean {
    return this.bytes >= QUEUE_BYTES;
  }

  push(record: LogRecord, blobs?: Blobs): void {
    const { seq, actor, correlation } = record;
    const body = JSON.stringify(record);
    this.#rows.push(actor, correlation, body);
    this.bytes += body.length;
    if (!blobs) return;
    this.#blobs.push({ seq, blobs });
    for (const blob of blobs.values()) this.bytes += blob.length;
  }

  /**
   * Queues maintenance of the log behind a record.
   *
   * @param after the newest record queued
   * @returns its result, when it is durable
   */
  pushTask(task: Maintenance, after: number): Promise<CommitResult> {
    const waiting = { task, after, ...Promise.withResolvers<CommitResult>() };
    this.#tasks.push(waiting);
    return waiting.promise;
  }

  /** Gives up the maintenance that waits. Records are never given up. */
  rejectTasks(error: unknown): void {
    for (const { reject } of this.#tasks.splice(0)) reject(error);
  }

  blob(key: string): Uint8Array | undefined {
    return this.#blobs.findLast(({ blobs }) => blobs.has(key))?.blobs.get(key);
  }

  /** The next transaction, or undefined when nothing waits. A task ends the transaction that it joins. */
  take(): Batch | undefined {
    if (!this.waiting) return undefined;
    const due = this.#tasks[0];
    const room = due ? Math.min(due.after - this.#nextSeq + 1, BATCH_RECORDS) : BATCH_RECORDS;
    const rows = this.#rows.splice(0, room * COLUMNS);
    const firstSeq = this.#nextSeq;
    this.#nextSeq += rows.length / COLUMNS;
    const blobs = this.#blobsUpTo(this.#nextSeq - 1);
    const task = due && due.after < this.#nextSeq ? this.#tasks.shift() : undefined;
    return {
      request: { id: this.#nextId++, firstSeq, rows, blobs, ...task?.task },
      lastSeq: this.#nextSeq - 1,
      bytes: sizeOf(rows, blobs),
      task,
    };
  }

  #blobsUpTo(seq: number): CommitRequest['blobs'] {
    const later = this.#blobs.findIndex((queued) => queued.seq > seq);
    const due = this.#blobs.splice(0, later < 0 ? this.#blobs.length : later);
    return due.flatMap(({ blobs }) => [...blobs]);
  }
}

function sizeOf(rows: readonly string[], blobs: CommitRequest['blobs']): number {
  let bytes = 0;
  for (let body = COLUMNS - 1; body < rows.length; body += COLUMNS) bytes += rows[body]?.length ?? 0;
  for (const [, blob] of blobs) bytes += blob.length;
  return bytes;
}

interface CommitPipelineOptions {
  readonly writer: LogWriterOptions;
  readonly clock: Clock;
  /** How long the writer may take for a batch before the log counts as frozen, milliseconds. */
  readonly patienceMs: number;
  readonly queue: CommitQueue;
  /** Called when a batch is durable. @param ms since it was posted to the writer */
  readonly onCommitted: (batch: Batch, ms: number) => void;
  /** Called when a commit fails or takes too long, with the reason; without one when commits work again. */
  readonly onFrozen: (reason: string | undefined) => void;
  /** Called before the writer closes the file. Other connections close here: SQLite tidies up with the last one. */
  readonly onDrained: () => void;
}

/**
 * Posts batches from the queue to the writer thread. A batch that fails is tried again, at growing intervals, until it
 * is durable: nothing is recomputed, and nothing that depends on it runs. A batch without a reply (the disk hangs)
 * counts as failing until the reply comes.
 */
export class CommitPipeline {
  readonly #options: CommitPipelineOptions;
  /** With the writer, oldest first. */
  readonly #inFlight: (Batch & { postedAt: number })[] = [];
  #worker: Worker | undefined;
  #cancelRetry: (() => void) | undefined;
  #retryMs = FIRST_RETRY_MS;
  #frozen: string | undefined;
  /** Something is due that the writer had no place for. */
  #overdue = false;
  /** Why the log counts as frozen while the oldest batch has no reply. */
  #hanging: string | undefined;
  /** In real time: a disk hangs whatever the runtime's clock says. */
  #watch: NodeJS.Timeout | undefined;
  #closing: PromiseWithResolvers<void> | undefined;
  #closed = false;

  constructor(options: CommitPipelineOptions) {
    this.#options = options;
    this.#worker = this.#spawn();
  }

  /** Why commits fail, while they do. */
  get frozen(): string | undefined {
    return this.#frozen ?? this.#hanging;
  }

  blob(key: string): Uint8Array | undefined {
    const blobs = this.#inFlight.flatMap(({ request }) => request.blobs);
    return blobs.findLast(([name]) => name === key)?.[1];
  }

  /** Posts what is queued now, as far as the writer has a place for it; the rest follows as it answers. */
  run(): void {
    if (this.#closed) return;
    while (this.#inFlight.length < BATCHES_IN_FLIGHT && this.#frozen === undefined) {
      const batch = this.#options.queue.take();
      if (!batch) break;
      const posted = { ...batch, postedAt: 0 };
      this.#inFlight.push(posted);
      this.#post(posted);
    }
    this.#overdue = this.#options.queue.waiting;
    if (this.#closing && this.#inFlight.length === 0) this.#shut();
  }

  /**
   * Commits what is queued and ends the thread.
   *
   * @returns why records could not be written, when the disk takes nothing
   */
  async close(): Promise<string | undefined> {
    this.#closing ??= Promise.withResolvers<void>();
    if (this.#frozen === undefined) this.run();
    else this.#postAgain(); // a last attempt
    await this.#closing.promise;
    return this.#frozen;
  }

  #post(batch: Batch & { postedAt: number }): void {
    batch.postedAt = performance.now();
    this.#worker ??= this.#spawn();
    this.#worker.ref(); // the process stays alive until the batch is durable
    this.#worker.postMessage(batch.request);
    if (this.#watch === undefined) this.#watchOldest();
  }

  /** A batch with maintenance (pruning, saving states) may take long, so it is not watched. */
  #watchOldest(): void {
    clearTimeout(this.#watch);
    this.#watch = undefined;
    const oldest = this.#inFlight[0];
    if (!oldest || oldest.task) return;
    const { patienceMs } = this.#options;
    const late = () => this.#hangs(oldest, `the disk has not taken a commit for ${patienceMs} ms`);
    // This thread may have been busy itself: a reply that waits to be read is read before the second timer fires.
    this.#watch = setTimeout(() => {
      this.#watch = setTimeout(late, REPLY_MS);
      this.#watch.unref();
    }, patienceMs);
    this.#watch.unref();
  }

  #hangs(batch: Batch, reason: string): void {
    if (this.#closed || this.#inFlight[0] !== batch || this.frozen !== undefined) return;
    this.#hanging = reason;
    this.#options.onFrozen(reason);
  }

  #postAgain(): void {
    this.#cancelRetry?.();
    for (const batch of this.#inFlight) this.#post(batch);
  }

  #replied(reply: CommitReply): void {
    const batch = this.#inFlight[0];
    // The batch behind one that failed fails too, and is posted again with it.
    if (this.#closed || batch?.request.id !== reply.id) return;
    if (!reply.ok) {
      this.#freeze(reply.reason);
      return;
    }
    this.#inFlight.shift();
    this.#watchOldest();
    if (this.#inFlight.length === 0) this.#worker?.unref();
    this.#thaw();
    this.#options.onCommitted(batch, performance.now() - batch.postedAt);
    batch.task?.resolve(reply.done);
    if (this.#overdue || this.#closing) this.run();
  }

  #freeze(reason: string): void {
    if (this.frozen === undefined) this.#options.onFrozen(reason);
    this.#frozen = reason;
    if (this.#closing) {
      this.#shut();
      return;
    }
    this.#cancelRetry?.();
    this.#cancelRetry = this.#options.clock.after(this.#retryMs, () => this.#postAgain());
    this.#retryMs = Math.min(this.#retryMs * 2, LONGEST_RETRY_MS);
  }

  #thaw(): void {
    this.#retryMs = FIRST_RETRY_MS;
    if (this.frozen === undefined) return;
    this.#frozen = undefined;
    this.#hanging = undefined;
    this.#options.onFrozen(undefined);
  }

  #spawn(): Worker {
    const worker: Worker = startWorker({
      module: './writer',
      base: import.meta.url,
      name: 'log-writer',
      data: this.#options.writer,
      onMessage: (reply: CommitReply) => this.#replied(reply),
      onEnd: (reason) => this.#ended(worker, reason),
    });
    return worker;
  }

  /** A writer that has died (out of memory, say) is replaced when there is something to write. */
  #ended(worker: Worker, reason: string): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    if (this.#closed) this.#closing?.resolve();
    else if (this.#inFlight.length > 0) this.#freeze(`the writer ended: ${reason}`);
  }

  #shut(): void {
    this.#closed = true;
    clearTimeout(this.#watch);
    this.#cancelRetry?.();
    this.#options.onDrained();
    if (!this.#worker) {
      this.#closing?.resolve();
      return;
    }
    this.#worker.ref();
    this.#worker.postMessage('close');
  }
}
