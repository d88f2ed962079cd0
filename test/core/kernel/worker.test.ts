import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import test from 'ava';

/** What each thread does: what the writer of a log does once, often enough for two of them to meet. */
const source = `
  const { collectGarbageOfStart } = await import(${JSON.stringify(new URL('../../../src/core/kernel/worker.ts', import.meta.url).href)});
  for (let round = 0; round < 40; round += 1) collectGarbageOfStart();
`;

test('[C2] threads that collect their garbage at the same time do not end each other', async (t) => {
  const url = new URL(`data:text/javascript,${encodeURIComponent(source)}`);
  const workers = Array.from({ length: 6 }, () => new Worker(url));
  const codes = await Promise.allSettled(workers.map((worker) => once(worker, 'exit')));
  t.deepEqual(
    codes.map(({ status }) => status),
    workers.map(() => 'fulfilled'),
  ); // prettier-ignore
});
