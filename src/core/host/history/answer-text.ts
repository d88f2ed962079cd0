import type { Json } from '../../kernel/json.ts';
import { isObject } from '../../kernel/json.ts';
import { redact } from '../logging/redact.ts';
import { cut, plainText } from '../terminal.ts';

/** The longest text of one sentence or line, characters. */
const LONGEST_LINE = 600;
/** How much of one free value is shown, such as an actor's context. */
const FREE = { depth: 12, values: 600, text: 1_000, allText: 8_000 };

/** A sentence or line: redacted, of one line, bounded, and without characters that act on anything or that no link can hold. */
export function textOf(text: string, longest = LONGEST_LINE): string {
  return cut(plainText(String(redact(text))), longest).toWellFormed();
}

/** Free data, such as a context: redacted and bounded, and no text of it acts on anything. */
export function freeOf(value: unknown, bounds = FREE): Json {
  return inert(redact(value, bounds));
}

function inert(value: Json): Json {
  if (typeof value === 'string') return plainText(value).toWellFormed();
  if (Array.isArray(value)) return value.map(inert);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [plainText(name).toWellFormed(), inert(inner as Json)]),
  );
}
