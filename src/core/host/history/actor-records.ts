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

/**
 * The newest records of some actors that are not after a moment, newest first: each actor is read by the log's index,
 * those first that have the newest record, until no other can have a newer one.
 *
 * @returns `more` where older ones may match, too: because of the limit, or because the search took too long
 */
export async function newestOfActors(
  { log, signal, enoughAt }: Pick<LogQuestion, 'log' | 'signal' | 'enoughAt'>,
  { seq, states }: StatesAt,
  { actors, events, limit }: PageRecords,
): Promise<{ records: LogRecord[]; more: boolean }> {
  const byNewest = actors
    .flatMap((ref) => {
      const newest = states.get(ref)?.seq;
      return newest === undefined ? [] : [{ ref, newest }];
    })
    .sort((a, b) => b.newest - a.newest);
  const isWanted = events && new Set(events);
  const pace = new Pace(signal);
  let found: LogRecord[] = [];
  let more = false;
  for (const { ref, newest } of byNewest) {
    const oldest = found.length >= limit ? (found.at(-1)?.seq ?? 0) : 0;
    if (newest <= oldest) return { records: found, more: true };
    const own: LogRecord[] = [];
    for await (const record of log.read({ actor: ref, from: oldest + 1, to: seq, reverse: true })) {
      await pace.next();
      const isLate = performance.now() > enoughAt;
      if (isLate || own.length === limit) more = true;
      if (isLate || own.length === limit) break;
      if (!isWanted || isWanted.has(record.event.type)) own.push(record);
    }
    const merged = [...found, ...own].sort((a, b) => b.seq - a.seq);
    more ||= merged.length > limit || oldest > 0;
    found = merged.slice(0, limit);
    if (performance.now() > enoughAt) return { records: found, more: true };
  }
  return { records: found, more };
}
