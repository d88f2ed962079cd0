interface Identified<Id> {
  readonly id: Id;
}

type Side<S> = S extends AsyncIterable<readonly (infer T)[]> ? T | undefined : never;

interface Place<Id> {
  readonly pages: AsyncIterator<readonly Identified<Id>[]>;
  page: readonly Identified<Id>[];
  at: number;
  isOver: boolean;
}

/**
 * Joins several sorted lists by id, with what each list lacks as undefined. A page of each is in memory at a time.
 *
 * @param compare the order of ids: negative, 0 or positive
 * @param lists each in that order, page by page
 * @yields pages of ids, and what each list has under them
 */
export async function* mergeJoin<Id, L extends readonly AsyncIterable<readonly Identified<Id>[]>[]>(
  compare: (a: Id, b: Id) => number,
  ...lists: L
): AsyncGenerator<readonly { readonly id: Id; readonly found: { readonly [K in keyof L]: Side<L[K]> } }[]> {
  const places = lists.map((list): Place<Id> => {
    return { pages: list[Symbol.asyncIterator](), page: [], at: 0, isOver: false };
  });
  try {
    for (;;) {
      await Promise.all(places.map(turnPage));
      const open = places.filter(({ isOver }) => !isOver);
      if (open.length === 0) return;
      const page: { id: Id; found: { readonly [K in keyof L]: Side<L[K]> } }[] = [];
      while (open.every(({ page: { length }, at }) => at < length)) {
        const id = firstOf(open, compare);
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

async function turnPage<Id>(place: Place<Id>): Promise<void> {
  while (!place.isOver && place.at === place.page.length) {
    const { done, value } = await place.pages.next();
    place.isOver = done === true;
    place.page = done ? [] : value;
    place.at = 0;
  }
}

/** @param places each has a point */
function firstOf<Id>(places: readonly Place<Id>[], compare: (a: Id, b: Id) => number): Id {
  let first: Id | undefined;
  for (const { page, at } of places) {
    const { id } = page[at] as Identified<Id>;
    if (first === undefined || compare(id, first) < 0) first = id;
  }
  return first as Id;
}
