/** The thread that archives while the runtime goes on: it reads the log, compresses, and folds states. */
import { parentPort, workerData } from 'node:worker_threads';
import { isCoded } from '../../kernel/errors/holdfast-error.ts';
import { SqliteReader } from '../../kernel/log/sqlite-reader.ts';
import type { ArchiverData, ArchiverMessage } from './archive.ts';
import { archive, statesAt } from './archive.ts';
import { planPrune } from './plan.ts';

const say = (message: ArchiverMessage) => parentPort?.postMessage(message);

async function work({ dataDir, request, folder, now }: ArchiverData): Promise<void> {
  const reader = new SqliteReader(dataDir);
  try {
    const plan = planPrune(reader, request, now);
    if (plan.to < plan.from) return say({ kind: 'archived', plan });
    say({ kind: 'archived', plan, file: await archive(reader, dataDir, plan, folder, now) });
    for (const rows of statesAt(reader, plan.to)) say({ kind: 'states', rows });
  } finally {
    reader.close();
  }
}

try {
  await work(workerData as ArchiverData);
  say({ kind: 'end' });
} catch (error) {
  if (!isCoded(error)) throw error;
  say({ kind: 'failed', error: error.toData() });
}
