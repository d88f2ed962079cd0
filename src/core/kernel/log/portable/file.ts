import {
  closeSync,
  createReadStream,
  createWriteStream,
  lstatSync,
  openSync,
  readSync,
  statSync,
} from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Readable, type Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import zlib from 'node:zlib';
import { isCoded } from '../../errors/holdfast-error.ts';
import { KernelError } from '../../errors/kernel-error.ts';
import { LONGEST_LINE } from './format.ts';

/** How far a log may expand. Every record has a hash, which cannot be compressed, so what expands further is no log. */
const LARGEST_EXPANSION = 200;
/** The expansion is checked only beyond this size, bytes. */
const PATIENCE = 64 * 1024 * 1024;

/** Lines are handed to the disk together, some 64 KiB at a time. */
const CHUNK = 64 * 1024;
const NEWLINE = 0x0a;
const GZIP = Buffer.from([0x1f, 0x8b]);
const ZSTD = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);

/**
 * Writes lines into a new file of mode 0600, which appears whole or not at all. `.gz` and `.zst` are compressed.
 *
 * @returns how many bytes the lines have before they are compressed
 * @throws HF_PORTABLE_WRITE, whatever the lines throw, and the signal's reason when it is aborted
 */
export async function writePortable(
  file: string,
  lines: Iterable<string>,
  signal?: AbortSignal,
): Promise<number> {
  const part = `${file}.${process.pid}.part`;
  let bytes = 0;
  function* chunks(): Generator<Buffer> {
    let text = '';
    for (const line of lines) {
      text += line;
      if (text.length < CHUNK) continue;
      const chunk = Buffer.from(text);
      bytes += chunk.length;
      yield chunk;
      text = '';
    }
    const chunk = Buffer.from(text);
    bytes += chunk.length;
    yield chunk;
  }
  try {
    const there = lstatSync(file, { throwIfNoEntry: false });
    // Renaming over a device would take it away from the whole machine.
    if (there && !there.isFile() && !there.isSymbolicLink())
      throw new Error('it is a device, a pipe or a folder');
    const target = createWriteStream(part, { flags: 'wx', mode: 0o600 });
    const stages = compressor(file);
    await pipeline([Readable.from(chunks()), ...stages, target], { signal });
    await sync(part);
    await rename(part, file);
    await sync(dirname(file));
    return bytes;
  } catch (error) {
    await rm(part, { force: true }).catch(() => {});
    if (isCoded(error)) throw error;
    signal?.throwIfAborted(); // the streams report an abort by errors of their own, such as a premature close
    const reason = error instanceof Error ? error.message : String(error);
    throw new KernelError('HF_PORTABLE_WRITE', { file, reason }, { cause: error });
  }
}

/** How many lines are written between two calls of a progress function. */
const LINES_A_CALL = 500;

/**
 * Passes lines on, and says how far they are.
 *
 * @param total how many there will be, about; undefined when that is not known
 * @param onProgress gets the bytes so far and the part that is done, 0 to 1
 */
export function* counted(
  lines: Iterable<string>,
  total: number | undefined,
  onProgress: ((bytes: number, part?: number) => void) | undefined,
): Generator<string> {
  let count = 0;
  let bytes = 0;
  for (const line of lines) {
    yield line;
    count += 1;
    bytes += line.length;
    if (onProgress && count % LINES_A_CALL === 0) onProgress(bytes, total && Math.min(1, count / total));
  }
}

/**
 * The lines of a file, decompressed by what its first bytes say, without their ends. The last one may lack its end.
 *
 * @throws HF_PORTABLE_READ it cannot be read; HF_PORTABLE_DAMAGED it cannot be decompressed, or has no lines
 */
export async function* readLines(file: string): AsyncGenerator<{ text: string; line: number }> {
  let line = 0;
  let waiting: Buffer[] = [];
  let size = 0;
  let read = 0;
  try {
    const compressed = statSync(file).size;
    for await (const chunk of decompressed(file)) {
      read += chunk.length;
      if (read > PATIENCE && read > compressed * LARGEST_EXPANSION) {
        const reason = `the file expands more than ${LARGEST_EXPANSION} times`;
        throw new KernelError('HF_PORTABLE_DAMAGED', { file, line: line + 1, reason });
      }
      let rest: Buffer = chunk;
      for (let end = rest.indexOf(NEWLINE); end >= 0; end = rest.indexOf(NEWLINE)) {
        line += 1;
        yield { text: Buffer.concat([...waiting, rest.subarray(0, end)]).toString(), line };
        rest = rest.subarray(end + 1);
        waiting = [];
        size = 0;
      }
      if (rest.length > 0) waiting.push(rest);
      size += rest.length;
      if (size > LONGEST_LINE) {
        const reason = `it is longer than ${LONGEST_LINE / 1024 / 1024} MiB`;
        throw new KernelError('HF_PORTABLE_DAMAGED', { file, line: line + 1, reason });
      }
    }
  } catch (error) {
    if (isCoded(error)) throw error;
    const { code = '', message } = error as NodeJS.ErrnoException;
    if (/^(Z_|ZSTD_|ERR_)/.test(code)) {
      const reason = `it cannot be decompressed (${message})`;
      throw new KernelError('HF_PORTABLE_DAMAGED', { file, line: line + 1, reason }, { cause: error });
    }
    throw new KernelError('HF_PORTABLE_READ', { file, reason: message }, { cause: error });
  }
  if (size > 0) yield { text: Buffer.concat(waiting).toString(), line: line + 1 };
}

function decompressed(file: string): AsyncIterable<Buffer> {
  const begin = firstBytes(file);
  const source = createReadStream(file);
  const stage = begin.subarray(0, 2).equals(GZIP)
    ? zlib.createGunzip()
    : begin.equals(ZSTD)
      ? zlib.createZstdDecompress()
      : undefined;
  if (!stage) return source;
  source.on('error', (error) => stage.destroy(error));
  return source.pipe(stage);
}

function firstBytes(file: string): Buffer {
  const bytes = Buffer.alloc(ZSTD.length);
  const descriptor = openSync(file, 'r');
  try {
    return bytes.subarray(0, readSync(descriptor, bytes, 0, bytes.length, 0));
  } finally {
    closeSync(descriptor);
  }
}

function compressor(file: string): Transform[] {
  if (file.endsWith('.gz')) return [zlib.createGzip()];
  if (file.endsWith('.zst')) return [zlib.createZstdCompress()];
  return [];
}

/** Makes a file or the entries of a folder durable. */
export async function sync(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
