import { lockDataDir } from '../../kernel/log/lock.ts';
import { LogWriter } from '../../kernel/log/log-writer.ts';
import { SqliteReader } from '../../kernel/log/sqlite-reader.ts';
import { checkBeforeStart } from '../../kernel/log/trust.ts';
import { forgetStop } from '../integrity/ledger.ts';
import { archive, statesAt } from './archive.ts';
import { type PrunePlan, type PruneRequest, planPrune } from './plan.ts';

/** What a prune did. */
export interface Pruned {
  readonly plan: PrunePlan;
  /** Absent when nothing went. */
  readonly file?: string;
}

/**
 * Prunes the log of a folder that no runtime holds, and gives the space back to the disk.
 *
 * @param folder for the archive
 * @param now epoch milliseconds
 * @param onProgress gets the bytes archived so far and the part that is done, 0 to 1
 * @throws HF_LOG_LOCKED, HF_LOG_MISSING, HF_LOG_UNTRUSTED, HF_LOG_CORRUPT, HF_PORTABLE_WRITE
 */
export async function pruneStopped(
  dataDir: string,
  request: PruneRequest,
  folder: string,
  now: number,
  signal?: AbortSignal,
  onProgress?: (bytes: number, part?: number) => void,
): Promise<Pruned> {
  new SqliteReader(dataDir).close(); // reports a folder without a log before a lock is made in it
  const unlock = lockDataDir(dataDir);
  try {
    forgetStop(dataDir);
    const reader = new SqliteReader(dataDir);
    let pruned: Pruned;
    let states: string[][];
    try {
      checkBeforeStart(reader, dataDir);
      const plan = planPrune(reader, request, now);
      if (plan.to < plan.from) return { plan };
      pruned = { plan, file: await archive(reader, dataDir, plan, folder, now, signal, onProgress) };
      states = [...statesAt(reader, plan.to)];
    } finally {
      reader.close();
    }
    const writer = new LogWriter({ dataDir, signEvery: Number.MAX_SAFE_INTEGER });
    try {
      const { to } = pruned.plan;
      for (const rows of states) writer.save({ seq: to, rows });
      writer.save({ seq: to, rows: [], finish: { full: true } });
      while (writer.prune(to)) signal?.throwIfAborted();
      writer.compact();
    } finally {
      writer.close();
    }
    return pruned;
  } finally {
    unlock();
  }
}
