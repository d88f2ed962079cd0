import type { Worker } from 'node:worker_threads';
import type { PointId } from '../../core/contracts/memory-store.ts';
import { startWorker } from '../../core/kernel/worker.ts';
import { MemoryError } from './errors.ts';
import type { TextAnswer, TextRequest } from './full-text-worker.ts';

/** A point that a search found, with its rank: the smaller, the better. */
export interface TextMatch {
  readonly id: PointId;
  readonly rank: number;
}

const SEARCH_MS = 10_000;
/** The largest heap of the thread, MiB. */
const HEAP_MIB = 128;
/** Words of a search: each one more is read in the whole index. */
const MOST_WORDS = 32;

/** The texts of points in SQLite's FTS5, on a thread of their own, so that no search holds up the process. */
export class FullText {
  readonly #worker: Worker;
  readonly #searchMs: number;
  readonly #waiting: PromiseWithResolvers<TextAnswer>[] = [];
  #hasEnded = false;

  /** @param searchMs a search that takes longer ends the thread, and with it the index, milliseconds */
  constructor(searchMs: number = SEARCH_MS) {
    this.#searchMs = searchMs;
    this.#worker = startWorker<TextAnswer>({
      module: './full-text-worker',
      base: import.meta.url,
      name: 'memory-text',
      data: undefined,
      heapMiB: HEAP_MIB,
      onMessage: (answer) => {
        this.#waiting.shift()?.resolve(answer);
        if (this.#waiting.length === 0) this.#worker.unref();
      },
      onEnd: () => this.#end(),
    });
  }

  /** Whether nothing can be asked of it any more. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  async putAll(points: readonly (readonly [id: PointId, text: string])[]): Promise<void> {
    await this.#ask({ kind: 'put', rows: points.map(([id, text]) => [JSON.stringify(id), text]) });
  }

  async put(id: PointId, text: string): Promise<void> {
    await Promise.all([this.remove(id), this.putAll([[id, text]])]);
  }

  async remove(id: PointId): Promise<void> {
    await this.#ask({ kind: 'remove', id: JSON.stringify(id) });
  }

  /** @throws HF_MEMORY_SEARCH it takes too long, or the thread has ended */
  async search(query: string, limit: number): Promise<readonly TextMatch[]> {
    const expression = expressionOf(query);
    if (expression === '') return [];
    const late = setTimeout(() => this.close(), this.#searchMs);
    try {
      const found = await this.#ask({ kind: 'search', expression, limit });
      return found.map(([id, rank]) => ({ id: JSON.parse(id) as PointId, rank }));
    } finally {
      clearTimeout(late);
    }
  }

  /** Closes it behind what it was asked. */
  async finish(): Promise<void> {
    await this.putAll([]).catch(() => {});
    this.close();
  }

  close(): void {
    this.#end();
    void this.#worker.terminate();
  }

  async #ask(request: TextRequest) {
    if (this.#hasEnded) throw this.#tooLong();
    const waiting = Promise.withResolvers<TextAnswer>();
    this.#waiting.push(waiting);
    this.#worker.ref(); // until it has answered
    this.#worker.postMessage(request);
    const answer = await waiting.promise;
    if ('error' in answer) throw new Error(answer.error);
    return answer.found;
  }

  #end(): void {
    this.#hasEnded = true;
    for (const { reject } of this.#waiting.splice(0)) reject(this.#tooLong());
  }

  #tooLong(): Error {
    return new MemoryError('HF_MEMORY_SEARCH', { seconds: this.#searchMs / 1_000 });
  }
}

/** Words as FTS5 reads them; nothing that a caller types is an operator, but for a `*` at a word's end. */
function expressionOf(query: string): string {
  const words = query.split(/[\s\0]+/).filter((word) => /[\p{L}\p{N}]/u.test(word));
  return words
    .slice(0, MOST_WORDS)
    .map((word) => {
      const isPrefix = word.endsWith('*');
      return `"${word.replaceAll('"', '""').replace(/\*+$/, '')}"${isPrefix ? '*' : ''}`;
    })
    .join(' ');
}
