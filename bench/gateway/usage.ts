import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** What a program took and holds. */
export interface Usage {
  readonly cpuMs: number;
  readonly rssMb: number;
  readonly heapMb: number;
}

/** Answers the parent's question for CPU and memory, and ends with it. `collect` looks after a garbage collection. */
export function tellUsage(): void {
  setFlagsFromString('--expose-gc');
  const collectAll = runInNewContext('gc') as () => void;
  process.on('message', ({ collect }: { collect?: boolean }) => {
    if (collect) collectAll();
    const { user, system } = process.cpuUsage();
    const { rss, heapUsed } = process.memoryUsage();
    const cpuMs = (user + system) / 1_000;
    process.send?.({ cpuMs, rssMb: rss / 2 ** 20, heapMb: heapUsed / 2 ** 20 } satisfies Usage);
  });
  process.on('disconnect', () => process.exit());
}
