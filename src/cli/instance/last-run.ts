import { CONFIG_ACTOR, routerTransaction } from '../../core/contracts/router-transaction.ts';
import { HOST, runsOf } from '../../core/host/lifecycle/actor.ts';
import { recover } from '../../core/kernel/actors/recover.ts';
import type { ActorState } from '../../core/kernel/actors/state.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { SqliteReader } from '../../core/kernel/log/sqlite-reader.ts';
import type { Instance, LastRun } from './shapes.ts';

/** What the log that was left behind says: how the last run ended, and what the next one will take up. */
export async function readLastRun(
  dataDir: string,
  now: number,
): Promise<Pick<Instance, 'lastStop' | 'transaction' | 'log' | 'reason'>> {
  let log: SqliteReader | undefined;
  try {
    log = new SqliteReader(dataDir);
    const { states, newest } = recover(log);
    const lastStop = lastStopOf(states.get(HOST));
    const transaction = routerTransaction(states.get(CONFIG_ACTOR), now);
    return {
      log: { seq: newest.seq, durableSeq: newest.seq },
      ...(lastStop && { lastStop }),
      ...(transaction && { transaction }),
    };
  } catch (error) {
    if (!isCoded(error)) throw error;
    return error.code === 'HF_LOG_MISSING' ? {} : { reason: `${error.message} ${error.remedy}` };
  } finally {
    log?.close();
  }
}

function lastStopOf(state: ActorState | undefined): LastRun | undefined {
  const { current, ending } = runsOf(state);
  if (!current) return undefined;
  const { reason = 'killed', stoppedAt } = ending ?? {};
  return {
    ...current,
    startedAt: iso(current.startedAt),
    reason,
    ...(stoppedAt !== undefined && { stoppedAt: iso(stoppedAt) }),
  };
}

function iso(at: number): string {
  return new Date(at).toISOString();
}
