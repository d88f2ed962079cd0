import type { Benchmark } from '../measure.ts';
import { applyLegs, largestConfig } from './apply.ts';
import { healing } from './healing.ts';
import { saves } from './saves.ts';

export const routerBenchmark: Benchmark = {
  name: 'router',
  summary: 'the embedded router beside a real redis-server, against the same writes straight to Redis',
  run: async () => [
    ...(await healing()),
    ...(await applyLegs()),
    ...(await largestConfig()),
    ...(await saves()),
  ],
};
