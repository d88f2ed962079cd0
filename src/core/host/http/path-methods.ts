import type { RouteOptions } from 'fastify';

interface Entry {
  readonly pattern: RegExp;
  readonly methods: Set<string>;
}

/**
 * The routes of a surface by path pattern, for the one question that fastify does not answer: with which methods
 * would this path have been found?
 */
export class PathMethods {
  readonly #entries = new Map<string, Entry>();
  readonly #lenient: boolean;

  /** @param lenient whether letter case and a slash at the end make no difference */
  constructor(lenient: boolean) {
    this.#lenient = lenient;
  }

  add({ url, method }: Pick<RouteOptions, 'url' | 'method'>): void {
    const entry = this.#entries.get(url) ?? { pattern: patternOf(url, this.#lenient), methods: new Set() };
    for (const name of [method].flat()) entry.methods.add(name);
    this.#entries.set(url, entry);
  }

  /** @returns the methods of every route that the path fits, sorted; empty when there is nothing at the path */
  methodsOf(path: string): string[] {
    const methods = new Set<string>();
    for (const entry of this.#entries.values()) {
      if (entry.pattern.test(path)) for (const method of entry.methods) methods.add(method);
    }
    return [...methods].sort();
  }
}

/** What a path pattern has besides plain text: `:name`, with or without a pattern or `?` behind it; `*`; special signs of RegExp. */
const PART = /:\w+(?:\([^)]*\))?(\?)?|\*|[.+^${}()|[\]\\?]/g;

function patternOf(url: string, lenient: boolean): RegExp {
  const source = url.replace(PART, (part, optional?: string) => {
    if (part.startsWith(':')) return optional ? '[^/]*' : '[^/]+';
    return part === '*' ? '.*' : `\\${part}`;
  });
  return lenient ? new RegExp(`^${source}/?$`, 'i') : new RegExp(`^${source}$`);
}
