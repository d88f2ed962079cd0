import type { SignalTable } from '../../../core/contracts/columnar-tables.ts';
import type { Decoded, Row } from '../decode/rows.ts';
import type { Frame, Taken } from './protocol.ts';

/** Larger frames hardly make a row cheaper, and the engine needs more memory for them. */
const FRAME_ROWS = 2_500;
const FRAME_BYTES = 4 * 1024 * 1024;
/** Each day is a partition, and the database takes no insert into more than a hundred of them. */
const FRAME_DAYS = 60;
const FIRST_BYTES = 64 * 1024;
const NEWLINE = 10;

export interface Filled {
  readonly frame: Frame;
  /** The rows, in a buffer of their own, which can be handed to another thread. */
  readonly text: Buffer<ArrayBuffer>;
}

interface Filling {
  readonly id: string;
  readonly table: SignalTable;
  readonly layout: string;
  readonly days: Set<number>;
  rows: number;
  /** Replaced by one twice as large when it is full. */
  text: Buffer<ArrayBuffer>;
  length: number;
}

/** The rows of the bodies that go into the next commit, cut into frames by table. */
export class Batch {
  readonly taken: Taken[] = [];
  readonly #name: () => string;
  readonly #full: Filling[] = [];
  readonly #filling = new Map<SignalTable, Filling>();
  #bytes = 0;

  /** @param name makes a unique name for a frame */
  constructor(name: () => string) {
    this.#name = name;
  }

  /** Bytes of rows that wait. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether a frame is full: waiting for more rows gains nothing. */
  get hasFullFrame(): boolean {
    return this.#full.length > 0;
  }

  add(id: number, { rows, refused, reasons, services }: Decoded): void {
    const frames = new Set<string>();
    for (const row of rows) frames.add(this.#place(row));
    this.taken.push({ id, frames: [...frames], rows: rows.length, refused, reasons, services });
  }

  /** The frames, after which no row may be added. @param at epoch milliseconds */
  frames(at: number): Filled[] {
    return [...this.#full, ...this.#filling.values()].map(({ id, table, layout, rows, text, length }) => ({
      frame: { id, table, rows, at, layout },
      text: Buffer.from(text.buffer.transfer(length)),
    }));
  }

  #place({ table, layout, text, day }: Row): string {
    const size = Buffer.byteLength(text) + 1;
    let filling = this.#filling.get(table);
    if (filling && (filling.layout !== layout || !hasRoom(filling, size, day))) {
      this.#full.push(filling);
      filling = undefined;
    }
    if (!filling) {
      filling = {
        id: this.#name(),
        table,
        layout,
        days: new Set(),
        rows: 0,
        text: Buffer.from(new ArrayBuffer(FIRST_BYTES)),
        length: 0,
      };
      this.#filling.set(table, filling);
    }
    if (filling.length + size > filling.text.length) {
      const twice = Math.max(2 * filling.text.length, filling.length + size);
      filling.text = Buffer.from(filling.text.buffer.transfer(twice));
    }
    filling.text.write(text, filling.length);
    filling.length += size;
    filling.text[filling.length - 1] = NEWLINE;
    filling.rows += 1;
    filling.days.add(day);
    this.#bytes += size;
    return filling.id;
  }
}

function hasRoom({ rows, length, days }: Filling, size: number, day: number): boolean {
  return rows < FRAME_ROWS && length + size <= FRAME_BYTES && (days.size < FRAME_DAYS || days.has(day));
}
