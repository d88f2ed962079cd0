import { LRUCache } from 'lru-cache';
import type { Moment } from '../../kernel/actors/recover.ts';
import { type ActorState, applyRecord } from '../../kernel/actors/transition.ts';
import { KernelError } from '../../kernel/errors/kernel-error.ts';
import type { HistoryReader } from '../../kernel/log/event-log.ts';
import { parseRecord } from '../../kernel/log/record.ts';
import { Pace } from './pace.ts';

/** So many moments are kept, so that a step to the next record folds one record. */
const KEPT = 3;

interface Kept {
  readonly at: number;
  readonly states: ReadonlyMap<string, ActorState>;
  /** By address in order. */
  readonly actors: readonly ActorState[];
}

/**
 * Every actor as of any record, for somebody who goes from moment to moment: the fold begins at the nearest one that is known.
 * Unlike `momentSteps` it does not check the chain of the records, nor the digests of saved states.
 */
export class Moments {
  readonly #kept = new LRUCache<number, Kept>({ max: KEPT });

  /**
   * @param seq in a log of some actors only, the newest record not after it counts
   * @throws HF_LOG_RANGE there is no such record; HF_LOG_CORRUPT; the signal's reason
   */
  async at(log: HistoryReader, seq: number, signal?: AbortSignal): Promise<Moment> {
    const [first, last] = [log.firstSeq(), log.lastSeq()];
    if (first === 0 || seq < first || seq > last) throw new KernelError('HF_LOG_RANGE', { seq, first, last });
    const { actors, at } = this.#kept.get(seq) ?? (await this.#fold(log, seq, signal));
    return { seq, at, actors };
  }

  async #fold(log: HistoryReader, seq: number, signal: AbortSignal | undefined): Promise<Kept> {
    const saved = log.snapshotSeq(seq);
    const near = Math.max(0, ...[...this.#kept.keys()].filter((each) => each <= seq));
    const known = near > saved ? this.#kept.get(near) : undefined;
    const from = known ? near : saved;
    const pace = new Pace(signal);
    const states = known ? new Map(known.states) : await savedAt(log, saved, pace);
    let at = known?.at ?? timeAt(log, saved);
    /** The states that are this fold's own: those of another moment must not change. */
    const own = new Set<ActorState>();
    for (const page of log.pages({ from: from + 1, to: seq })) {
      for (const raw of page) {
        const record = parseRecord(raw.seq, raw.body);
        const before = states.get(record.actor);
        const next = applyRecord(before && !own.has(before) ? copyOf(before) : before, record);
        own.add(next);
        states.set(record.actor, next);
        at = record.at;
        await pace.next();
      }
    }
    const actors = [...states.values()].sort((a, b) => (a.ref < b.ref ? -1 : 1));
    const moment = { at, states, actors };
    this.#kept.set(seq, moment);
    return moment;
  }
}

/** Every actor as it was saved. @param at from `snapshotSeq` */
async function savedAt(log: HistoryReader, at: number, pace: Pace): Promise<Map<string, ActorState>> {
  const states = new Map<string, ActorState>();
  for (const page of log.snapshotPages(at)) {
    for (const body of page) {
      const state = JSON.parse(body) as ActorState;
      states.set(state.ref, state);
    }
    await pace.next();
  }
  return states;
}

/** A copy that `applyRecord` may change: contexts are replaced as a whole. */
function copyOf(state: ActorState): ActorState {
  return { ...state, timers: { ...state.timers }, effects: { ...state.effects } };
}

/** One actor as of a record. @returns undefined where it did not exist yet @throws HF_LOG_CORRUPT; the signal's reason */
export async function actorAt(
  log: HistoryReader,
  ref: string,
  seq: number,
  signal?: AbortSignal,
): Promise<ActorState | undefined> {
  const saved = log.snapshotOf(ref, seq);
  let state = saved === undefined ? undefined : (JSON.parse(saved) as ActorState);
  const pace = new Pace(signal);
  for (const page of log.pages({ from: (state?.seq ?? 0) + 1, to: seq, actor: ref })) {
    for (const raw of page) {
      state = applyRecord(state, parseRecord(raw.seq, raw.body));
      await pace.next();
    }
  }
  return state;
}

/** The time of the newest record that is not after one, which a log of some actors alone may lack; epoch milliseconds. */
export function timeAt(log: HistoryReader, seq: number): number {
  for (const [raw] of log.pages({ to: seq, reverse: true, limit: 1 }))
    if (raw) return parseRecord(raw.seq, raw.body).at;
  return 0;
}
