import type {
  RecordedContent,
  RecordedPoint,
  SnapshotRecord,
  SnapshotRecords,
} from '../../../core/contracts/memory-store.ts';
import type { Copied, Report } from '../../../machines/restore/drill-shapes.ts';

/** What a restored collection must hold, by a record of what the live one held. */
export interface Expectation {
  readonly by: Exclude<Report['expected']['by'], 'live'>;
  /** When it was recorded, epoch milliseconds. */
  readonly at?: number;
  readonly content: RecordedContent;
  /** By id. @throws HF_MEMORY_RECORD the list is gone or damaged */
  readonly points: () => AsyncIterable<readonly RecordedPoint[]>;
}

/** @returns undefined where nothing is recorded: then only the live store can be compared with */
export function expectationOf(
  records: SnapshotRecords | undefined,
  record: SnapshotRecord | undefined,
  copied: Copied | undefined,
): Expectation | undefined {
  if (!records) return undefined;
  const of = (content: RecordedContent) => ({ content, points: () => records.points(content) });
  if (copied) return { by: 'copied', ...of(copied) };
  if (!record) return undefined;
  const { at, seenAt, content } = record;
  return seenAt === undefined
    ? { by: 'made', at, ...of(content) }
    : { by: 'seen', at: seenAt, ...of(content) };
}
