import { resolve } from 'node:path';
import { markedRanges } from '../../core/host/integrity/damaged-ranges.ts';
import { openReader } from '../../core/kernel/log/portable/open-reader.ts';
import type { SqliteReader } from '../../core/kernel/log/sqlite-reader.ts';

/** The log that a command reads: the portable file or folder that an argument names, otherwise the data folder. */
export function sourceOf(argument: string | undefined, { dataDir }: { readonly dataDir: string }): string {
  return argument === undefined ? dataDir : resolve(argument);
}

/** The sources of a command that reads several of them as one log: archives in order, then the folder. */
export function sourcesOf(given: readonly string[], context: { readonly dataDir: string }): string[] {
  return given.length === 0 ? [context.dataDir] : given.map((one) => resolve(one));
}

/**
 * Says which records of the folders among some sources the newest check found damaged: a command that prints records one
 * by one does not check their chain.
 *
 * @param about only ranges that hold this record
 */
export function noteDamage(
  sources: readonly string[],
  { note }: { readonly note: (line: string) => void },
  about?: number,
): void {
  for (const { from, to, reason } of sources.flatMap(markedRanges)) {
    if (about !== undefined && (about < from || about > to)) continue;
    note(`Do not rely on records ${from} to ${to}: the newest check found them damaged (${reason}).`);
  }
}

/**
 * Opens a log, and closes it when `work` has ended. The instance may be running meanwhile.
 *
 * @param source a data folder, or a file that `log export` wrote; of several, each continues the one before
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
