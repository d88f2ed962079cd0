import { runSteps } from '../../../core/host/history/pace.ts';
import { recoverSteps } from '../../../core/kernel/actors/recover.ts';
import { CHAIN_START } from '../../../core/kernel/log/chain-hash.ts';
import { PORTABLE_FORMAT } from '../../../core/kernel/log/portable/format.ts';
import type { SqliteReader } from '../../../core/kernel/log/sqlite-reader.ts';
import { version } from '../../../core/kernel/version.ts';
import { ClusterError } from '../errors.ts';
import { beginMessages } from './batch.ts';
import type { MirrorMessage } from './message.ts';

/** The record with which a local log begins, behind what a repair could not save. @throws HF_CLUSTER_LOG_GAP */
export function firstKept(reader: SqliteReader): number {
  const lost = reader.missing().at(-1);
  const first = Math.max(reader.firstSeq(), 1);
  if (!lost || lost.to < first) return first;
  const saved = reader.checkpointFrom(lost.to);
  if (saved === undefined) throw new ClusterError('HF_CLUSTER_LOG_GAP', { from: lost.from, to: lost.to });
  return saved + 1;
}

/** What a `begin` names beside the log. */
export interface BeginFacts {
  /** Name of this host. */
  readonly host: string;
  readonly incarnation: number;
  /** The public key that signs the log. */
  readonly key: string;
  /** Epoch milliseconds. */
  readonly now: number;
  /** Bytes that the body of a message may have. */
  readonly largest: number;
  /** Until the stream has come so far, an earlier one may hold records with effects that this one lacks. */
  readonly filledAt: number;
}

/**
 * A message from which on a stream can be read: its header, and the states of all actors before a record.
 *
 * @param from the first record behind it; those before may be gone
 */
export async function beginAt(
  reader: SqliteReader,
  from: number,
  { host, incarnation, key, now, largest, filledAt }: BeginFacts,
): Promise<{ readonly messages: readonly MirrorMessage[]; readonly hash: string }> {
  const hash = from === 1 ? CHAIN_START : (reader.hashBefore(from) ?? CHAIN_START);
  const states =
    from === 1 ? [] : (await runSteps(recoverSteps(reader, from - 1), undefined)).states.values();
  const header = {
    ...({ holdfast: 'log', format: PORTABLE_FORMAT, runtime: version, machines: {} } as const),
    ...{ exportedAt: now, chainStart: hash, complete: true, host, incarnation, key },
    ...{ range: { from, to: Math.max(1, filledAt) }, time: { from: now, to: now } },
  };
  return { messages: beginMessages(header, states, largest), hash };
}
