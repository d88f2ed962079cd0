/** The names of backups, which carry their time, and the folder of volume copies. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { MemoryInstance } from '../../../core/contracts/memory-store.ts';
import type { ListedBackup } from '../../../machines/memory/backups-rules.ts';
import { MemoryError } from '../errors.ts';

const TIME = /-(\d{4})-(\d\d)-(\d\d)-(\d\d)-(\d\d)-(\d\d)$/;

/**
 * When a snapshot was made, by its name (`<collection>-<numeric id>-<date>-<time>.snapshot`, UTC).
 *
 * @returns epoch milliseconds; undefined for a file of another name, which is never pruned
 */
export function snapshotTime(collection: string, name: string): number | undefined {
  if (!name.startsWith(`${collection}-`) || !name.endsWith('.snapshot')) return undefined;
  const rest = name.slice(collection.length, -'.snapshot'.length);
  return /^-\d+-/.test(rest) ? parseTime(rest) : undefined;
}

/** The files that have the name of a backup, with the time in it. */
export function backupsAmong(
  files: readonly { readonly name: string; readonly size: number }[],
  timeOf: (name: string) => number | undefined,
): ListedBackup[] {
  return files.flatMap(({ name, size }) => {
    const at = timeOf(name);
    return at === undefined ? [] : [{ name, at, size }];
  });
}

/** Copies of the embedded store's volume, in a folder of the data folder. */
export class VolumeCopies {
  readonly #folder: string;
  readonly #instance: MemoryInstance;

  /** @param dataDir absolute path of the data folder */
  constructor(dataDir: string, instance: MemoryInstance) {
    this.#folder = join(dataDir, 'backups', 'volume');
    this.#instance = instance;
  }

  /** Copies all collections as they are at one moment. @param at epoch milliseconds, which the name contains */
  async make(at: number): Promise<ListedBackup> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const name = copyName(at);
    await this.#instance.copyTo(join(this.#folder, name));
    const { size } = await stat(join(this.#folder, name));
    return { name, at: copyTime(name) ?? at, size };
  }

  async list(): Promise<readonly ListedBackup[]> {
    const names = await readdir(this.#folder).catch(() => []);
    const files = await Promise.all(
      names.map(async (name) => {
        const found = await stat(join(this.#folder, name)).catch(() => undefined);
        return { name, size: found?.size ?? 0 };
      }),
    );
    return backupsAmong(files, copyTime);
  }

  /** Absolute path of a copy. */
  fileOf(name: string): string {
    return join(this.#folder, name);
  }

  /** Whether it has the name of a copy. */
  isCopy(name: string): boolean {
    return copyTime(name) !== undefined;
  }

  /** SHA-256 of a copy's file as it is now. @throws HF_MEMORY_BACKUP it cannot be read */
  async digest(name: string, signal: AbortSignal): Promise<{ readonly sha256: string }> {
    const sha256 = createHash('sha256');
    try {
      for await (const chunk of createReadStream(this.fileOf(name), { signal })) sha256.update(chunk);
    } catch (error) {
      signal.throwIfAborted();
      const { code, message } = error as NodeJS.ErrnoException;
      throw new MemoryError('HF_MEMORY_BACKUP', { reason: `${name} cannot be read (${code ?? message})` });
    }
    return { sha256: sha256.digest('hex') };
  }

  /** @param name of a listed copy; other files are not deleted */
  async delete(name: string): Promise<void> {
    if (copyTime(name) !== undefined) await rm(join(this.#folder, name), { force: true });
  }
}

const copyName = (at: number): string =>
  `memory-${new Date(at).toISOString().slice(0, 19).replaceAll(/[T:]/g, '-')}.db`;

function copyTime(name: string): number | undefined {
  return /^memory-[\d-]+\.db$/.test(name) ? parseTime(name.slice(0, -'.db'.length)) : undefined;
}

function parseTime(text: string): number | undefined {
  const [, year, month, day, hour, minute, second] = TIME.exec(text) ?? [];
  if (second === undefined) return undefined;
  const at = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  return Number.isNaN(at) ? undefined : at;
}
