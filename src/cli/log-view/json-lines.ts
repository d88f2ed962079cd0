import { plainText } from '../../core/host/terminal.ts';
import type { Json } from '../../core/kernel/json.ts';

/** A value as indented JSON, keys in order, safe to print. */
export function jsonLines(value: unknown, indent: string): string[] {
  return JSON.stringify(sorted(value as Json), null, 2)
    .split('\n')
    .map((line) => indent + plainText(line));
}

/** The same data with the keys of every object in order, so that equal data print alike. */
function sorted(value: Json): Json {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value as Record<string, Json>).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, sorted(inner)]));
}
