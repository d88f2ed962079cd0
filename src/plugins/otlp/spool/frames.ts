import { constants, crc32, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { z } from 'zod';
import { SIGNAL_TABLES } from '../../../core/adapters/columnar-database.ts';
import type { Frame } from './protocol.ts';

/**
 * A segment is a series of frames: a line of JSON that says what follows, then that many bytes, compressed. A frame that
 * a crash cut short does not match its own length or checksum, and was never acknowledged.
 */
const header = z.object({
  id: z.string().min(1).max(100),
  table: z.enum(SIGNAL_TABLES),
  rows: z.int().positive(),
  at: z.int(),
  bytes: z.int().nonnegative(),
  crc: z.int().nonnegative(),
});

/** Longest header line, bytes. */
const MAX_HEADER = 512;
/** Of an inflated frame: rows are cut into frames far below it. */
const MAX_TEXT = 64 * 1024 * 1024;
const NEWLINE = 10;
/** Most frames are never read again. */
const FAST = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };

/** Where the content of a frame lies. */
export interface Placed {
  readonly frame: Frame;
  readonly start: number;
  readonly bytes: number;
  readonly crc: number;
}

export function encodeFrame(frame: Frame, text: Buffer): { head: Buffer; content: Buffer } {
  const content = zstdCompressSync(text, FAST);
  const head = Buffer.from(`${JSON.stringify({ ...frame, bytes: content.length, crc: crc32(content) })}\n`);
  return { head, content };
}

/** The frames of a segment, up to the first that is not whole. */
export function* framesOf(file: Buffer): Generator<Placed> {
  for (let at = 0; at < file.length; ) {
    const end = file.subarray(at, at + MAX_HEADER).indexOf(NEWLINE);
    if (end < 0) return;
    const read = header.safeParse(parsed(file.toString('utf8', at, at + end)));
    if (!read.success) return;
    const { bytes, crc, ...frame } = read.data;
    const start = at + end + 1;
    const content = file.subarray(start, start + bytes);
    if (content.length !== bytes || crc32(content) !== crc) return;
    yield { frame, start, bytes, crc };
    at = start + bytes;
  }
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
