import type { ActorDefinition } from '../actors/definition.ts';
import { savedStates } from '../actors/recover.ts';
import { readChained } from '../log/chain.ts';
import type { SqliteReader } from '../log/sqlite-reader.ts';
import { Replay, type ReplayReport } from './verify.ts';

/** Records between two steps of `verifySteps`. */
const STEP = 2_000;

/**
 * Verifies a log: its chain, and every decision in it, up to the first divergence (C4). A log whose oldest records
 * have been archived is verified from the snapshots that stand before what is left.
 *
 * @param definitions the actors' definitions by type
 * @throws HF_LOG_CORRUPT a record is not what was written
 * @public
 */
export function verifyLog(
  reader: SqliteReader,
  definitions: ReadonlyMap<string, ActorDefinition>,
): ReplayReport {
  const steps = verifySteps(reader, definitions);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/**
 * Replays a log step by step: yields the seq reached, so that a caller can show progress and handle signals in between.
 *
 * @throws HF_LOG_CORRUPT a record is not what was written
 */
export function* verifySteps(
  reader: SqliteReader,
  definitions: ReadonlyMap<string, ActorDefinition>,
): Generator<number, ReplayReport> {
  const first = Math.max(reader.firstSeq(), 1);
  const base = first > 1 ? savedStates(reader, first - 1) : [];
  let replay = new Replay(definitions, base);
  const reports: ReplayReport[] = [];
  let expected = first;
  let unknown = 0;
  // A log whose beginning is lost has no states to go on from before the first that were saved.
  let knownAfter = reader.isMissing(1, first - 1) && first > 1 ? behindGap(first) : 0;
  function behindGap(seq: number): number {
    const at = reader.checkpointFrom(seq - 1) ?? Number.MAX_SAFE_INTEGER;
    reports.push(replay.report());
    replay = new Replay(definitions, at === Number.MAX_SAFE_INTEGER ? [] : savedStates(reader, at));
    return at;
  }
  for (const record of readChained(reader, first, undefined, 'known')) {
    if (record.seq !== expected && !reader.partial) knownAfter = behindGap(record.seq);
    expected = record.seq + 1;
    if (record.seq <= knownAfter) unknown += 1;
    else if (!replay.check(record)) break;
    if (record.seq % STEP === 0) yield record.seq;
  }
  const last = replay.report();
  if (reports.length === 0) return last;
  const all = [...reports, last];
  return {
    ...last,
    records: all.reduce((sum, { records }) => sum + records, unknown),
    actors: Math.max(...all.map(({ actors }) => actors)),
    notCompared: all.flatMap(({ notCompared }) => notCompared),
    unknown,
  };
}
