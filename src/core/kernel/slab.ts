/**
 * What comes and goes thousands of times a second, each at a place of its own. A Map or a Set rebuilds its table as it
 * is used, and the old table goes on pointing to the new one: once garbage collection counts one of them as old,
 * whatever was in any of them since is kept until all memory is collected. A place that was left holds nothing.
 */
export class Slab<Item extends object> implements Iterable<Item> {
  readonly #items: (Item | undefined)[] = [];
  readonly #free: number[] = [];

  get size(): number {
    return this.#items.length - this.#free.length;
  }

  /** @returns its place */
  add(item: Item): number {
    const place = this.#free.pop() ?? this.#items.length;
    this.#items[place] = item;
    return place;
  }

  at(place: number): Item | undefined {
    return this.#items[place];
  }

  /** Removes an item from its place, unless it has left it before: somebody else may be there now. */
  remove(place: number, item: Item): void {
    if (this.#items[place] !== item) return;
    this.#items[place] = undefined;
    this.#free.push(place);
  }

  *[Symbol.iterator](): Generator<Item> {
    for (const item of this.#items) if (item !== undefined) yield item;
  }
}

/** The same by name: the tables of its Map hold nothing but names and numbers. */
export class NamedSlab<Item extends object> {
  readonly #slab = new Slab<Item>();
  readonly #places = new Map<string, number>();

  get size(): number {
    return this.#places.size;
  }

  has(name: string): boolean {
    return this.#places.has(name);
  }

  names(): Iterable<string> {
    return this.#places.keys();
  }

  get(name: string): Item | undefined {
    const place = this.#places.get(name);
    return place === undefined ? undefined : this.#slab.at(place);
  }

  /** Adds it in place of one of the same name. */
  set(name: string, item: Item): void {
    this.take(name);
    this.#places.set(name, this.#slab.add(item));
  }

  /** @returns what was there under this name, and is not any more */
  take(name: string): Item | undefined {
    const place = this.#places.get(name);
    const item = place === undefined ? undefined : this.#slab.at(place);
    if (place === undefined || item === undefined) return undefined;
    this.#places.delete(name);
    this.#slab.remove(place, item);
    return item;
  }
}
