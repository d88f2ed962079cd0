import { KernelError } from '../errors/kernel-error.ts';
import { readChained } from '../log/chain.ts';
import type { HistoryReader } from '../log/event-log.ts';
import { type ActorState, applyRecord } from './transition.ts';

/** The actors of a log. */
export interface Recovered {
  readonly states: Map<string, ActorState>;
  /** Seq and time (epoch milliseconds) of the newest record; zeros for an empty log. */
  readonly newest: { readonly seq: number; readonly at: number };
  /** Up to which seq the actors have been saved. */
  readonly savedSeq: number;
}

/** Records between two steps. */
const STEP = 100;

/**
 * The state of every actor after the newest record (or after `upTo`): the newest snapshots, and the records since
 * folded on them. The chain of the records that are read is checked.
 *
 * @throws HF_LOG_CORRUPT a record is not what was written
 */
export function recover(reader: HistoryReader, upTo = reader.lastSeq()): Recovered {
  return finish(recoverSteps(reader, upTo));
}

/** The same in steps. Yields the seq reached. @throws HF_LOG_CORRUPT a record is not what was written */
export function* recoverSteps(reader: HistoryReader, upTo: number): Generator<number, Recovered> {
  const base = reader.snapshotSeq(upTo);
  const saved = savedStates(reader, base);
  const states = new Map(saved.map((state) => [state.ref, state]));
  let { at } = saved.reduce((newest, state) => (state.seq > newest.seq ? state : newest), { seq: 0, at: 0 });
  yield base;
  for (const record of readChained(reader, base + 1, upTo)) {
    states.set(record.actor, applyRecord(states.get(record.actor), record));
    at = record.at;
    if (record.seq % STEP === 0) yield record.seq;
  }
  return { states, newest: { seq: upTo, at }, savedSeq: base };
}

/** The states of actors as they were saved at or before a seq. */
export function savedStates(reader: HistoryReader, upTo: number): ActorState[] {
  return reader.snapshots(upTo).map((body) => JSON.parse(body) as ActorState);
}

/** Every actor as of a record. */
export interface Moment {
  readonly seq: number;
  /** Epoch milliseconds of the record. */
  readonly at: number;
  /** By address in order. */
  readonly actors: readonly ActorState[];
}

/**
 * Every actor as it was right after a record (C7): the newest states saved before it, and the records since. Yields the seq
 * reached.
 *
 * @param seq in a log of some actors only, the newest record not after it counts
 * @throws HF_LOG_RANGE there is no such record; HF_LOG_CORRUPT
 */
export function* momentSteps(reader: HistoryReader, seq: number): Generator<number, Moment> {
  const [first, last] = [reader.firstSeq(), reader.lastSeq()];
  if (first === 0 || seq < first || seq > last) throw new KernelError('HF_LOG_RANGE', { seq, first, last });
  const { states, newest } = yield* recoverSteps(reader, seq);
  const actors = [...states.values()].sort((a, b) => (a.ref < b.ref ? -1 : 1));
  return { seq, at: newest.at, actors };
}

function finish<T>(steps: Generator<unknown, T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}
