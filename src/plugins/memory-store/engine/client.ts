import type { Worker } from 'node:worker_threads';
import type { Clock } from '../../../core/kernel/clock.ts';
import { type ErrorData, HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import { startWorker } from '../../../core/kernel/worker.ts';
import { MemoryStoreError } from '../errors.ts';
import { ENGINE_DEADLINE_MS, MOST_WAITING } from '../limits.ts';
import type { Operation } from './engine.ts';

/** A request to the engine's thread. Bodies are parsed there, because a large one would block this thread. */
export interface EngineRequest {
  readonly id: number;
  readonly operation: Operation;
  readonly collection: string;
  readonly body?: Uint8Array | undefined;
}

export type EngineReply =
  | { readonly id: number; readonly result: string }
  | { readonly id: number; readonly error: ErrorData };

interface Waiting {
  readonly resolve: (result: string) => void;
  readonly reject: (error: Error) => void;
  readonly cancel: () => void;
}

/** Calls the engine in its thread, which starts with the first call and again after it has ended. */
export class EngineClient {
  readonly #file: string;
  readonly #clock: Clock;
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | undefined;
  #lastId = 0;
  #ended: Promise<void> = Promise.resolve();
  #closed = false;

  /** @param file of the database; its folder exists */
  constructor(file: string, clock: Clock) {
    this.#file = file;
    this.#clock = clock;
  }

  /**
   * @param body JSON as it was received; its memory moves to the thread
   * @returns the result as JSON
   * @throws HF_MEMORY_* as the engine answers; HF_MEMORY_STORE_BUSY too much is waiting; HF_MEMORY_STORE_FAILED it ended
   */
  call(operation: Operation, collection = '', body?: Uint8Array): Promise<string> {
    if (this.#closed) return Promise.reject(failed('it has been stopped'));
    if (this.#waiting.size >= MOST_WAITING) {
      const what = `${MOST_WAITING} requests wait`;
      return Promise.reject(new MemoryStoreError('HF_MEMORY_STORE_BUSY', { what, seconds: 1 }));
    }
    return new Promise((resolve, reject) => {
      this.#lastId += 1;
      const id = this.#lastId;
      const cancel = this.#clock.after(ENGINE_DEADLINE_MS, () =>
        this.#settle(id)?.reject(failed('it took too long')),
      );
      this.#waiting.set(id, { resolve, reject, cancel });
      const request: EngineRequest = { id, operation, collection, body };
      this.#running().postMessage(request);
    });
  }

  /** Ends the thread after it has answered the requests before. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#worker?.postMessage('close');
    await this.#ended;
  }

  #running(): Worker {
    if (this.#worker) return this.#worker;
    const ended = Promise.withResolvers<void>();
    this.#ended = ended.promise;
    this.#worker = startWorker<EngineReply>({
      module: './worker',
      base: import.meta.url,
      name: 'memory-store-engine',
      data: this.#file,
      onMessage: (reply) => {
        const waiting = this.#settle(reply.id);
        if ('result' in reply) waiting?.resolve(reply.result);
        else waiting?.reject(HoldfastError.fromData(reply.error));
      },
      onEnd: (reason) => {
        this.#worker = undefined;
        for (const id of [...this.#waiting.keys()]) this.#settle(id)?.reject(failed(reason));
        ended.resolve();
      },
    });
    return this.#worker;
  }

  #settle(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    waiting?.cancel();
    this.#waiting.delete(id);
    return waiting;
  }
}

const failed = (reason: string) => new MemoryStoreError('HF_MEMORY_STORE_FAILED', { reason });
