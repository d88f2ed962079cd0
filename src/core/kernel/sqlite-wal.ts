import { closeSync, openSync, readSync, statSync } from 'node:fs';

/** Bytes before the first frame. */
export const WAL_HEADER = 32;
/** Bytes of a frame before its page. */
export const FRAME_HEADER = 24;
const MAGIC = 0x377f0682;

/** @returns whether a database of SQLite may have pages of so many bytes */
export function isPageSize(bytes: number): boolean {
  return bytes >= 512 && bytes <= 65_536 && (bytes & (bytes - 1)) === 0;
}

/** What is wrong with a write-ahead log. */
export interface WalDamage {
  /** The first frame that is not what was written, from 1 on. */
  readonly frame: number;
  /** Frames of this generation. */
  readonly frames: number;
}

/**
 * Checks the checksums of a write-ahead log (sqlite.org/fileformat2.html, 4.1 and 4.2). SQLite looks at them when it
 * recovers after a crash, and then drops the first frame that does not fit with all behind it, without a word; so this
 * is called before a database is opened.
 *
 * @param file beside its database, with the suffix `-wal`; nobody may write it meanwhile
 * @returns undefined when it is sound, empty, or not there; a last transaction that was cut short is sound, because
 * nobody was told that it is durable
 */
export function findWalDamage(file: string): WalDamage | undefined {
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (size < WAL_HEADER) return undefined;
  const descriptor = openSync(file, 'r');
  try {
    return check(descriptor, size);
  } finally {
    closeSync(descriptor);
  }
}

function check(descriptor: number, size: number): WalDamage | undefined {
  const header = read(descriptor, 0, WAL_HEADER);
  const magic = header.readUInt32BE(0);
  const pageSize = header.readUInt32BE(8) || 65_536;
  const sum = new Checksum((magic & 1) === 1);
  if ((magic & ~1) >>> 0 !== MAGIC || !isPageSize(pageSize)) return { frame: 0, frames: 0 };
  sum.add(header.subarray(0, 24));
  if (!sum.equals(header.readUInt32BE(24), header.readUInt32BE(28))) return { frame: 0, frames: 0 };
  let damaged: number | undefined;
  /** The newest frame that ends a transaction and fits what stands before it. */
  let committed = 0;
  let frame = 0;
  for (let at = WAL_HEADER; at + FRAME_HEADER + pageSize <= size; at += FRAME_HEADER + pageSize) {
    const bytes = read(descriptor, at, FRAME_HEADER + pageSize);
    const isOfThisGeneration = bytes.subarray(8, 16).equals(header.subarray(16, 24));
    // A salt that differs ends the generation, or was hit itself: then frames of this generation follow.
    if (!isOfThisGeneration && damaged !== undefined) continue;
    frame += 1;
    sum.add(bytes.subarray(0, 8));
    sum.add(bytes.subarray(FRAME_HEADER));
    const [first, second] = [bytes.readUInt32BE(16), bytes.readUInt32BE(20)];
    const fits = isOfThisGeneration && sum.equals(first, second);
    if (!fits) {
      damaged ??= frame;
      sum.set(first, second);
      continue;
    }
    if (bytes.readUInt32BE(4) > 0) committed = frame;
  }
  // What stands behind the damage and fits was written: so the damage is none of a write that a crash cut short.
  return damaged !== undefined && committed > damaged ? { frame: damaged, frames: committed } : undefined;
}

function read(descriptor: number, at: number, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  readSync(descriptor, bytes, 0, length, at);
  return bytes;
}

/** The checksum of the file format: two sums over pairs of 32-bit words. */
class Checksum {
  readonly #bigEndian: boolean;
  #first = 0;
  #second = 0;

  constructor(bigEndian: boolean) {
    this.#bigEndian = bigEndian;
  }

  add(bytes: Buffer): void {
    for (let at = 0; at < bytes.length; at += 8) {
      const word = (place: number) =>
        this.#bigEndian ? bytes.readUInt32BE(place) : bytes.readUInt32LE(place);
      this.#first = (this.#first + word(at) + this.#second) >>> 0;
      this.#second = (this.#second + word(at + 4) + this.#first) >>> 0;
    }
  }

  set(first: number, second: number): void {
    this.#first = first;
    this.#second = second;
  }

  equals(first: number, second: number): boolean {
    return this.#first === first && this.#second === second;
  }
}
