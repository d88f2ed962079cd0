import { LRUCache } from 'lru-cache';
import { Semaphore } from '../../../core/host/concurrency.ts';
import { startWorker } from '../../../core/kernel/worker.ts';
import { graphDigest } from './built-drawings.ts';
import type { Drawing } from './drawing.ts';
import { isLine, type MachineGraph } from './graph.ts';

/** What one layout may take. */
export interface LayoutLimits {
  readonly deadlineMs: number;
  /** The heap of its thread, MiB. */
  readonly heapMiB: number;
}

/** ELK places the largest machine of the product in a tenth of this. */
const LIMITS: LayoutLimits = { deadlineMs: 5_000, heapMiB: 256 };
const MOST_KEPT = 100;
/** After which a layout that failed is tried again, milliseconds: the machine may only have been busy. */
const TRIED_AGAIN_MS = 10 * 60_000;

/**
 * Drawings of the machines that plugins of others bring: the build has none. Each is made when somebody first looks at it,
 * on a thread of its own, one at a time.
 */
export class ForeignDrawings {
  readonly #limits: LayoutLimits;
  readonly #layouts = new Semaphore(1);
  /** By digest of the graph: a plugin that changes its machine has another. */
  readonly #made = new LRUCache<string, Promise<Drawing | undefined>>({ max: MOST_KEPT });

  constructor(limits: LayoutLimits = LIMITS) {
    this.#limits = limits;
  }

  /** @returns undefined where ELK finds no layout, or none within the limits: the pages show an outline then */
  async of(graph: MachineGraph): Promise<Drawing | undefined> {
    if (!graph.transitions.some(isLine)) return undefined;
    const digest = graphDigest(graph);
    const known = this.#made.get(digest);
    if (known) return known;
    const made = this.#layouts.run(() => this.#layOut(graph));
    this.#made.set(digest, made);
    void made.then((drawing) => {
      if (!drawing) this.#made.set(digest, made, { ttl: TRIED_AGAIN_MS });
    });
    return made;
  }

  async #layOut(graph: MachineGraph): Promise<Drawing | undefined> {
    const { deadlineMs, heapMiB } = this.#limits;
    const { promise, resolve } = Promise.withResolvers<Drawing | undefined>();
    const worker = startWorker<Drawing | undefined>({
      module: './layout-worker',
      base: import.meta.url,
      name: 'console-layout',
      data: graph,
      heapMiB,
      onMessage: resolve,
      onEnd: () => resolve(undefined),
    });
    const timer = setTimeout(() => resolve(undefined), deadlineMs);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      await worker.terminate();
    }
  }
}
