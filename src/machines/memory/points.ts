/** The order of points in memory stores, several lists of points side by side, and one number for all of them. */

/** As the stores name points. */
type PointId = number | string;

/** @returns negative, 0 or positive; stores list numbers first, then UUIDs */
export function comparePointIds(a: PointId, b: PointId): number {
  if (typeof a !== typeof b) return typeof a === 'number' ? -1 : 1;
  return a === b ? 0 : a < b ? -1 : 1;
}

interface Identified {
  readonly id: PointId;
}

type Side<S> = S extends AsyncIterable<readonly (infer T)[]> ? T | undefined : never;

interface Place {
  readonly pages: AsyncIterator<readonly Identified[]>;
  page: readonly Identified[];
  at: number;
  isOver: boolean;
}

/**
 * Walks along several lists at once, by id. A page of each is in memory at a time.
 *
 * @param lists each in the order of its ids, page by page
 * @yields pages of ids, and what each list has under them
 */
export async function* alongside<L extends readonly AsyncIterable<readonly Identified[]>[]>(
  ...lists: L
): AsyncGenerator<
  readonly { readonly id: PointId; readonly found: { readonly [K in keyof L]: Side<L[K]> } }[]
> {
  const places = lists.map((list): Place => {
    return { pages: list[Symbol.asyncIterator](), page: [], at: 0, isOver: false };
  });
  try {
    for (;;) {
      await Promise.all(places.map(turnPage));
      const open = places.filter(({ isOver }) => !isOver);
      if (open.length === 0) return;
      const page: { id: PointId; found: { readonly [K in keyof L]: Side<L[K]> } }[] = [];
      while (open.every(({ page: { length }, at }) => at < length)) {
        const id = firstOf(open);
        const found = places.map((place) => {
          const here = place.page[place.at];
          if (here?.id !== id) return undefined;
          place.at += 1;
          return here;
        });
        page.push({ id, found: found as { readonly [K in keyof L]: Side<L[K]> } });
      }
      yield page;
    }
  } finally {
    await Promise.all(places.map(({ pages }) => pages.return?.(undefined)));
  }
}

async function turnPage(place: Place): Promise<void> {
  while (!place.isOver && place.at === place.page.length) {
    const { done, value } = await place.pages.next();
    place.isOver = done === true;
    place.page = done ? [] : value;
    place.at = 0;
  }
}

/** @param places each has a point */
function firstOf(places: readonly Place[]): PointId {
  let first: PointId | undefined;
  for (const { page, at } of places) {
    const { id } = page[at] as Identified;
    if (first === undefined || comparePointIds(id, first) < 0) first = id;
  }
  return first as PointId;
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
