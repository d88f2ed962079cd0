import { readFileSync } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';

/** A list in a file of the data folder, which a power cut does not lose. One that changes seldom. */
export class DurableList<T> {
  readonly #file: string;
  #list: readonly T[];
  #saved: readonly T[];
  #writing: Promise<void> = Promise.resolve();

  /** @param onError hears of a file, or of a part of it, that cannot be read: that part counts as absent */
  constructor(file: string, entry: z.ZodType<T>, onError: (error: unknown) => void) {
    this.#file = file;
    this.#list = read(file, entry, onError);
    this.#saved = this.#list;
  }

  get current(): readonly T[] {
    return this.#list;
  }

  set(list: readonly T[]): void {
    this.#list = list;
  }

  /** Resolves when the file says what was set last. @throws what the disk says; the file is then as it was */
  saved(): Promise<void> {
    const writing = this.#writing.then(() => this.#write());
    this.#writing = writing.catch(() => {});
    return writing;
  }

  /** A reader finds the old file or the new one. */
  async #write(): Promise<void> {
    const list = this.#list;
    if (list === this.#saved) return;
    const draft = `${this.#file}.new`;
    const file = await open(draft, 'w', 0o600);
    try {
      await file.writeFile(JSON.stringify(list));
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, this.#file);
    const folder = await open(dirname(this.#file), 'r');
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
    this.#saved = list;
  }
}

function read<T>(file: string, entry: z.ZodType<T>, onError: (error: unknown) => void): readonly T[] {
  try {
    const list = z.array(z.unknown()).parse(JSON.parse(readFileSync(file, 'utf8')));
    return list.flatMap((one) => {
      const { data, error } = entry.safeParse(one);
      if (error) onError(error);
      return data === undefined ? [] : [data];
    });
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) onError(error);
    return [];
  }
}
