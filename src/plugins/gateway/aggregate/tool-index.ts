import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type MiniSearch from 'minisearch';
import { isObject } from '../../../core/kernel/json.ts';

/** Characters of all tools together that are indexed; names and titles always are. */
const INDEXED = 1024 * 1024;
/** Characters of one tool, of its name, and of a word. */
const OF_TOOL = 4_096;
const OF_NAME = 256;
const OF_WORD = 32;
/** Words of a query that are looked for. */
const MOST_WORDS = 12;
/** Lists of tools whose index is kept, and their size in JSON, bytes. */
const MOST_INDEXES = 64;
const INDEXED_LISTS: number = 64 * 1024 * 1024;

/** The definition of a tool as clients see it. */
export type ToolDefinition = Readonly<Record<string, unknown>> & { readonly name: string };

/** Tools by their place in the list, the best first. */
type Search = (query: string) => readonly number[];

/**
 * Finds tools by words of their names, descriptions and parameters. The index of a list is made when it is first searched,
 * and again when the list is another one.
 */
export class ToolIndex {
  readonly #searches = new LRUCache<string, Promise<Search>>({ max: MOST_INDEXES, maxSize: INDEXED_LISTS });

  /** How many indexes were made. */
  made = 0;

  /**
   * @param tools all that may be found
   * @param query at most a few words: those beyond the twelfth do not count
   * @returns those that have one of the words, the best first
   */
  async find(tools: readonly ToolDefinition[], query: string): Promise<readonly ToolDefinition[]> {
    const text = JSON.stringify(tools);
    const key = hash('sha256', text, 'base64url');
    const known = this.#searches.get(key);
    const making = known ?? this.#make(tools);
    if (!known) this.#searches.set(key, making, { size: Math.max(1, text.length) });
    making.catch(() => this.#searches.delete(key)); // the next search makes it again
    const search = await making;
    return search(query).flatMap((place) => tools[place] ?? []);
  }

  async #make(tools: readonly ToolDefinition[]): Promise<Search> {
    this.made += 1;
    const { default: Index } = await import('minisearch');
    const index: MiniSearch = new Index({
      idField: 'place',
      fields: ['name', 'title', 'description', 'parameters'],
      tokenize: wordsOf,
      processTerm: (word) => word.toLowerCase().slice(0, OF_WORD),
    });
    const each = Math.min(OF_TOOL, Math.ceil(INDEXED / Math.max(1, tools.length)));
    await index.addAllAsync(
      tools.map((tool, place) => ({ place, ...indexed(tool, each) })),
      { chunkSize: 50 },
    );
    return (query) =>
      index
        .search(wordsOf(query).slice(0, MOST_WORDS).join(' '), {
          boost: { name: 4, title: 2, description: 1.5 },
          prefix: (word) => word.length > 2,
          fuzzy: (word) => (word.length > 4 ? 0.2 : false),
          maxFuzzy: 2,
        })
        .map(({ id }) => Number(id));
  }
}

/** Names are written `read_file`, `read-file` and `readFile`. */
const wordsOf = (text: string): string[] =>
  text
    .replace(/(\p{Ll})(\p{Lu})/gu, '$1 $2')
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '');

/** @param limit characters of description and parameters together */
function indexed(
  { name, title, description, inputSchema }: ToolDefinition,
  limit: number,
): Readonly<Record<string, string>> {
  const about = textOf(description).slice(0, limit);
  const properties = isObject(inputSchema) && isObject(inputSchema.properties) ? inputSchema.properties : {};
  let parameters = '';
  for (const [parameter, schema] of Object.entries(properties)) {
    if (about.length + parameters.length >= limit) break;
    parameters += ` ${parameter} ${isObject(schema) ? textOf(schema.description) : ''}`.slice(0, limit);
  }
  return {
    name: name.slice(0, OF_NAME),
    title: textOf(title).slice(0, OF_NAME),
    description: about,
    parameters: parameters.slice(0, Math.max(0, limit - about.length)),
  };
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
