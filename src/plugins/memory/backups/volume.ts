import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { MemoryInstance } from '../../../core/contracts/memory-store.ts';
import type { ListedBackup } from '../../../machines/memory/backups-shapes.ts';
import { copyName, copyTime, ofOurShape } from './names.ts';

/** Copies of the embedded store's volume, in a folder of the data folder. */
export class VolumeCopies {
  readonly #folder: string;
  readonly #instance: MemoryInstance;

  constructor(dataDir: string, instance: MemoryInstance) {
    this.#folder = join(dataDir, 'backups', 'volume');
    this.#instance = instance;
  }

  /** All collections as they are at one moment. @param at epoch milliseconds, in its name */
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
    return ofOurShape(files, copyTime);
  }

  /** @param name one of the list: anything else is not touched */
  async delete(name: string): Promise<void> {
    if (copyTime(name) !== undefined) await rm(join(this.#folder, name), { force: true });
  }
}
