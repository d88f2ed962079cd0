import { styleText } from 'node:util';
import { FINGERPRINT_DIGITS, FINGERPRINT_PREFIX } from '../kernel/ids.ts';
import { isObject, type Json } from '../kernel/json.ts';
import type { StateValue } from '../kernel/log/record.ts';
import type { Terminal } from './plugin/command.ts';

export { counted, duration } from './amounts.ts';
export type { Colour, Format, Terminal } from './plugin/command.ts';

/** Lines are made for this width where no terminal says its own. */
const COLUMNS = 100;
/** Below this, lines wrap by themselves rather than become unreadable. */
const NARROWEST = 80;

/** The colours, `bold` and `dim` of `paint`. Any other, such as 8, which hides what follows, comes from data. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const PAINTED = /^\u001b\[(?:1|2|22|3[1-6]|39)m$/;

/**
 * What may stand on a terminal: colours of `paint` stay, everything else that would act on it (moving the cursor, setting a title,
 * turning a line around) is shown as an escape, by which JSON stays the same data. Whatever is printed comes through here,
 * for texts may come from a config, a log or a machine elsewhere.
 *
 * @param isPainted false where no colour is ours: for data before it is painted, and where nothing is
 */
export function inertText(text: string, isPainted = true): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return text.replace(/\u001b\[[\d;]*m|(?![\n\t])[\p{Cc}\p{Cf}\u2028\u2029]/gu, (found) => {
    if (isPainted && PAINTED.test(found)) return found;
    if (found.endsWith('m')) return escaped(found.charCodeAt(0)) + found.slice(1);
    return [...Array(found.length).keys()].map((at) => escaped(found.charCodeAt(at))).join('');
  });
}

