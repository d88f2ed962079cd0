import { Worker } from 'node:worker_threads';

/** Small young generation: a writer holds little, and each thread's heap counts fully toward an idle footprint. */
const LIMITS = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 128 } as const;
/** A busy thread gets a larger young generation, so that short-lived objects are collected before they are promoted. */
const BUSY_YOUNG_MIB = 16;

export interface WorkerOptions<M> {
  /** Path without extension, relative to `base`, e.g. `./writer`: from source or compiled, whichever runs. */
  readonly module: string;
  /** `import.meta.url` of the caller. */
  readonly base: string;
  readonly name: string;
  readonly data: unknown;
  /** The most its heap may hold; beyond it the thread ends, not the process. 128 MiB unless set. */
  readonly heapMiB?: number;
  readonly onMessage: (message: M) => void;
  /** Called once, with why, when the thread has ended. */
  readonly onEnd: (reason: string) => void;
}

/** Starts a module of ours as a worker thread. It does not keep the process alive until somebody calls `ref`. */
export function startWorker<M>(options: WorkerOptions<M>): Worker {
  const { module, base, name, data, heapMiB, onMessage, onEnd } = options;
  const extension = base.endsWith('.ts') ? '.ts' : '.js';
  const worker = new Worker(new URL(module + extension, base), {
    name,
    workerData: data,
    resourceLimits:
      heapMiB === undefined
        ? LIMITS
        : { maxYoungGenerationSizeMb: BUSY_YOUNG_MIB, maxOldGenerationSizeMb: heapMiB },
  });
  let failure: string | undefined;
  worker.on('message', onMessage);
  worker.once('error', (error) => {
    failure = error instanceof Error ? error.message : String(error);
  });
  worker.once('exit', (code) => onEnd(failure ?? `it ended with code ${code}`));
  worker.unref(); // last: a listener for messages refs it again
  return worker;
}
