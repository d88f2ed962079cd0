import type { SignalRow, SignalTable } from '../../../core/adapters/columnar-database.ts';
import { ItemRefused } from './values.ts';

/** Largest row, characters of its JSON. */
export const MAX_ROW_BYTES = 1024 * 1024;
/** Services of one request that are told apart. */
const MOST_SERVICES = 64;
/** Reasons of one request that are told apart. */
const MOST_REASONS = 8;

/** A row of a table as JSON text, and the day since the epoch that its partition goes by. */
export interface Row {
  readonly table: SignalTable;
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

/** Gathers the rows of one request, and what was refused of it. */
export class Rows implements Decoded {
  readonly rows: Row[] = [];
  refused = 0;
  readonly reasons: Record<string, number> = {};
  readonly #services = new Set<string>();

  get services(): readonly string[] {
    return [...this.#services];
  }

  from(service: string): void {
    if (service !== '' && this.#services.size < MOST_SERVICES) this.#services.add(service);
  }

  /**
   * @param shared JSON of what all rows of a scope have in common, so that it is written once
   * @throws ItemRefused the row is too large
   */
  add(table: SignalTable, day: number, shared: string, own: SignalRow): void {
    const text = `${shared.slice(0, -1)},${JSON.stringify(own).slice(1)}`;
    if (text.length > MAX_ROW_BYTES) throw new ItemRefused(`it needs more than ${MAX_ROW_BYTES} characters`);
    this.rows.push({ table, text, day });
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
