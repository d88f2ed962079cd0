/** The rows of one request: how it is walked, which items are refused, and how large it may become. */
import type { SignalTable } from '../../../core/contracts/columnar-tables.ts';
import { attributes, noteDropped } from './attributes.ts';
import type { RowValues, RowWriter } from './row-writer.ts';
import { BodyInvalid, ItemRefused, type Message, message, messages, name, small } from './values.ts';

/** Spans, data points or records of one request: ten times what collectors send at once. */
const MOST_ITEMS = 100_000;
/** Largest row, characters of its JSON. */
const MAX_ROW_BYTES = 1024 * 1024;
/**
 * Rows of one request together, characters: each repeats its resource and its scope, so that a body of some kilobytes
 * could otherwise become gigabytes.
 */
const MOST_TEXT = 64 * 1024 * 1024;
/** Services of one request that are distinguished. */
const MOST_SERVICES = 64;
/** Reasons of one request that are distinguished. */
const MOST_REASONS = 8;

/** The writer of each table's rows. */
export type Writers = (table: SignalTable) => RowWriter;

/** A row of a table as it is inserted. */
export interface Row {
  readonly table: SignalTable;
  /** The layout of its writer. */
  readonly layout: string;
  readonly text: string;
  /** Days since the epoch: its partition. */
  readonly day: number;
}

/** A decoded request. */
export interface Decoded {
  readonly rows: readonly Row[];
  readonly refused: number;
  /** How many items were refused for which reason. */
  readonly reasons: Readonly<Record<string, number>>;
  /** Names of the services that sent it. */
  readonly services: readonly string[];
}

/** The field names of a request, from the outside to its items. */
interface Levels {
  /** The request's only field, e.g. `resourceSpans`. */
  readonly resources: string;
  readonly scopes: string;
  readonly items: string;
}

/** Collects the rows of one request, and what was refused of it. */
export class Rows implements Decoded {
  readonly rows: Row[] = [];
  refused = 0;
  readonly reasons: Record<string, number> = {};
  readonly #services = new Set<string>();
  readonly #writers: Writers;
  #length = 0;

  constructor(writers: Writers) {
    this.#writers = writers;
  }

  get services(): readonly string[] {
    return [...this.#services];
  }

  /**
   * Walks a request and maps each of its items. The smallest possible unit is refused: an item, or else a scope, or else a
   * resource.
   *
   * @param sizeOf how many rows an item stands for; it may be anything
   * @throws BodyInvalid the request has too many items
   */
  walk(
    request: Message,
    { resources, scopes, items }: Levels,
    map: (item: Message, scope: Scope) => void,
    sizeOf: (item: unknown) => number = () => 1,
  ): void {
    const sizeOfScope = (scope: unknown) => sum(fieldOf(scope, items), sizeOf);
    const sizeOfResource = (resource: unknown) => sum(fieldOf(resource, scopes), sizeOfScope);
    if (sum(request[resources], sizeOfResource) > MOST_ITEMS) {
      throw new BodyInvalid(`it has more than ${MOST_ITEMS} spans, data points or records`);
    }
    for (const group of messages(request[resources], resources)) {
      this.refusable(() => {
        const ofResource = resourceColumns(group);
        this.#notice(ofResource.ServiceName);
        for (const each of messages(group[scopes], scopes)) {
          this.refusable(() => {
            const scope = new Scope({ ...ofResource, ...scopeColumns(each) });
            for (const item of messages(each[items], items)) {
              this.refusable(() => map(item, scope), sizeOf(item));
            }
          }, sizeOfScope(each));
        }
      }, sizeOfResource(group));
    }
  }

  /** @throws ItemRefused the row is too large, or one too many */
  add(table: SignalTable, day: number, scope: Scope, values: RowValues): void {
    const writer = this.#writers(table);
    const text = writer.line(scope.writtenBy(writer), values);
    if (text.length > MAX_ROW_BYTES) throw new ItemRefused(`it needs more than ${MAX_ROW_BYTES} characters`);
    if (this.#length + text.length > MOST_TEXT) {
      throw new ItemRefused(`the rows of its request need more than ${MOST_TEXT} characters`);
    }
    this.#length += text.length;
    this.rows.push({ table, layout: writer.layout, text, day });
  }

  /** Maps a part of the request. When it is refused, its rows are dropped and it is counted. @param items that it has */
  refusable(map: () => void, items = 1): void {
    const before = this.rows.length;
    try {
      map();
    } catch (error) {
      if (!(error instanceof ItemRefused)) throw error;
      this.rows.length = before;
      this.refused += items;
      const isCounted = Object.hasOwn(this.reasons, error.message);
      const reason =
        isCounted || Object.keys(this.reasons).length < MOST_REASONS ? error.message : 'other reasons';
      this.reasons[reason] = (this.reasons[reason] ?? 0) + items;
    }
  }

  #notice(service: string): void {
    if (service !== '' && this.#services.size < MOST_SERVICES) this.#services.add(service);
  }
}

/** The columns that all rows of a scope have in common; each writer writes them once. */
export class Scope {
  readonly #columns: RowValues;
  readonly #texts = new Map<RowWriter, string>();

  constructor(columns: RowValues) {
    this.#columns = columns;
  }

  writtenBy(writer: RowWriter): string {
    let text = this.#texts.get(writer);
    if (text === undefined) {
      text = writer.scope(this.#columns);
      this.#texts.set(writer, text);
    }
    return text;
  }
}

function resourceColumns(group: Message) {
  const resource = message(group.resource, 'the resource');
  const own = noteDropped(attributes(resource.attributes), { attributes: resource.droppedAttributesCount });
  return {
    ServiceName: name(own['service.name'] ?? '', 'service.name'),
    ResourceAttributes: own,
    ResourceSchemaUrl: name(group.schemaUrl, 'the schema URL'),
  };
}

function scopeColumns(part: Message) {
  const scope = message(part.scope, 'the scope');
  return {
    ScopeName: name(scope.name, 'the name of the scope'),
    ScopeVersion: name(scope.version, 'the version of the scope'),
    ScopeAttributes: attributes(scope.attributes),
    ScopeDroppedAttrCount: small(scope.droppedAttributesCount, 'the dropped attributes count'),
    ScopeSchemaUrl: name(part.schemaUrl, 'the schema URL'),
  };
}

function fieldOf(value: unknown, field: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, field) : undefined;
}

function sum(list: unknown, sizeOf: (item: unknown) => number): number {
  return Array.isArray(list) ? list.reduce<number>((total, item) => total + sizeOf(item), 0) : 0;
}
