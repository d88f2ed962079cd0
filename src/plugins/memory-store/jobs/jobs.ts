import type { Worker } from 'node:worker_threads';
import { HoldfastError } from '../../../core/errors/index.ts';
import { startWorker } from '../../../core/worker.ts';
import { MOST_JOBS } from '../limits.ts';
import type { Job, JobReply } from './protocol.ts';

/** Runs the jobs of one store, one after another. */
export class Jobs {
  #waiting = 0;
  #last: Promise<unknown> = Promise.resolve();
  #worker: Worker | undefined;
  #closed = false;

  /**
   * @param prepare says what is to be done, once it is its turn
   * @returns what it said, done
   * @throws HF_MEMORY_BUSY too many wait; HF_MEMORY_* as the job says
   */
  async run<J extends Job>(prepare: () => J | Promise<J>): Promise<J> {
    if (this.#waiting >= MOST_JOBS) {
      throw new HoldfastError('HF_MEMORY_BUSY', {
        what: `${MOST_JOBS} snapshots or recoveries wait`,
        seconds: 5,
      });
    }
    this.#waiting += 1;
    const turn = this.#last.then(async () => {
      const job = await prepare();
      await this.#start(job);
      return job;
    });
    this.#last = turn.catch(() => {});
    try {
      return await turn;
    } finally {
      this.#waiting -= 1;
    }
  }

  /** Breaks off what runs: it leaves a draft, or a table without a name, which the next start sweeps. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#worker?.terminate();
    await this.#last;
  }

  #start(job: Job): Promise<void> {
    if (this.#closed) return Promise.reject(failed('it has been stopped'));
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#worker = startWorker<JobReply>({
      module: './worker',
      base: import.meta.url,
      name: `memory-${job.kind}`,
      data: job,
      onMessage: (reply) => (reply.ok ? resolve() : reject(new HoldfastError(reply.code, reply.details))),
      onEnd: (reason) => {
        this.#worker = undefined;
        reject(failed(reason));
      },
    });
    return promise;
  }
}

const failed = (reason: string) => new HoldfastError('HF_MEMORY_FAILED', { reason });
