import { resolve } from 'node:path';
import { openReader } from '../../log/portable/index.ts';
import type { LogRecord } from '../../log/record.ts';
import type { SqliteReader } from '../../log/sqlite-reader.ts';
import { redact } from '../../logging/index.ts';

/** What a command of the log reads: a portable file or folder that an argument names, else the data folder. */
export function sourceOf(argument: string | undefined, { dataDir }: { readonly dataDir: string }): string {
  return argument === undefined ? dataDir : resolve(argument);
}

/** The same for a command that reads several as one: archives in order, then the folder. */
export function sourcesOf(given: readonly string[], context: { readonly dataDir: string }): string[] {
  return given.length === 0 ? [context.dataDir] : given.map((one) => resolve(one));
}

/**
 * The log that a command reads, opened for as long as `work` takes. A running instance does not mind.
 *
 * @param source a data folder, or a file that `log export` wrote; several go on where the one before ends
 * @throws HF_LOG_MISSING, HF_LOG_FORMAT, HF_PORTABLE_*
 */
export async function withLog<T>(
  source: string | readonly string[],
  work: (log: SqliteReader) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const log = await openReader(source, signal);
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
