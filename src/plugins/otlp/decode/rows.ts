import type { RowWriter } from '../../../core/contracts/columnar/writer.ts';
import type { SignalRow, SignalTable } from '../../../core/contracts/columnar-database.ts';
import { ItemRefused } from './values.ts';

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
