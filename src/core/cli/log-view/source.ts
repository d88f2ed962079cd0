import type { LogRecord } from '../../log/record.ts';
import { SqliteReader } from '../../log/sqlite-reader.ts';
import { redact } from '../../logging/index.ts';

/**
 * The log that a command reads, opened for as long as `work` takes. A running instance does not mind.
 *
 * @throws HF_LOG_MISSING, HF_LOG_FORMAT
 */
export async function withLog<T>(dataDir: string, work: (log: SqliteReader) => Promise<T>): Promise<T> {
  const log = new SqliteReader(dataDir);
  try {
    return await work(log);
  } finally {
    log.close();
  }
}

/** A record as it may be shown. Events hold no secrets; should one hold one all the same, it ends here. */
export function shown(record: LogRecord): LogRecord {
  return redact(record) as unknown as LogRecord;
}
