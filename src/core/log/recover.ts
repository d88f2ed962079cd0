import { type ActorState, applyRecord } from '../actors/state.ts';
import { readChained } from './chained.ts';
import type { SqliteReader } from './sqlite-reader.ts';

/** What a log says of its actors. */
export interface Recovered {
  readonly states: Map<string, ActorState>;
  /** Seq and time (epoch milliseconds) of the newest record; zeros for an empty log. */
  readonly newest: { readonly seq: number; readonly at: number };
}

/**
 * The state of every actor after the newest record (or after `upTo`): the newest snapshots, and the records since
 * folded on them. The chain is checked over what is read.
 *
 * @throws HF_LOG_CORRUPT a record is not what was written
 */
export function recover(reader: SqliteReader, upTo = reader.lastSeq()): Recovered {
  const { seq: base, states: saved } = reader.snapshots(upTo);
  const states = new Map(saved.map((state) => [state.ref, state]));
  let at = saved.reduce((newest, state) => Math.max(newest, state.at), 0);
  for (const record of readChained(reader, base + 1, upTo)) {
    states.set(record.actor, applyRecord(states.get(record.actor), record));
    at = record.at;
  }
  return { states, newest: { seq: upTo, at } };
}
