/** The thread that archives while the runtime goes on: it reads the log, compresses, and folds states. */
import { setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { isCoded } from '../../kernel/errors/holdfast-error.ts';
import { SqliteReader } from '../../kernel/log/sqlite-reader.ts';
import type { ArchiverMessage } from './archive.ts';
import { archive, archivedBefore, statesAt } from './archive.ts';
import { clearParts } from './archive-files.ts';
import { type PruneJob, planPrune } from './plan.ts';

const say = (message: ArchiverMessage) => parentPort?.postMessage(message);

async function work({ dataDir, request, folder, now }: PruneJob): Promise<void> {
  const reader = new SqliteReader(dataDir);
  try {
    const wanted = planPrune(reader, request, now);
    if (wanted.to < wanted.from) return say({ kind: 'archived', plan: wanted });
    clearParts(folder);
    const before = await archivedBefore(reader, wanted, folder);
    const plan = before ? { ...wanted, to: before.to, until: reader.record(before.to).at } : wanted;
    const file = before?.file ?? (await archive(reader, plan, { dataDir, folder, now }));
    say({ kind: 'archived', plan, file });
    for (const rows of statesAt(reader, plan.to)) say({ kind: 'states', rows });
  } finally {
    reader.close();
  }
}

try {
  setPriority(0, 19); // on Linux the 0 is this thread alone
} catch {
  // It competes with the rest, then.
}
try {
  await work(workerData as PruneJob);
  say({ kind: 'end' });
} catch (error) {
  if (!isCoded(error)) throw error;
  say({ kind: 'failed', error: error.toData() });
}
