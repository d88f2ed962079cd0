import { z } from 'zod';
import { KernelError } from '../../errors/kernel-error.ts';
import type { Json } from '../../json.ts';
import { LATEST, logRecordSchema } from '../record.ts';
import { parseSignature, type Signature } from '../signing.ts';

/** Raised when the lines of a portable file change their meaning. */
export const PORTABLE_FORMAT = 1;

/** A record may be large, a line without an end is not one of ours. Bytes. */
export const LONGEST_LINE = 64 * 1024 * 1024;

/** No event of ours is nested so deep. A deeper one would overflow the stack of the code that walks it. */
const DEEPEST = 256;

const chainHash = z.string().regex(/^[0-9a-f]{64}$/);
const seq = z.int().positive();
const instant = z.int().nonnegative().max(LATEST);

/** The first line of a portable file: what it holds, and what made it. */
const headerSchema = z.looseObject({
  holdfast: z.literal('log'),
  format: z.literal(PORTABLE_FORMAT),
  /** Release that exported it. */
  runtime: z.string(),
  /** Epoch milliseconds. */
  exportedAt: instant,
  /** Machine and versions of the records, by actor type. */
  machines: z.record(z.string(), z.object({ machine: z.string(), versions: z.array(z.int()) })),
  /** The hash that the first record chains to. */
  chainStart: chainHash,
  range: z.object({ from: seq, to: seq }),
  /** Epoch milliseconds of the first and the last record. */
  time: z.object({ from: instant, to: instant }),
  /** Whether every record of the range is here. */
  complete: z.boolean(),
  /** The actors whose records the file holds; absent when it holds those of all. */
  actors: z.array(z.string()).optional(),
  /** The correlation id by which the actors were chosen. */
  correlation: z.string().optional(),
});
export type PortableHeader = z.infer<typeof headerSchema>;

const endSchema = z.object({ records: z.int().nonnegative(), seq, hash: chainHash });
export type PortableEnd = z.infer<typeof endSchema>;

/** The state of an actor before the first record, so that a part of a log can be replayed. */
const stateSchema = z.looseObject({
  ref: z.string().min(1).max(512),
  machine: z.string(),
  version: z.int(),
  value: logRecordSchema.shape.to.shape.value,
  context: z.record(z.string(), z.json()),
  done: z.boolean(),
  seq: z.int().nonnegative(),
  at: instant,
  timers: z.record(z.string(), z.looseObject({ id: z.string(), at: instant })),
  effects: z.record(z.string(), z.looseObject({ type: z.string(), at: instant })),
});

/** One line behind the header. */
export type PortableLine =
  | { readonly kind: 'state'; readonly ref: string; readonly body: string }
  | {
      readonly kind: 'record';
      /** Exactly as it was hashed. */
      readonly body: string;
      /** The body, parsed. */
      readonly value: unknown;
      readonly hash: string;
      /** The hash it chains to, where the record before it was left out. */
      readonly previous?: string;
    }
  | { readonly kind: 'signature'; readonly signature: Signature }
  | { readonly kind: 'end'; readonly end: PortableEnd };

export function headerLine(header: PortableHeader): string {
  return `${JSON.stringify(header)}\n`;
}

export function stateLine(state: object): string {
  return `{"state":${JSON.stringify(state)}}\n`;
}

/** The body goes in as it stands: its bytes are what was hashed. */
export function recordLine(hash: string, body: string, previous?: string): string {
  const link = previous === undefined ? '' : `"previous":"${previous}",`;
  return `{"hash":"${hash}",${link}"record":${body}}\n`;
}

