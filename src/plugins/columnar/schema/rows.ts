import { setImmediate } from 'node:timers/promises';
import type { SignalRow, TableSchema } from '../../../core/contracts/columnar-database.ts';
import { writerOf } from '../../otlp/decode/row-writer.ts';

/** So many rows are written as text between two breaths of the event loop: about two milliseconds. */
const SLICE = 250;

/** Writes rows of our own on the main thread: a few, or slowly. @returns lines of `JSONCompactEachRow` */
export async function encode(schema: TableSchema, rows: readonly SignalRow[]): Promise<Buffer> {
  const writer = writerOf(schema);
  const parts: Buffer[] = [];
  for (let from = 0; from < rows.length; from += SLICE) {
    if (from > 0) await setImmediate();
    const lines = rows.slice(from, from + SLICE).map((row) => writer.line(writer.origin(row), row));
    parts.push(Buffer.from(`${lines.join('\n')}\n`));
  }
  return Buffer.concat(parts);
}
