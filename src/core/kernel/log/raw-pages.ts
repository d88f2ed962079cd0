import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { FRAME_HEADER, isPageSize, WAL_HEADER } from '../sqlite-wal.ts';
import type { RawRecord } from './event-log.ts';

// Reads records from the pages of a database without SQLite, which gives up where its own structure is damaged: the file
// format (sqlite.org/fileformat2.html) says where the cells of a page are, and each cell holds a whole row. What is read
// here proves nothing: the hashes of the records do.

const TABLE_LEAF = 0x0d;
const DATABASE_HEADER = 100;
const HASH = /^[0-9a-f]{64}$/;
/** Seq (in the row's own number), actor, correlation, body and hash. */
const COLUMNS = 5;

/** Rows that look like records, in the order of the pages; several versions of one may come, and wrong ones. */
export function* recordsInPages(file: string, pageSize: number): Generator<RawRecord> {
  const database = new Pages(file, pageSize);
  const log = new Pages(`${file}-wal`, pageSize, true);
  try {
    // A row whose rest lies on other pages: those of the write-ahead log are newer, unless the row is older than them.
    const chains = [
      (page: number) => log.numbered(page) ?? database.numbered(page),
      (page: number) => database.numbered(page),
    ];
    for (const pages of [database, log]) {
      for (const { number, bytes } of pages.all()) {
        for (const chain of chains) yield* recordsIn(bytes, number === 1 ? DATABASE_HEADER : 0, chain);
      }
    }
  } finally {
    database.close();
    log.close();
  }
}

/** The size of pages by the headers of the database and its write-ahead log; undefined when neither can be read. */
export function pageSizeOf(file: string): number | undefined {
  const sizes = [bytesAt(file, 16, 2)?.readUInt16BE(0), bytesAt(`${file}-wal`, 8, 4)?.readUInt32BE(0)];
  return sizes
    .map((size) => (size === 1 ? 65_536 : size))
    .find((size) => size !== undefined && isPageSize(size));
}

function bytesAt(file: string, at: number, length: number): Buffer | undefined {
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) < at + length) return undefined;
  const descriptor = openSync(file, 'r');
  try {
    const bytes = Buffer.alloc(length);
    return readSync(descriptor, bytes, 0, length, at) === length ? bytes : undefined;
  } finally {
    closeSync(descriptor);
  }
}

/** The pages of a database, or those in its write-ahead log. */
class Pages {
  readonly #descriptor: number | undefined;
  readonly #size: number;
  readonly #pageSize: number;
  readonly #isLog: boolean;
  /** Where the newest version of each page lies; empty for a database. */
  readonly #newest = new Map<number, number>();

  constructor(file: string, pageSize: number, isLog = false) {
    this.#pageSize = pageSize;
    this.#isLog = isLog;
    this.#size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
    this.#descriptor = this.#size === 0 ? undefined : openSync(file, 'r');
    if (isLog) for (const { number, at } of this.#places()) this.#newest.set(number, at);
  }

  *all(): Generator<{ number: number; bytes: Buffer }> {
    for (const { number, at } of this.#places()) {
      const bytes = this.#read(at);
      if (bytes) yield { number, bytes };
    }
  }

  numbered(page: number): Buffer | undefined {
    const at = this.#isLog ? this.#newest.get(page) : (page - 1) * this.#pageSize;
    return at === undefined || page < 1 ? undefined : this.#read(at);
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
  }

  *#places(): Generator<{ number: number; at: number }> {
    if (!this.#isLog) {
      for (let at = 0; at + this.#pageSize <= this.#size; at += this.#pageSize)
        yield { number: at / this.#pageSize + 1, at };
      return;
    }
    const header = Buffer.alloc(4);
    const step = FRAME_HEADER + this.#pageSize;
    for (let at = WAL_HEADER; at + step <= this.#size; at += step) {
      readSync(this.#descriptor as number, header, 0, header.length, at);
      yield { number: header.readUInt32BE(0), at: at + FRAME_HEADER };
    }
  }

  #read(at: number): Buffer | undefined {
    if (this.#descriptor === undefined || at + this.#pageSize > this.#size) return undefined;
    const bytes = Buffer.alloc(this.#pageSize);
    readSync(this.#descriptor, bytes, 0, bytes.length, at);
    return bytes;
  }
}

type PageReader = (page: number) => Buffer | undefined;

function* recordsIn(page: Buffer, at: number, chain: PageReader): Generator<RawRecord> {
  if (page[at] !== TABLE_LEAF) return;
  const cells = page.readUInt16BE(at + 3);
  for (let cell = 0; cell < cells && at + 10 + 2 * cell <= page.length; cell += 1) {
    const start = page.readUInt16BE(at + 8 + 2 * cell);
    if (start < at + 8 || start >= page.length) continue;
    const record = recordAt(page, start, chain);
    if (record) yield record;
  }
}

function recordAt(page: Buffer, start: number, chain: PageReader): RawRecord | undefined {
  const length = varint(page, start);
  const seq = length && varint(page, length.end);
  if (!seq || length.value < COLUMNS || seq.value < 1 || !Number.isSafeInteger(seq.value)) return undefined;
  const payload = payloadAt(page, seq.end, length.value, chain);
  const texts = payload && textsIn(payload);
  if (!texts || texts.length !== COLUMNS - 1) return undefined;
  const [actor = '', correlation = '', ...rest] = texts;
  // An earlier release had the body in front of the hash.
  const hash = rest.find((text) => HASH.test(text));
  const body = rest.find((text) => text !== hash);
  if (hash === undefined || body === undefined) return undefined;
  return { seq: seq.value, actor, correlation, hash, body };
}

/** A longer one goes on in a chain of other pages. */
function payloadAt(page: Buffer, at: number, length: number, chain: PageReader): Buffer | undefined {
  const usable = page.length;
  const most = usable - 35;
  if (length <= most) return at + length <= usable ? page.subarray(at, at + length) : undefined;
  const least = Math.floor(((usable - 12) * 32) / 255) - 23;
  const fitting = least + ((length - least) % (usable - 4));
  const local = fitting <= most ? fitting : least;
  if (at + local + 4 > usable) return undefined;
  const parts = [page.subarray(at, at + local)];
  let left = length - local;
  let next = page.readUInt32BE(at + local);
  for (; left > 0; left -= usable - 4) {
    const more = chain(next);
    if (!more) return undefined;
    parts.push(more.subarray(4, 4 + Math.min(left, usable - 4)));
    next = more.readUInt32BE(0);
  }
  return Buffer.concat(parts);
}

/** The texts of a row, whose first column is the row's own number and therefore empty. */
function textsIn(payload: Buffer): string[] | undefined {
  const header = varint(payload, 0);
  if (!header || header.value > payload.length) return undefined;
  const texts: string[] = [];
  let content = header.value;
  for (let at = header.end; at < header.value; ) {
    const type = varint(payload, at);
    if (!type) return undefined;
    at = type.end;
    if (type.value === 0) continue;
    if (type.value < 13 || type.value % 2 === 0) return undefined;
    const bytes = (type.value - 13) / 2;
    if (content + bytes > payload.length) return undefined;
    texts.push(payload.toString('utf8', content, content + bytes));
    content += bytes;
  }
  return texts;
}

function varint(bytes: Buffer, at: number): { readonly value: number; readonly end: number } | undefined {
  let value = 0;
  for (let index = 0; index < 8; index += 1) {
    const byte = bytes[at + index];
    if (byte === undefined) return undefined;
    value = value * 128 + (byte & 0x7f);
    if (byte < 0x80) return { value, end: at + index + 1 };
  }
  return undefined; // larger than any number here
}
