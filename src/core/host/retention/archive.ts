import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { recover } from '../../kernel/actors/recover.ts';
import { type ErrorData, isCoded } from '../../kernel/errors/holdfast-error.ts';
import { KernelError } from '../../kernel/errors/kernel-error.ts';
import { readChained } from '../../kernel/log/chain.ts';
import { portableHeader, portableLines } from '../../kernel/log/portable/export.ts';
import { counted, writePortable } from '../../kernel/log/portable/file.ts';
import { openReader } from '../../kernel/log/portable/open-reader.ts';
import { findLogKey } from '../../kernel/log/signing.ts';
import type { SqliteReader } from '../../kernel/log/sqlite-reader.ts';
import { type ArchiveFile, archiveName, archivesIn } from './archive-files.ts';
import type { PruneJob, PrunePlan } from './plan.ts';

export interface ArchiveOptions {
  readonly signal?: AbortSignal | undefined;
  /** Gets the bytes archived so far and the part that is done, 0 to 1. */
  readonly onProgress?: ((bytes: number, part?: number) => void) | undefined;
}

/**
 * Writes a prefix into a file of its own, and reads it back: nothing is deleted that was not seen there.
 *
 * @returns the file, whose name sorts by its first record
 * @throws HF_PORTABLE_WRITE; HF_LOG_CORRUPT the log, or the file as it was read back, is not what was written
 */
export async function archive(
  reader: SqliteReader,
  { from, to }: PrunePlan,
  { dataDir, folder, now }: Omit<PruneJob, 'request'>,
  { signal, onProgress }: ArchiveOptions = {},
): Promise<string> {
  const file = join(folder, archiveName(from, to));
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new KernelError('HF_PORTABLE_WRITE', { file, reason }, { cause: error });
  }
  const part = { from, to };
  const header = portableHeader(reader, part, now);
  const before = from > 1 ? recover(reader, from - 1).states.values() : [];
  const lines = portableLines(reader, part, header, before, findLogKey(dataDir));
  await writePortable(file, counted(lines, to - from + 1, onProgress), signal);
  if (await holds(file, reader, part, signal)) return file;
  throw new KernelError('HF_LOG_CORRUPT', { seq: to, reason: `it is not in ${file} as it was written` });
}

/** Reads a file back. @returns whether it holds the records of a part of a log, chained, to the last one's hash */
async function holds(
  file: string,
  reader: SqliteReader,
  { from, to }: { readonly from: number; readonly to: number },
  signal?: AbortSignal,
): Promise<boolean> {
  const written = await openReader(file, signal);
  try {
    for (const _ of readChained(written, from));
    return written.lastSeq() === to && written.hashOf(to) === reader.hashOf(to);
  } finally {
    written.close();
  }
}

/**
 * Finds the archive that a run made which was killed before it deleted what is in it: nothing need be written again.
 *
 * @returns undefined when there is none, or it does not hold what the log has
 */
export async function archivedBefore(
  reader: SqliteReader,
  { from }: PrunePlan,
  folder: string,
): Promise<ArchiveFile | undefined> {
  const left = archivesIn(folder).findLast(
    (archive) => archive.from === from && archive.to < reader.lastSeq(),
  );
  try {
    return left && (await holds(left.file, reader, left)) ? left : undefined;
  } catch (error) {
    if (isCoded(error)) return undefined; // a new one takes its place, under another name or the same
    throw error;
  }
}

/** The states of all actors where what stays begins, in parts: actor and state, one after another. */
export function* statesAt(reader: SqliteReader, to: number): Generator<string[]> {
  const rows = [...recover(reader, to).states.values()].flatMap((state) => [
    state.ref,
    JSON.stringify(state),
  ]);
  for (let at = 0; at < rows.length; at += 512) yield rows.slice(at, at + 512);
}

/** What the archiving thread answers to a `PruneJob`: the plan with the file, then the states where what stays begins; or why not. */
export type ArchiverMessage =
  | { readonly kind: 'archived'; readonly plan: PrunePlan; readonly file?: string }
  | { readonly kind: 'states'; readonly rows: readonly string[] }
  | { readonly kind: 'end' }
  | { readonly kind: 'failed'; readonly error: ErrorData };
