import v8 from 'node:v8';
import { runInNewContext } from 'node:vm';
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

/**
 * Collects what only the start of this thread needed. V8 by itself waits until the heap has doubled, which in an idle
 * thread is never: of the main thread some 17 MB would stay, of the log's writer 2.
 */
export function collectGarbageOfStart(): void {
  v8.setFlagsFromString('--expose-gc'); // holds for contexts that are made from now on
  // Flags are the process's: another thread that collects at this very moment may have taken it away again.
  const collect: NodeJS.GCFunction | undefined = runInNewContext('typeof gc === "function" ? gc : undefined');
  v8.setFlagsFromString('--no-expose-gc');
  // `last-resort` frees compiled code that nothing runs, and shrinks the heap; `major` alone does neither.
  collect?.({ type: 'major', flavor: 'last-resort' });
}
