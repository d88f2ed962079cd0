import type { SignalTable } from '../../../core/adapters/columnar-database.ts';
import type { Decoded, Row } from '../decode/index.ts';
import type { Frame, Taken } from './protocol.ts';

/**
 * More would hold up the main thread, where the engine copies a batch at once, for longer than a call may wait, and fill
 * its heap with parsed rows; a row of a larger batch is hardly cheaper.
 */
const FRAME_ROWS = 2_500;
const FRAME_CHARACTERS = 4 * 1024 * 1024;
/** A partition is a day, and the database takes no insert into more than a hundred of them. */
const FRAME_DAYS = 60;

export interface Filled {
  readonly frame: Frame;
  /** As it is inserted; in a buffer of its own. */
  readonly text: Buffer<ArrayBuffer>;
}

interface Filling {
  readonly id: string;
  readonly table: SignalTable;
  readonly fit: string;
  readonly lines: string[];
  readonly days: Set<number>;
  characters: number;
}

/** The rows of bodies that wait for the next commit, cut into frames by table. */
export class Gather {
  readonly taken: Taken[] = [];
  readonly #name: () => string;
  readonly #full: Filling[] = [];
  readonly #filling = new Map<SignalTable, Filling>();
  #characters = 0;

  /** @param name gives each frame a name */
  constructor(name: () => string) {
    this.#name = name;
  }

  /** Characters of rows that wait. */
  get characters(): number {
    return this.#characters;
  }

  /** Whether to wait for more gains nothing. */
  get hasWhole(): boolean {
    return this.#full.length > 0;
  }

  add(id: number, { rows, refused, reasons, services }: Decoded): void {
    const frames = new Set<string>();
    for (const row of rows) frames.add(this.#place(row));
    this.taken.push({ id, frames: [...frames], rows: rows.length, refused, reasons, services });
  }

  /** @param at ms since the epoch */
  frames(at: number): Filled[] {
    return [...this.#full, ...this.#filling.values()].map(({ id, table, fit, lines }) => ({
      frame: { id, table, rows: lines.length, at, fit },
      text: ownBuffer(lines.join('\n')),
    }));
  }

  #place({ table, fit, text, day }: Row): string {
    let filling = this.#filling.get(table);
    if (filling && (filling.fit !== fit || !hasRoom(filling, text, day))) {
      this.#full.push(filling);
      filling = undefined;
    }
    if (!filling) {
      filling = { id: this.#name(), table, fit, lines: [], days: new Set(), characters: 0 };
      this.#filling.set(table, filling);
    }
    filling.lines.push(text);
    filling.days.add(day);
    filling.characters += text.length;
    this.#characters += text.length;
    return filling.id;
  }
}

function hasRoom({ lines, characters, days }: Filling, text: string, day: number): boolean {
  return (
    lines.length < FRAME_ROWS &&
    characters + text.length <= FRAME_CHARACTERS &&
    (days.size < FRAME_DAYS || days.has(day))
  );
}

/** One that is no part of a pool can be handed to another thread. */
function ownBuffer(text: string): Buffer<ArrayBuffer> {
  const buffer = Buffer.from(new ArrayBuffer(Buffer.byteLength(text)));
  buffer.write(text);
  return buffer;
}
