import { constants, crc32, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { z } from 'zod';
import { SIGNAL_TABLES } from '../../../core/contracts/columnar-tables.ts';
import type { Frame } from './protocol.ts';

/** Longest list of columns, characters. */
const LONGEST_LAYOUT = 2_048;

/**
 * A segment is a series of frames: a line of JSON that says what follows, then that many bytes, compressed. A frame that
 * a crash cut short does not match its own length or checksum, and was never acknowledged.
 */
const header = z.object({
  id: z.string().min(1).max(100),
  table: z.enum(SIGNAL_TABLES),
  rows: z.int().positive(),
  at: z.int(),
  layout: z.string().max(LONGEST_LAYOUT),
  bytes: z.int().nonnegative(),
  crc: z.int().nonnegative(),
});

/** Longest header line, bytes. */
const MAX_HEADER = 512 + LONGEST_LAYOUT;
/** Largest inflated frame, bytes: rows are cut into frames far below it. */
const MAX_TEXT = 64 * 1024 * 1024;
const NEWLINE = 10;
/** What every header begins with, as `encodeFrame` writes it. */
const HEAD = '{"id":"';
const MOST_LAYOUTS = 100;
const layouts = new Map<string, string>();
/** Most frames are never read again. */
const FAST = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };

/** Where the content of a frame lies. */
export interface Placed {
  readonly frame: Frame;
  readonly start: number;
  readonly bytes: number;
  readonly crc: number;
}

export function encodeFrame(frame: Frame, text: Buffer): { head: Buffer; content: Buffer; crc: number } {
  const content = zstdCompressSync(text, FAST);
  const crc = crc32(content);
  const head = Buffer.from(`${JSON.stringify({ ...frame, bytes: content.length, crc })}\n`);
  return { head, content, crc };
}

/**
 * The intact frames of a segment. A frame that is damaged or cut short does not affect those behind it.
 *
 * @param damaged called for each damaged frame; not for a last frame that is cut short, because it was never acknowledged
 */
export function* framesOf(file: Buffer, damaged: () => void): Generator<Placed> {
  for (let at = 0; at >= 0 && at < file.length; ) {
    const placed = frameAt(file, at);
    if (placed) yield placed;
    const next = placed ? placed.start + placed.bytes : file.indexOf(HEAD, at + 1);
    if (!placed && (next >= 0 || !isCutShort(file, at))) damaged();
    at = next;
  }
}

function isCutShort(file: Buffer, at: number): boolean {
  const end = file.indexOf(NEWLINE, at);
  if (end < 0) return true;
  const read = header.safeParse(parsed(file.toString('utf8', at, Math.min(end, at + MAX_HEADER))));
  return read.success && end + 1 + read.data.bytes > file.length;
}

function frameAt(file: Buffer, at: number): Placed | undefined {
  const end = file.subarray(at, at + MAX_HEADER).indexOf(NEWLINE);
  if (end < 0) return undefined;
  const read = header.safeParse(parsed(file.toString('utf8', at, at + end)));
  if (!read.success) return undefined;
  const { bytes, crc, layout, ...rest } = read.data;
  const frame = { ...rest, layout: internedLayout(layout) };
  const start = at + end + 1;
  const content = file.subarray(start, start + bytes);
  return content.length === bytes && crc32(content) === crc ? { frame, start, bytes, crc } : undefined;
}

/** Shares equal strings, because a spool may have a hundred thousand frames and few lists of columns. */
function internedLayout(layout: string): string {
  const shared = layouts.get(layout);
  if (shared === undefined && layouts.size < MOST_LAYOUTS) layouts.set(layout, layout);
  return shared ?? layout;
}

/** @returns undefined when the content is not what was written */
export function decodeContent(content: Buffer, crc: number): Buffer | undefined {
  return crc32(content) === crc ? zstdDecompressSync(content, { maxOutputLength: MAX_TEXT }) : undefined;
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
