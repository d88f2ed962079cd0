/** The order of points in memory stores, several lists of points side by side, and one number for all of them. */
import type { PointId } from './memory-store.ts';

/** @returns negative, 0 or positive; stores list numbers first, then UUIDs */
export function comparePointIds(a: PointId, b: PointId): number {
  if (typeof a !== typeof b) return typeof a === 'number' ? -1 : 1;
  return a === b ? 0 : a < b ? -1 : 1;
}

interface Identified {
  readonly id: PointId;
}

type Side<S> = S extends AsyncIterable<infer T> ? T | undefined : never;

/**
 * Walks along several lists at once, by id. One element of each is in memory at a time.
 *
 * @param lists each in the order of its ids
 * @yields an id, and what each list has under it
 */
export async function* alongside<L extends readonly AsyncIterable<Identified>[]>(
  ...lists: L
): AsyncGenerator<{ readonly id: PointId; readonly found: { readonly [K in keyof L]: Side<L[K]> } }> {
  const readers = lists.map((list) => list[Symbol.asyncIterator]());
  try {
    const heads = await Promise.all(readers.map((reader) => reader.next()));
    for (;;) {
      const waiting = heads.flatMap(({ done, value }) => (done === true ? [] : [(value as Identified).id]));
      const [first] = waiting.toSorted(comparePointIds);
      if (first === undefined) return;
      const isFirst = heads.map(({ done, value }) => done !== true && (value as Identified).id === first);
      const found = heads.map(({ value }, index) => (isFirst[index] ? value : undefined));
      yield { id: first, found: found as { readonly [K in keyof L]: Side<L[K]> } };
      await Promise.all(
        readers.map(async (reader, index) => {
          if (isFirst[index]) heads[index] = await reader.next();
        }),
      );
    }
  } finally {
    await Promise.all(readers.map((reader) => reader.return?.(undefined)));
  }
}

const BITS = 128;

/** The fingerprints of points added up: the same for the same points in any order, and another one for any others. */
export class DigestSum {
  #sum = 0n;

  /** @param fingerprint of the vault: `fp_` and 32 hexadecimal digits */
  add(fingerprint: string): void {
    this.#sum = BigInt.asUintN(BITS, this.#sum + BigInt(`0x${fingerprint.slice(3)}`));
  }

  /** 32 hexadecimal digits. */
  get text(): string {
    return this.#sum.toString(16).padStart(BITS / 4, '0');
  }
}
