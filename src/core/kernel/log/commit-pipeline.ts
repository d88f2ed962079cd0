import type { Worker } from 'node:worker_threads';
import type { Clock } from '../clock.ts';
import { startWorker } from '../worker.ts';
import type { Batch, CommitQueue, CommitReply } from './commit-queue.ts';
import type { LogWriterOptions } from './log-writer.ts';

const FIRST_RETRY_MS = 100;
const LONGEST_RETRY_MS = 5_000;
const REPLY_MS = 50;
/** While the writer syncs one batch it has the next at hand already. */
const PIPELINE = 2;

interface PipelineParts {
  readonly writer: LogWriterOptions;
  readonly clock: Clock;
  /** How long a batch may be on its way, milliseconds. */
  readonly patienceMs: number;
  readonly queue: CommitQueue;
  /** A batch is durable, so many milliseconds after it was posted. */
  readonly onCommitted: (batch: Batch, ms: number) => void;
  /** A commit fails, or does not come back; with no reason: it works again. */
  readonly onFrozen: (reason: string | undefined) => void;
  /** Nothing is on its way any more, and the writer lets go of the file next: as the last, it tidies up. */
  readonly onDrained: () => void;
}

/**
 * The way from the queue to the worker thread and back. A batch that fails is tried again, later and later, until it
 * is durable: nothing is recomputed, and nothing that depends on it runs. One that does not come back (the disk hangs)
 * is waited for, and counts as failing meanwhile.
 */
export class CommitPipeline {
  readonly #parts: PipelineParts;
  /** On their way to the disk, oldest first. */
  readonly #inFlight: (Batch & { postedAt: number })[] = [];
  #worker: Worker | undefined;
  #cancelRetry: (() => void) | undefined;
  #retryMs = FIRST_RETRY_MS;
  #frozen: string | undefined;
  /** Something that was due found the writer busy. */
  #overdue = false;
  /** Why the oldest batch is waited for, while it takes too long. */
  #hanging: string | undefined;
  /** In real time, for a disk hangs whatever the runtime's clock says. */
  #watch: NodeJS.Timeout | undefined;
  #closing: PromiseWithResolvers<void> | undefined;
  #closed = false;

  constructor(parts: PipelineParts) {
    this.#parts = parts;
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

  /**
   * Posts what is queued, as far as the writer takes it, and the rest when it can. What is queued after that may wait
   * for company.
   */
  run(): void {
    if (this.#closed) return;
    while (this.#inFlight.length < PIPELINE && this.#frozen === undefined) {
      const batch = this.#parts.queue.take();
      if (!batch) break;
      const posted = { ...batch, postedAt: 0 };
      this.#inFlight.push(posted);
      this.#post(posted);
    }
    this.#overdue = this.#parts.queue.waiting;
    if (this.#closing && this.#inFlight.length === 0) this.#shut();
  }

  /**
   * Commits what is queued and ends the thread.
   *
   * @returns why it was given up, when the disk takes nothing
   */
  async close(): Promise<string | undefined> {
    this.#closing ??= Promise.withResolvers<void>();
    if (this.#frozen === undefined) this.run();
    else this.#postAgain(); // once more, at once
    await this.#closing.promise;
    return this.#frozen;
  }

  #post(batch: Batch & { postedAt: number }): void {
    batch.postedAt = performance.now();
    this.#worker ??= this.#spawn();
    this.#worker.ref(); // what is being written keeps the process alive until it is durable
    this.#worker.postMessage(batch.request);
    if (this.#watch === undefined) this.#watchOldest();
  }

  /** Chores (pruning, saving states) may take long; the batch behind them is watched when they are done. */
  #watchOldest(): void {
    clearTimeout(this.#watch);
    this.#watch = undefined;
    const oldest = this.#inFlight[0];
    if (!oldest || oldest.chore) return;
    const { patienceMs } = this.#parts;
    const late = () => this.#hangs(oldest, `the disk has not taken a commit for ${patienceMs} ms`);
    // A reply may have come while this thread was busy itself: it is read before the second timer fires.
    this.#watch = setTimeout(() => {
      this.#watch = setTimeout(late, REPLY_MS);
      this.#watch.unref();
    }, patienceMs);
    this.#watch.unref();
  }

  #hangs(batch: Batch, reason: string): void {
    if (this.#closed || this.#inFlight[0] !== batch || this.frozen !== undefined) return;
    this.#hanging = reason;
    this.#parts.onFrozen(reason);
  }

  #postAgain(): void {
    this.#cancelRetry?.();
    for (const batch of this.#inFlight) this.#post(batch);
  }

  #replied(reply: CommitReply): void {
    const batch = this.#inFlight[0];
    // A batch behind one that failed fails too, and is tried again with it.
    if (this.#closed || batch?.request.id !== reply.id) return;
    if (!reply.ok) {
      this.#freeze(reply.reason);
      return;
    }
    this.#inFlight.shift();
    this.#watchOldest();
    if (this.#inFlight.length === 0) this.#worker?.unref();
    this.#thaw();
    this.#parts.onCommitted(batch, performance.now() - batch.postedAt);
    batch.chore?.resolve(reply.done);
    if (this.#overdue || this.#closing) this.run();
  }

  #freeze(reason: string): void {
    if (this.frozen === undefined) this.#parts.onFrozen(reason);
    this.#frozen = reason;
    if (this.#closing) {
      this.#shut();
      return;
    }
    this.#cancelRetry?.();
    this.#cancelRetry = this.#parts.clock.after(this.#retryMs, () => this.#postAgain());
    this.#retryMs = Math.min(this.#retryMs * 2, LONGEST_RETRY_MS);
  }

  #thaw(): void {
    this.#retryMs = FIRST_RETRY_MS;
    if (this.frozen === undefined) return;
    this.#frozen = undefined;
    this.#hanging = undefined;
    this.#parts.onFrozen(undefined);
  }

  #spawn(): Worker {
    const worker: Worker = startWorker({
      module: './writer',
      base: import.meta.url,
      name: 'log-writer',
      data: this.#parts.writer,
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

  #shut(): void {
    this.#closed = true;
    clearTimeout(this.#watch);
    this.#cancelRetry?.();
    this.#parts.onDrained();
    if (!this.#worker) {
      this.#closing?.resolve();
      return;
    }
    this.#worker.ref();
    this.#worker.postMessage('close');
  }
}
