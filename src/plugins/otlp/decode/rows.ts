import type { SignalRow, SignalTable } from '../../../core/contracts/columnar-database.ts';
import { attributes, put } from './attributes.ts';
import type { RowWriter } from './row-writer.ts';
import { BodyInvalid, ItemRefused, type Message, message, messages, name, small } from './values.ts';

/** The writer of each table's rows. */
export type Writers = (table: SignalTable) => RowWriter;

/** Largest row, characters of its JSON. */
export const MAX_ROW_BYTES = 1024 * 1024;
/**
 * Rows of one request together, characters: each repeats its resource and its scope, so that a body of some kilobytes
 * could else become gigabytes.
 */
const MOST_TEXT = 64 * 1024 * 1024;
/** Services of one request that are told apart. */
const MOST_SERVICES = 64;
/** Reasons of one request that are told apart. */
const MOST_REASONS = 8;

/** A row of a table as it is inserted, and the day since the epoch that its partition goes by. */
export interface Row {
  readonly table: SignalTable;
  /** What it was written for: `RowWriter.fit`. */
  readonly fit: string;
  readonly text: string;
  readonly day: number;
}

/** What became of one request. */
export interface Decoded {
  readonly rows: readonly Row[];
  readonly refused: number;
  /** How many were refused for which reason. */
  readonly reasons: Readonly<Record<string, number>>;
  /** Names of the services that sent it. */
  readonly services: readonly string[];
}

/** What all rows of a scope have in common; each writer writes it once. */
export class Origin {
  readonly #row: SignalRow;
  readonly #texts = new Map<RowWriter, string>();

  constructor(row: SignalRow) {
    this.#row = row;
  }

  text(writer: RowWriter): string {
    let text = this.#texts.get(writer);
    if (text === undefined) {
      text = writer.origin(this.#row);
      this.#texts.set(writer, text);
    }
    return text;
  }
}

/** Gathers the rows of one request, and what was refused of it. */
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

  from(service: string): void {
    if (service !== '' && this.#services.size < MOST_SERVICES) this.#services.add(service);
  }

  /** @throws ItemRefused the row is too large, or one too many */
  add(table: SignalTable, day: number, origin: Origin, own: SignalRow): void {
    const writer = this.#writers(table);
    const text = writer.line(origin.text(writer), own);
    if (text.length > MAX_ROW_BYTES) throw new ItemRefused(`it needs more than ${MAX_ROW_BYTES} characters`);
    if (this.#length + text.length > MOST_TEXT) {
      throw new ItemRefused(`the rows of its request need more than ${MOST_TEXT} characters`);
    }
    this.#length += text.length;
    this.rows.push({ table, fit: writer.fit, text, day });
  }

  /** Carries out the mapping of one item; when it is refused, says so and goes on. @param items how many it stands for */
  each(map: () => void, items = 1): void {
    const taken = this.rows.length;
    try {
      map();
    } catch (error) {
      if (!(error instanceof ItemRefused)) throw error;
      this.rows.length = taken;
      this.refused += items;
      const known = Object.hasOwn(this.reasons, error.message);
      const reason =
        known || Object.keys(this.reasons).length < MOST_REASONS ? error.message : 'other reasons';
      this.reasons[reason] = (this.reasons[reason] ?? 0) + items;
    }
  }
}

/** Spans, data points or records of one request: ten times what collectors send at once. */
const MOST_ITEMS = 100_000;

interface Layout {
  /** The request's only field, e.g. `resourceSpans`. */
  readonly resources: string;
  readonly scopes: string;
  readonly items: string;
}

/** Attributes that say how many others the producer dropped; the tables have no column for it. */
export function noteDropped(
  map: Record<string, string>,
  dropped: Readonly<Record<string, unknown>>,
): Record<string, string> {
  for (const [what, count] of Object.entries(dropped)) {
    const number = small(count, `the dropped ${what} count`);
    if (number > 0) put(map, `otel.dropped_${what}_count`, String(number));
  }
  return map;
}

/** Walks a request: resources, their scopes, the scopes' items. What is refused is refused as small as can be. */
export function eachItem(
  request: Message,
  layout: Layout,
  rows: Rows,
  map: (item: Message, origin: Origin) => void,
  sizeOf: (item: unknown) => number = () => 1,
): void {
  const sizeOfAll = (value: unknown, deeper: (item: unknown) => number): number =>
    Array.isArray(value) ? value.reduce<number>((sum, item) => sum + deeper(item), 0) : 0;
  const inScope = (scope: unknown) => sizeOfAll((scope as Message | null)?.[layout.items], sizeOf);
  const inResource = (resource: unknown) => sizeOfAll((resource as Message | null)?.[layout.scopes], inScope);

  if (sizeOfAll(request[layout.resources], inResource) > MOST_ITEMS) {
    throw new BodyInvalid(`it has more than ${MOST_ITEMS} spans, data points or records`);
  }
  for (const group of messages(request[layout.resources], layout.resources)) {
    rows.each(() => {
      const resource = message(group.resource, 'the resource');
      const own = noteDropped(attributes(resource.attributes), {
        attributes: resource.droppedAttributesCount,
      });
      const service = own['service.name'] ?? '';
      const ofResource = {
        ServiceName: name(service, 'service.name'),
        ResourceAttributes: own,
        ResourceSchemaUrl: name(group.schemaUrl, 'the schema URL'),
      };
      rows.from(ofResource.ServiceName);
      for (const part of messages(group[layout.scopes], layout.scopes)) {
        rows.each(() => {
          const scope = message(part.scope, 'the scope');
          const origin = new Origin({
            ...ofResource,
            ScopeName: name(scope.name, 'the name of the scope'),
            ScopeVersion: name(scope.version, 'the version of the scope'),
            ScopeAttributes: attributes(scope.attributes),
            ScopeDroppedAttrCount: small(scope.droppedAttributesCount, 'the dropped attributes count'),
            ScopeSchemaUrl: name(part.schemaUrl, 'the schema URL'),
          });
          for (const item of messages(part[layout.items], layout.items)) map(item, origin);
        }, inScope(part));
      }
    }, inResource(group));
  }
}
