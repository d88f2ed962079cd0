import { isObject } from '../json.ts';
import type { HistoryReader } from '../log/event-log.ts';
import type { LogRecord } from '../log/record.ts';

/** Which earlier records of its actor made a record's decision what it was. */
export interface Since {
  /** The record that entered the state in which the actor was; absent where it is not in this log any more. */
  readonly entered?: LogRecord;
  /** The record that made the revision by which an effect says that it was decided, such as a revocation. */
  readonly decidedBy?: { readonly revision: number; readonly record: LogRecord };
}

/**
 * Finds since when a record's decision had to be as it was: the record that entered the actor's state, and the one that made the
 * revision of its rules that an effect names in its parameter `revision`.
 *
 * @returns undefined for an actor's first record
 * @throws HF_LOG_CORRUPT
 */
export function* sinceSteps(
  reader: HistoryReader,
  record: LogRecord,
): Generator<undefined, Since | undefined> {
  const { seq, actor, from } = record;
  if (from === undefined) return undefined;
  const entered = yield* reader.stateEntered(actor, seq - 1);
  const revision = revisionOf(record);
  const made =
    revision === undefined ? undefined : yield* reader.contextSet(actor, seq - 1, 'revision', revision);
  return {
    ...(entered !== undefined && { entered: reader.record(entered) }),
    ...(revision !== undefined &&
      made !== undefined && { decidedBy: { revision, record: reader.record(made) } }),
  };
}

function revisionOf({ effects }: LogRecord): number | undefined {
  const named = effects.flatMap(({ params }) =>
    isObject(params) && typeof params.revision === 'number' ? [params.revision] : [],
  );
  return named[0];
}
