import type { ActorDefinition } from '../actors/definition.ts';
import { readChained } from '../log/chained.ts';
import type { SqliteReader } from '../log/sqlite-reader.ts';
import { Replay, type ReplayReport } from './verify.ts';

/**
 * Verifies a log: its chain, and every decision in it, up to the first divergence (C4). A log whose oldest records
 * have been archived is verified from the snapshots that stand before what is left.
 *
 * @param definitions the actors' definitions by type
 * @throws HF_LOG_CORRUPT a record is not what was written
 */
export function verifyLog(
  reader: SqliteReader,
  definitions: ReadonlyMap<string, ActorDefinition>,
): ReplayReport {
  const first = Math.max(reader.firstSeq(), 1);
  const base = first > 1 ? reader.snapshots(first - 1).states : [];
  const replay = new Replay(definitions, base);
  for (const record of readChained(reader, first)) if (!replay.check(record)) break;
  return replay.report();
}
