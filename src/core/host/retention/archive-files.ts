import { readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { syncPath } from '../../kernel/durable-file.ts';

/** A file of archived records. */
export interface ArchiveFile {
  /** Absolute path. */
  readonly file: string;
  readonly name: string;
  /** Its first and its last record. */
  readonly from: number;
  readonly to: number;
  readonly bytes: number;
}

const NAME = /^log-(\d{12})-(\d{12})\.jsonl\.gz$/;
/** What a kill left of an archive that was being written. */
const PART = /^log-\d{12}-\d{12}\.jsonl\.gz\.\d+\.part$/;

/** The name of an archive; names sort by the first record. */
export function archiveName(from: number, to: number): string {
  const number = (seq: number) => String(seq).padStart(12, '0');
  return `log-${number(from)}-${number(to)}.jsonl.gz`;
}

/** The archives in a folder, oldest records first; what else lies there is not ours. */
export function archivesIn(folder: string): ArchiveFile[] {
  return namesIn(folder)
    .toSorted()
    .flatMap((name) => {
      const [, from, to] = NAME.exec(name) ?? [];
      const stat = from === undefined ? undefined : statSync(join(folder, name), { throwIfNoEntry: false });
      if (!stat?.isFile()) return [];
      return [{ file: join(folder, name), name, from: Number(from), to: Number(to), bytes: stat.size }];
    });
}

/** The oldest archives that must go so that the rest keeps a limit, oldest first. */
export function beyondLimit(archives: readonly ArchiveFile[], limit: number): ArchiveFile[] {
  let left = totalBytes(archives);
  return archives.filter(({ bytes }) => {
    if (left <= limit) return false;
    left -= bytes;
    return true;
  });
}

export function totalBytes(archives: readonly ArchiveFile[]): number {
  return archives.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** Deletes an archive, for good when this returns. */
export function deleteArchive({ file }: ArchiveFile): void {
  rmSync(file, { force: true });
  syncPath(join(file, '..'));
}

/** Deletes what a kill left of archives that were being written. Only while none is. */
export function clearParts(folder: string): void {
  for (const name of namesIn(folder)) if (PART.test(name)) rmSync(join(folder, name), { force: true });
}

/** None where the folder is not there, or is none: whoever writes into it says so. */
function namesIn(folder: string): string[] {
  const stat = statSync(folder, { throwIfNoEntry: false });
  return stat?.isDirectory() ? readdirSync(folder) : [];
}
