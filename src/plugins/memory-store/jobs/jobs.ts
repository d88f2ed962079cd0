import type { Worker } from 'node:worker_threads';
import { Mutex } from '../../../core/host/concurrency.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import { type ErrorData, HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import { startWorker } from '../../../core/kernel/worker.ts';
import { MemoryStoreError } from '../errors.ts';
import { MOST_JOBS } from '../limits.ts';

/** Long work on a store's database. Paths are absolute. */
export type Job =
  | {
      readonly kind: 'snapshot';
      readonly database: string;
      readonly collection: string;
      /** Where it appears, whole or not at all, with its checksum in a file beside it. */
      readonly file: string;
    }
  | {
      readonly kind: 'recover';
      readonly database: string;
      readonly collection: string;
      readonly file: string;
      /** SHA-256 in hexadecimal digits, where the caller knows it. */
      readonly checksum?: string | undefined;
    }
  /** All collections as they are at one moment. */
  | { readonly kind: 'copy'; readonly database: string; readonly file: string };

export type JobReply = { readonly ok: true } | { readonly ok: false; readonly error: ErrorData };

/** An idle thread ends after this: it holds some ten MiB. */
const IDLE_MS = 60_000;

interface Running {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** Runs the jobs of one store, one after another, in one thread that starts with the first. */
export class Jobs {
  readonly #clock: Clock;
  #waiting = 0;
  readonly #mutex = new Mutex();
  #worker: Worker | undefined;
  #running: Running | undefined;
  #cancelIdle = () => {};
  #closed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * @param prepare makes the job when the jobs before it are done
   * @returns the job, after it is done
   * @throws HF_MEMORY_STORE_BUSY too many wait; HF_MEMORY_* as the job says
   */
  async run<J extends Job>(prepare: () => J | Promise<J>): Promise<J> {
    if (this.#waiting >= MOST_JOBS) {
      throw new MemoryStoreError('HF_MEMORY_STORE_BUSY', {
        what: `${MOST_JOBS} snapshots or recoveries wait`,
        seconds: 5,
      });
    }
    this.#waiting += 1;
    try {
      return await this.#mutex.run(async () => {
        const job = await prepare();
        await this.#start(job);
        return job;
      });
    } finally {
      this.#waiting -= 1;
    }
  }

  /** Aborts the running job: it leaves a draft, or a table that is not listed, which the next start removes. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelIdle();
    await this.#worker?.terminate();
    await this.#mutex.idle();
  }

  async #start(job: Job): Promise<void> {
    if (this.#closed) throw failed('it has been stopped');
    this.#cancelIdle();
    const { promise, ...running } = Promise.withResolvers<void>();
    this.#running = running;
    this.#worker ??= this.#thread();
    this.#worker.postMessage(job);
    try {
      await promise;
    } finally {
      this.#running = undefined;
      this.#cancelIdle = this.#clock.after(IDLE_MS, () => this.#rest());
    }
  }

  #rest(): void {
    void this.#worker?.terminate();
    this.#worker = undefined;
  }

  #thread(): Worker {
    const worker = startWorker<JobReply>({
      module: './worker',
      base: import.meta.url,
      name: 'memory-store-jobs',
      data: undefined,
      onMessage: (reply) => {
        if (reply.ok) this.#running?.resolve();
        else this.#running?.reject(HoldfastError.fromData(reply.error));
      },
      onEnd: (reason) => {
        // A thread that was idle may end after the next one has started.
        if (this.#worker !== worker) return;
        this.#worker = undefined;
        this.#running?.reject(failed(reason));
      },
    });
    return worker;
  }
}

const failed = (reason: string) => new MemoryStoreError('HF_MEMORY_STORE_FAILED', { reason });
