import { type ActorState, applyRecord } from '../actors/state.ts';
import { HoldfastError } from '../errors/index.ts';
import { chainHash } from './chain.ts';
import { CHAIN_START } from './schema.ts';
import { parseRecord, type SqliteReader } from './sqlite-reader.ts';

/** What a log says of its actors. */
export interface Recovered {
  readonly states: Map<string, ActorState>;
  /** Seq and time (epoch milliseconds) of the newest record; zeros for an empty log. */
  readonly newest: { readonly seq: number; readonly at: number };
}

/**
 * The state of every actor after the newest record (or after `upTo`): the newest snapshots, and the records since,
 * folded on them. The chain is checked over what is read.
 *
 * @throws HF_LOG_CORRUPT a record is not what was written
 */
export function recover(reader: SqliteReader, upTo = reader.lastSeq()): Recovered {
  const { seq: base, states: saved } = reader.snapshots(upTo);
  const states = new Map(saved.map((state) => [state.ref, state]));
  let previous = (base === 0 ? CHAIN_START : reader.hashOf(base)) ?? CHAIN_START;
  let expected = base + 1;
  let at = saved.reduce((newest, state) => Math.max(newest, state.at), 0);
  for (const page of reader.pages({ from: base + 1, to: upTo })) {
    for (const raw of page) {
      if (raw.seq !== expected)
        throw new HoldfastError('HF_LOG_CORRUPT', { seq: expected, reason: 'it is missing' });
      previous = chainHash(previous, raw.body);
      if (!previous.every((byte, index) => byte === raw.hash[index])) {
        throw new HoldfastError('HF_LOG_CORRUPT', {
          seq: raw.seq,
          reason: 'its hash does not fit what stands before it',
        });
      }
      const record = parseRecord(raw.seq, raw.body);
      states.set(record.actor, applyRecord(states.get(record.actor), record));
      at = record.at;
      expected = raw.seq + 1;
    }
  }
  return { states, newest: { seq: upTo, at } };
}