/** How `recordLine` begins: what follows it is the body, and parsed once. */
const RECORD_LINE = /^\{"hash":"([0-9a-f]{64})",(?:"previous":"([0-9a-f]{64})",)?"record":/;

/** Stands behind the record that it signs. */
export function signatureLine(signature: Signature): string {
  return `${JSON.stringify({ signature })}\n`;
}

export function endLine(end: PortableEnd): string {
  return `${JSON.stringify({ end })}\n`;
}

/**
 * @param file named in errors
 * @throws HF_PORTABLE_FOREIGN it is not the first line of a portable file; HF_PORTABLE_FORMAT a later release wrote it
 */
export function parseHeader(text: string, file: string): PortableHeader {
  const value = json(text) as { holdfast?: unknown; format?: unknown } | null | undefined;
  if (value?.holdfast !== 'log') {
    const database = text.startsWith('SQLite format 3');
    const reason = database
      ? 'it is a database; name the folder that it lies in'
      : 'its first line is not the header of an export';
    throw new KernelError('HF_PORTABLE_FOREIGN', { file, reason });
  }
  if (value.format !== PORTABLE_FORMAT) {
    const found = String(value.format).slice(0, 20);
    throw new KernelError('HF_PORTABLE_FORMAT', { file, found, supported: PORTABLE_FORMAT });
  }
  const { data, error } = headerSchema.safeParse(value);
  if (data) return data;
  const issue = error.issues[0];
  const reason = `the header's ${issue?.path.join('.')}: ${issue?.message}`;
  throw new KernelError('HF_PORTABLE_DAMAGED', { file, line: 1, reason });
}

/** @throws HF_PORTABLE_DAMAGED the line is none of the four kinds */
export function parseLine(text: string, file: string, line: number): PortableLine {
  const damaged = (reason: string) => new KernelError('HF_PORTABLE_DAMAGED', { file, line, reason });
  if (text.length > DEEPEST * 2 && depthOf(text) > DEEPEST)
    throw damaged(`it is nested deeper than ${DEEPEST}`);
  const match = RECORD_LINE.exec(text);
  if (match) {
    const [begin, hash = '', previous] = match;
    const body = text.slice(begin.length, -1);
    const value = text.endsWith('}') ? json(body) : undefined;
    if (value !== undefined)
      return { kind: 'record', body, value, hash, ...(previous !== undefined && { previous }) };
  }
  const value = json(text);
  if (typeof value !== 'object' || value === null) throw damaged('it is not a JSON object');
  const { hash, previous, record, state, signature, end } = value as Record<string, Json | undefined>;
  if (record !== undefined) {
    if (!chainHash.safeParse(hash).success) throw damaged('the record has no hash');
    if (previous !== undefined && !chainHash.safeParse(previous).success)
      throw damaged('the hash it chains to is none');
    const link = previous as string | undefined;
    // A tool that wrote the line anew, with spaces say, keeps the data and not the bytes.
    const body = JSON.stringify(record);
    return {
      kind: 'record',
      body,
      value: record,
      hash: hash as string,
      ...(link !== undefined && { previous: link }),
    };
  }
  if (state !== undefined) {
    const { data, error } = stateSchema.safeParse(state);
    if (!data) throw damaged(`the state's ${error.issues[0]?.path.join('.')}: ${error.issues[0]?.message}`);
    return { kind: 'state', ref: data.ref, body: JSON.stringify(state) };
  }
  if (signature !== undefined) {
    const parsed = parseSignature(signature);
    if (!parsed) throw damaged('its signature is none');
    return { kind: 'signature', signature: parsed };
  }
  const parsed = endSchema.safeParse(end);
  if (!parsed.success) throw damaged('it is neither a record, a state, a signature nor the end');
  return { kind: 'end', end: parsed.data };
}

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function depthOf(text: string): number {
  let [depth, deepest, quoted] = [0, 0, false];
  for (let at = 0; at < text.length; at += 1) {
    const letter = text[at];
    if (quoted) {
      if (letter === '\\') at += 1;
      else if (letter === '"') quoted = false;
    } else if (letter === '"') quoted = true;
    else if (letter === '{' || letter === '[') {
      depth += 1;
      if (depth > deepest) deepest = depth;
    } else if (letter === '}' || letter === ']') depth -= 1;
  }
  return deepest;
}
