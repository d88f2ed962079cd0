import { Worker } from 'node:worker_threads';

/** Small young generation: a writer holds little, and each thread's heap counts fully toward an idle footprint. */
const LIMITS = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 128 } as const;

/**
 * Starts a module of ours as a worker thread, from source or compiled, whichever runs. It does not keep the process
 * alive.
 *
 * @param module without its ending, relative to `base`, e.g. `./writer`
 * @param base `import.meta.url` of the caller
 */
export function startWorker(module: string, base: string, name: string, workerData: unknown): Worker {
  const ending = base.endsWith('.ts') ? '.ts' : '.js';
  const worker = new Worker(new URL(module + ending, base), { name, workerData, resourceLimits: LIMITS });
  worker.unref();
  return worker;
}
