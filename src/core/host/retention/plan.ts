import { recover } from '../../kernel/actors/recover.ts';
import { type ClockJump, jumpsOf, timeByPresentClock } from '../../kernel/clock-jumps.ts';
import { seqOfEffect } from '../../kernel/ids.ts';
import { CLOCK } from '../../kernel/log/record.ts';
import type { SqliteReader } from '../../kernel/log/sqlite-reader.ts';

/** What may go. One of the two limits is enough; with both, what either lets go goes. */
export interface PruneRequest {
  /** Records older than so many milliseconds. */
  readonly olderThanMs?: number | undefined;
  /** The oldest records beyond so many bytes of database. */
  readonly keepBytes?: number | undefined;
  /** At most so many bytes of database at once, about. */
  readonly mostBytes?: number | undefined;
  /** Records from this one on stay. */
  readonly keepFrom?: number | undefined;
  /** Whether an open effect or timer keeps the record that it came from, and all later ones; true unless set. */
  readonly openStays?: boolean | undefined;
}

/** One prune of one log. */
export interface PruneJob {
  readonly dataDir: string;
  readonly request: PruneRequest;
  /** Absolute path; where the archive goes. */
  readonly folder: string;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** A prefix that may go, and what keeps more from going. */
export interface PrunePlan {
  readonly from: number;
  /** Inclusive; less than `from` when nothing goes. */
  readonly to: number;
  /** Epoch milliseconds of the last record that goes. */
  readonly until?: number;
  /** About so many bytes of the database become free. */
  readonly bytes: number;
  /** An effect or a timer that is open since a record: from there on all stays, so that it can be explained. */
  readonly heldBy?: { readonly seq: number; readonly actor: string };
}

/**
 * Finds the prefix that a request lets go. The newest record stays, and whatever an open effect or timer came from;
 * bodies are no part of it: they live as long as a state names them.
 *
 * @param now epoch milliseconds
 */
export function planPrune(reader: SqliteReader, request: PruneRequest, now: number): PrunePlan {
  const from = Math.max(reader.firstSeq(), 1);
  const last = reader.lastSeq();
  const perRecord = reader.usedBytes() / Math.max(1, last - from + 1);
  const jumps = () => jumpsOf(recover(reader).states.get(CLOCK.actor));
  const { olderThanMs } = request;
  const byAge = olderThanMs === undefined ? 0 : newestBefore(reader, now - olderThanMs, jumps());
  const over = request.keepBytes === undefined ? 0 : reader.usedBytes() - request.keepBytes;
  const bySize = over > 0 ? from - 1 + Math.ceil(over / perRecord) : 0;
  const most = from - 1 + Math.ceil((request.mostBytes ?? Number.POSITIVE_INFINITY) / perRecord);
  const kept = (request.keepFrom ?? Number.POSITIVE_INFINITY) - 1;
  const wanted = Math.min(Math.max(byAge, bySize), most, last - 1, kept);
  const held = wanted >= from && request.openStays !== false ? oldestOpen(reader) : undefined;
  const holds = held !== undefined && held.seq <= wanted;
  const to = holds ? held.seq - 1 : wanted;
  return {
    from,
    to,
    bytes: Math.round(Math.max(0, to - from + 1) * perRecord),
    ...(to >= from && { until: reader.record(to).at }),
    ...(holds && { heldBy: held }),
  };
}

/**
 * The newest record older than a time, by binary search. A record is as old as the time that passed since: a clock that was
 * set a year ahead makes none older.
 *
 * @param at epoch milliseconds
 * @param jumps of the wall clock
 * @returns the number before the first record when none is older
 */
export function newestBefore(reader: SqliteReader, at: number, jumps: readonly ClockJump[]): number {
  let low = Math.max(reader.firstSeq(), 1);
  let high = reader.lastSeq() + 1;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (timeByPresentClock(reader.record(middle).at, middle, jumps) >= at) high = middle;
    else low = middle + 1;
  }
  return low - 1;
}

function oldestOpen(reader: SqliteReader): { seq: number; actor: string } | undefined {
  let oldest: { seq: number; actor: string } | undefined;
  for (const { ref, effects, timers } of recover(reader).states.values()) {
    for (const id of [...Object.keys(effects), ...Object.values(timers).map((timer) => timer.id)]) {
      const seq = seqOfEffect(id);
      if (!oldest || seq < oldest.seq) oldest = { seq, actor: ref };
    }
  }
  return oldest;
}
