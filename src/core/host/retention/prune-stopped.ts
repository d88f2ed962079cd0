import { lockDataDir } from '../../kernel/log/lock.ts';
import { LogWriter } from '../../kernel/log/log-writer.ts';
import { SqliteReader } from '../../kernel/log/sqlite-reader.ts';
import { checkBeforeStart } from '../../kernel/log/trust.ts';
import { forgetStop } from '../integrity/ledger.ts';
import { type ArchiveOptions, archive, statesAt } from './archive.ts';
import { type PruneJob, type PrunePlan, planPrune } from './plan.ts';

/** What a prune did. */
export interface Pruned {
  readonly plan: PrunePlan;
  /** Absent when nothing went. */
  readonly file?: string;
}

/**
 * Prunes the log of a folder that no runtime holds, and gives the space back to the disk.
 *
 * @throws HF_LOG_LOCKED, HF_LOG_MISSING, HF_LOG_UNTRUSTED, HF_LOG_CORRUPT, HF_PORTABLE_WRITE
 */
export async function pruneStopped(
  { dataDir, request, folder, now }: PruneJob,
  { signal, onProgress }: ArchiveOptions = {},
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
      const file = await archive(reader, plan, { dataDir, folder, now }, { signal, onProgress });
      pruned = { plan, file };
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
