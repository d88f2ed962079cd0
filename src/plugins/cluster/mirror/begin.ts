import { z } from 'zod';
import { runSteps } from '../../../core/host/history/pace.ts';
import { recoverSteps } from '../../../core/kernel/actors/recover.ts';
import type { ActorState } from '../../../core/kernel/actors/transition.ts';
import { parseActorRef } from '../../../core/kernel/ids.ts';
import { CHAIN_START } from '../../../core/kernel/log/chain-hash.ts';
import { PORTABLE_FORMAT } from '../../../core/kernel/log/portable/format.ts';
import type { SqliteReader } from '../../../core/kernel/log/sqlite-reader.ts';
import { version } from '../../../core/kernel/version.ts';
import { singletonActor } from '../actors.ts';
import { ClusterError } from '../errors.ts';
import { numberOf } from '../leases/ledger.ts';
import { beginMessages } from './batch.ts';
import type { KeptFence } from './kept-fences.ts';
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
 * @param fences the newest of each singleton
 */
export async function beginAt(
  reader: SqliteReader,
  from: number,
  fences: readonly KeptFence[],
  { host, incarnation, key, now, largest, filledAt }: BeginFacts,
): Promise<{ readonly messages: readonly MirrorMessage[]; readonly hash: string }> {
  const hash = from === 1 ? CHAIN_START : (reader.hashBefore(from) ?? CHAIN_START);
  const states = from === 1 ? [] : await statesBefore(reader, from, fences);
  const header = {
    ...({ holdfast: 'log', format: PORTABLE_FORMAT, runtime: version, machines: {} } as const),
    ...{ exportedAt: now, chainStart: hash, complete: true, host, incarnation, key },
    ...{ range: { from, to: Math.max(1, filledAt) }, time: { from: now, to: now } },
  };
  return { messages: beginMessages(header, states, largest), hash };
}

/** The states of all actors before a record: of what other hosts had taken over by then, as they were when they did. */
async function statesBefore(
  reader: SqliteReader,
  from: number,
  fences: readonly KeptFence[],
): Promise<Iterable<ActorState>> {
  const states = await statesAt(reader, from - 1);
  for (const fence of fences) {
    if (fence.atSeq >= from - 1 || cameBack(states, fence)) continue;
    const isOf = (ref: string) => fence.types.includes(parseActorRef(ref).type);
    // Where the records up to it were pruned, nobody knows what counted.
    const then = fence.atSeq >= firstKept(reader) - 1 ? await statesAt(reader, fence.atSeq) : new Map();
    for (const ref of [...states.keys()]) if (isOf(ref)) states.delete(ref);
    for (const [ref, state] of then) if (isOf(ref)) states.set(ref, state);
  }
  return states.values();
}

async function statesAt(reader: SqliteReader, seq: number): Promise<Map<string, ActorState>> {
  return (await runSteps(recoverSteps(reader, seq), undefined)).states;
}

const tenure = z.object({ begunBy: z.string() });

/** Whether this host has begun the work again since. */
function cameBack(states: ReadonlyMap<string, ActorState>, { singleton, token }: KeptFence): boolean {
  const { data } = tenure.safeParse(states.get(`${singletonActor.type}/${singleton}`)?.context);
  return data !== undefined && numberOf(data.begunBy) > numberOf(token);
}
