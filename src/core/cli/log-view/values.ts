import { stripVTControlCharacters } from 'node:util';
import { isObject } from '../../json.ts';

/** Longer texts are cut in a line; `log show` has them whole. */
const LONGEST = 40;
const ITEMS = 3;
/** Ids that nobody reads: UUIDs, fingerprints, lock tokens. Their ends tell them apart. */
const OPAQUE = /^(?:fp_)?[0-9a-f-]{20,}$/i;

/** Text from outside as it may stand on a terminal: nothing in it can move the cursor or turn the line around. */
export function plainText(text: string): string {
  return stripVTControlCharacters(text).replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, ' ');
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

/** Milliseconds as people say them. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${Number((ms / 1_000).toFixed(1))} s`;
  if (ms < 300_000) return `${Math.round(ms / 1_000)} s`;
  if (ms < 2 * 3_600_000) return `${Math.round(ms / 60_000)} min`;
  if (ms < 48 * 3_600_000)
    return `${Math.floor(ms / 3_600_000)} h ${Math.round((ms % 3_600_000) / 60_000)} min`;
  return `${Math.floor(ms / 86_400_000)} d ${Math.round((ms % 86_400_000) / 3_600_000)} h`;
}

/** Epoch milliseconds as `2026-01-31 03:05:07 UTC`, to the millisecond if asked. */
export function timestamp(at: number, precision: 's' | 'ms' = 's'): string {
  const length = precision === 's' ? '2026-01-31T03:05:07'.length : '2026-01-31T03:05:07.123'.length;
  return `${new Date(at).toISOString().slice(0, length).replace('T', ' ')} UTC`;
}

function escaped(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`;
}

function shortText(text: string): string {
  const plain = plainText(text);
  if (OPAQUE.test(plain)) return `${plain.slice(0, 4)}…${plain.slice(-4)}`;
  const short = cut(plain, LONGEST);
  return /[\s=]|^$/.test(short) ? JSON.stringify(short) : short;
}

function isFingerprint(value: unknown): boolean {
  return typeof value === 'string' && /^fp_[0-9a-f]{32}$/.test(value);
}