function escaped(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`;
}

/** The terminal of this process. */
export function processTerminal(): Terminal {
  const { stdout, stderr } = process;
  const closed = new AbortController();
  let passing = '';
  for (const stream of [stdout, stderr]) {
    // Without a listener, a reader that went away would end the process with a stack trace.
    stream.on('error', (error: NodeJS.ErrnoException) => {
      // A terminal that was closed answers EIO; what must be undone then has to run on.
      if (error.code !== 'EPIPE' && error.code !== 'EIO') throw error;
      if (stream === stdout) closed.abort('EPIPE');
    });
  }
  return {
    out: (text) => {
      if (!closed.signal.aborted) stdout.write(text);
    },
    err: (text) => void stderr.write(text),
    interactive: stdout.isTTY === true,
    watched: stderr.isTTY === true,
    get columns() {
      return Math.max(stdout.columns || COLUMNS, NARROWEST); // a pseudo-terminal may say 0
    },
    paint: (format, text) => styleText(format, text, { stream: stdout }),
    paintError: (format, text) => styleText(format, text, { stream: stderr }),
    progress: (text) => {
      if (stderr.isTTY && text !== passing) stderr.write(`\r\u001b[K${text}`);
      passing = text;
    },
    closed: closed.signal,
  };
}

const GAP = 2;
const INDENT = 4;

/**
 * Rows in columns. On a terminal that is too narrow for them, the last cells of each row stand below it; what no person
 * watches has a line a row, however long, so that other programs find all of one there.
 *
 * @param rows the first is the head
 * @returns the lines of each row
 */
export function table(
  rows: readonly (readonly string[])[],
  { interactive, columns }: Pick<Terminal, 'interactive' | 'columns'>,
): string[][] {
  const cells = rows.map((row) => row.map(plainText));
  const widths = (cells[0] ?? []).map((_, at) => Math.max(...cells.map((row) => row[at]?.length ?? 0)));
  let beside = widths.length;
  const width = () => widths.slice(0, beside).reduce((sum, one) => sum + one + GAP, -GAP);
  while (interactive && beside > 1 && width() > columns) beside -= 1;
  return cells.map((row) => {
    const line = row.slice(0, beside).map((cell, at) => cell.padEnd(widths[at] ?? 0));
    const below = row.slice(beside).filter((cell) => cell !== '');
    const text = wrapped(below.join('  '), columns - INDENT);
    return [line.join(' '.repeat(GAP)).trimEnd(), ...text.map((one) => ' '.repeat(INDENT) + one.trim())];
  });
}

/** Words in lines; one that is longer than a line has that for itself. */
export function wrapped(text: string, columns: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > columns) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return line === '' ? lines : [...lines, line];
}

/** Longer texts are cut in a line; `log show` has them whole. */
const LONGEST = 40;
const ITEMS = 3;
/** Ids that nobody reads: UUIDs, fingerprints, lock tokens. Their ends tell them apart. */
const OPAQUE = new RegExp(`^(?:${FINGERPRINT_PREFIX})?[0-9a-f-]{20,}$`, 'i');
const FINGERPRINT = new RegExp(`^${FINGERPRINT_PREFIX}[0-9a-f]{${FINGERPRINT_DIGITS}}$`);

/** Sequences that act on a terminal, as `stripVTControlCharacters` of Node knows them; browsers have none. */
const SEQUENCE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  /\u001b\][\s\S]*?(?:\u0007|\u001b\\|\u009c)|[\u001b\u009b][[\]()#;?]*(?:\d{1,4}(?:[;:]\d{0,4})*)?[\dA-PR-TZcf-nq-uy=><~]/g;

/** Text from outside as it may stand on a terminal: nothing in it can move the cursor or turn the line around. */
export function plainText(text: string): string {
  return text.replace(SEQUENCE, '').replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, ' ');
}

/** JSON that may stand on a terminal: the same data, what would act on a terminal escaped. */
export function jsonText(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replace(/[\u007f-\u009f\u2028\u2029\p{Cf}]/gu, (character) =>
    Array.from({ length: character.length }, (_, unit) => escaped(character.charCodeAt(unit))).join(''),
  );
}

/** A value in few characters. */
export function shortValue(value: unknown): string {
  if (typeof value === 'string') return shortText(value);
  if (Array.isArray(value)) {
    const shown = value.slice(0, ITEMS).map(shortValue).join(' ');
    return value.length > ITEMS ? `[${shown} +${value.length - ITEMS}]` : `[${shown}]`;
  }
  if (isObject(value)) return `{${cut(shortFields(value).join(' '), LONGEST - 2)}}`;
  return String(value);
}

/** The fields of an object as `name=value`, those that are of no use in a line left out. */
export function shortFields(fields: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(fields).flatMap(([name, value]) => {
    if (value === undefined || isFingerprint(value)) return [];
    return [`${plainText(name)}=${shortValue(value)}`];
  });
}

/** Cuts at the end. */
export function cut(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, Math.max(0, length - 1))}…`;
}

/** Cuts in the middle, for names that begin alike and end apart. */
export function cutMiddle(text: string, length: number): string {
  if (text.length <= length) return text;
  const end = Math.floor((length - 1) / 2);
  return `${text.slice(0, length - 1 - end)}…${text.slice(text.length - end)}`;
}

/** Epoch milliseconds as `2026-01-31 03:05:07 UTC`, to the millisecond if asked. */
export function timestamp(at: number, precision: 's' | 'ms' = 's'): string {
  const length = precision === 's' ? '2026-01-31T03:05:07'.length : '2026-01-31T03:05:07.123'.length;
  return `${new Date(at).toISOString().slice(0, length).replace('T', ' ')} UTC`;
}

/** The time of day of epoch milliseconds, to the millisecond, in UTC: `03:05:07.123`. */
export function timeOfDay(at: number): string {
  return new Date(at).toISOString().slice('2026-01-31T'.length, -1);
}

function shortText(text: string): string {
  const plain = plainText(text);
  if (OPAQUE.test(plain)) return `${plain.slice(0, 4)}…${plain.slice(-4)}`;
  const short = cut(plain, LONGEST);
  return /[\s=]|^$/.test(short) ? JSON.stringify(short) : short;
}

function isFingerprint(value: unknown): boolean {
  return typeof value === 'string' && FINGERPRINT.test(value);
}

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

/** `open`; `door.open + lamp.off` of a parallel machine. */
export function stateName(value: StateValue): string {
  if (typeof value === 'string') return value;
  const parts = Object.entries(value).map(([name, inner]) => `${name}.${stateName(inner)}`);
  return parts.length > 1 ? parts.join(' + ') : (parts[0] ?? '');
}
