import type { LogRecord } from '../../src/core/kernel/log/record.ts';
import { SqliteLog } from '../../src/core/kernel/log/sqlite-log.ts';

/** A record of one of three doors, each an actor of its own. */
export function doorRecord(seq: number, more: Partial<LogRecord> = {}): LogRecord {
  return {
    seq,
    at: 1_767_225_600_000 + seq,
    actor: `test.door/${seq % 3}`,
    machine: 'door',
    version: 1,
    event: seq <= 3 ? { type: 'init', input: null } : { type: 'KNOCK' },
    ...(seq > 3 && { from: 'closed' }),
    to: { value: 'closed', context: { knocks: seq } },
    effects: [],
    correlation: `story-${seq % 3}`,
    ...more,
  };
}

/** Appends records to the log of a folder, and closes it. */
export async function appendRecords(
  dataDir: string,
  records: Iterable<LogRecord>,
  signEvery = 1_000,
): Promise<void> {
  const log = new SqliteLog({ dataDir, signEvery });
  for (const record of records) log.append(record, { durability: 'batched' });
  await log.close();
}
