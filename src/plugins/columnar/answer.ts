/** An engine's answer: `ANSWER_FORMAT`, which is a line of names, a line of types, and a line a row. */

import { setImmediate } from 'node:timers/promises';
import type { QueryTable } from '../../core/contracts/columnar-database.ts';
import { ColumnarError } from './errors.ts';

/** Lines that are parsed before the event loop runs again. */
const SLICE = 500;

/** An answer as it came. */
export interface AnswerText {
  readonly text: string;
  readonly elapsedMs: number;
  /** The database, for people. */
  readonly place: string;
}

/** @param limit the most rows to keep @throws HF_COLUMNAR_ANSWER */
export async function tableOf({ text, elapsedMs, place }: AnswerText, limit: number): Promise<QueryTable> {
  const { columns, rows } = await parseAnswer(text, place);
  return { columns, rows: rows.slice(0, limit), truncated: rows.length > limit, elapsedMs };
}

/** @param place the database, for people @throws HF_COLUMNAR_ANSWER */
export async function parseAnswer(
  text: string,
  place: string,
): Promise<Pick<QueryTable, 'columns' | 'rows'>> {
  const lines = text.split('\n');
  // Every line ends with a line break, so what follows the last one is a line that was cut short.
  const rest = lines.pop();
  const broken = (reason: string) => new ColumnarError('HF_COLUMNAR_ANSWER', { place, reason });
  if (rest !== '' || lines.length < 2) throw broken(text === '' ? 'it is empty' : 'it ends within a line');
  const parsed: unknown[][] = [];
  for (const [at, line] of lines.entries()) {
    if (at > 0 && at % SLICE === 0) await setImmediate();
    try {
      parsed.push(JSON.parse(line));
    } catch {
      throw broken(`line ${at + 1} is no JSON`);
    }
  }
  const [names = [], types = [], ...rows] = parsed;
  if (rows.some((row) => !Array.isArray(row) || row.length !== names.length))
    throw broken('a row is not whole');
  return { columns: names.map((name, at) => ({ name: String(name), type: String(types[at]) })), rows };
}
