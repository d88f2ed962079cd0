import { z } from 'zod';
import type { Point, PointId } from '../../core/contracts/memory-store.ts';
import { isObject } from '../../core/kernel/json.ts';

const LONGEST_DOCUMENT = 100_000;
/** The same as JSON, where a sign may take six characters. */
const LONGEST_DOCUMENT_JSON = 120_000;
const LONGEST_METADATA = 32_768;
const DEEPEST = 8;
const MOST_KEYS = 256;
const MOST_VALUES = 2_048;
const LONGEST_KEY = 128;
/** Characters, as JSON, of all notes of an answer: more than any one note has that was kept here. */
const LONGEST_NOTES = 160_000;
/** Characters of a document of others that is shown cut. */
const LONGEST_CUT = 20_000;

/** The id of a note. */
export const noteId = z.union([z.guid(), z.int().min(0)]).describe('A UUID or a whole number');

/** What a note may hold, so that each can be shown whole, and be searched in bounded time. */
export const noteFields = {
  document: z
    .string()
    .min(1)
    .max(LONGEST_DOCUMENT)
    .refine(
      (text) => JSON.stringify(text).length <= LONGEST_DOCUMENT_JSON,
      `as JSON it has at most ${LONGEST_DOCUMENT_JSON} characters`,
    )
    .describe('The note, in words'),
  metadata: z
    .record(z.string(), z.unknown())
    .superRefine((metadata, context) => {
      const message = excessOf(metadata);
      if (message !== undefined) context.addIssue({ code: 'custom', message });
    })
    .describe(
      `Facts to keep with it: at most ${LONGEST_METADATA} characters as JSON, ${MOST_KEYS} keys, ${DEEPEST} levels`,
    ),
} as const;

/** A note as tools show it. */
export interface Note {
  readonly id: PointId;
  readonly document: string;
  readonly metadata: unknown;
  /** Its metadata is left out, and its document may be: it is longer than an answer may be. */
  readonly cut?: true;
}

/** The payload of a point that others wrote is its metadata. */
export function noteOf({ id, payload = {} }: Pick<Point, 'id' | 'payload'>): Note {
  const { document, metadata, ...others } = payload;
  if (typeof document === 'string') return { id, document, metadata: metadata ?? {} };
  return { id, document: '', metadata: others };
}

/** @returns as many notes, from the first on, as an answer may hold; at least one, which may be cut */
export function fitting<N extends Note>(notes: readonly N[]): readonly N[] {
  let length = 0;
  const fit = notes.findIndex((note) => {
    length += JSON.stringify(note).length;
    return length > LONGEST_NOTES;
  });
  const [first] = notes;
  if (fit === 0 && first)
    return [{ ...first, document: first.document.slice(0, LONGEST_CUT), metadata: {}, cut: true }];
  return fit < 0 ? notes : notes.slice(0, fit);
}

/** @returns which bound of metadata is passed; undefined when none is */
function excessOf(metadata: Readonly<Record<string, unknown>>): string | undefined {
  let keys = 0;
  let values = 0;
  const walk = (value: unknown, depth: number): string | undefined => {
    values += 1;
    if (values > MOST_VALUES) return `it has at most ${MOST_VALUES} values`;
    if (typeof value !== 'object' || value === null) return undefined;
    if (depth > DEEPEST) return `it is at most ${DEEPEST} levels deep`;
    if (isObject(value)) {
      const names = Object.keys(value);
      keys += names.length;
      if (keys > MOST_KEYS) return `it has at most ${MOST_KEYS} keys`;
      if (names.some((name) => name.length > LONGEST_KEY))
        return `a key has at most ${LONGEST_KEY} characters`;
    }
    for (const item of Object.values(value)) {
      const excess = walk(item, depth + 1);
      if (excess !== undefined) return excess;
    }
    return undefined;
  };
  const excess = walk(metadata, 1);
  if (excess !== undefined) return excess;
  if (JSON.stringify(metadata).length > LONGEST_METADATA)
    return `as JSON it has at most ${LONGEST_METADATA} characters`;
  return undefined;
}
