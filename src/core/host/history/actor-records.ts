import type { PageRecords } from '../../contracts/console.ts';
import type { ActorState } from '../../kernel/actors/transition.ts';
import type { LogRecord } from '../../kernel/log/record.ts';
import { Pace } from './pace.ts';
import type { LogQuestion } from './questions.ts';

/** The states of all actors at a record. */
interface StatesAt {
  readonly seq: number;
  readonly states: ReadonlyMap<string, Readonly<ActorState>>;
}

/** Records of one actor that are read at once. */
const CHUNK = 64;
/** So many are looked at however long it takes: a machine that is busy must not make a list empty. */
const LEAST = 128;

/** The records of one actor, newest first. */
interface Cursor {
  readonly ref: string;
  /** None that is still to come is newer. */
  newest: number;
  /** Those that were read and not taken yet. */
  read: LogRecord[];
}

/**
 * The newest records of some actors that are not after a moment, newest first: each actor is read by the log's index, some
 * records at a time, and always the one that can have the newest.
 *
 * @returns `more` where older ones may match, too: because of the limit, or because the search took too long
 */
export async function newestOfActors(
  { log, signal, enoughAt }: Pick<LogQuestion, 'log' | 'signal' | 'enoughAt'>,
  { seq, states }: StatesAt,
  { actors, events, limit }: PageRecords,
): Promise<{ records: LogRecord[]; more: boolean }> {
  const isWanted = events && new Set(events);
  const cursors = new Set<Cursor>();
  for (const ref of new Set(actors)) {
    const state = states.get(ref);
    if (state) cursors.add({ ref, newest: Math.min(state.seq, seq), read: [] });
  }
  const size = Math.min(limit, CHUNK);
  const pace = new Pace(signal);
  const records: LogRecord[] = [];
  let looked = 0;
  while (records.length < limit) {
    await pace.next();
    if (looked >= LEAST && performance.now() > enoughAt) break;
    let next: Cursor | undefined;
    for (const one of cursors) if (!next || one.newest > next.newest) next = one;
    if (!next) return { records, more: false };
    const [record, ...others] = next.read;
    if (record) {
      looked += 1;
      if (!isWanted || isWanted.has(record.event.type)) records.push(record);
      next.read = others;
      next.newest = others[0]?.seq ?? record.seq - 1;
      continue;
    }
    const range = { actor: next.ref, to: next.newest, reverse: true, limit: size };
    for await (const one of log.read(range)) next.read.push(one);
    if (next.read.length === 0) cursors.delete(next);
    next.newest = next.read[0]?.seq ?? 0;
  }
  return { records, more: cursors.size > 0 };
}
