import { randomBytes } from 'node:crypto';
import {
  appendFileSync,
  closeSync,
  fdatasync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { syncPath } from '../../../core/kernel/durable-file.ts';
import { decodeContent, encodeFrame, framesOf, type Placed } from './frames.ts';
import type { Frame } from './protocol.ts';

/** Bytes after which a file takes no more frames. */
const SEGMENT_BYTES = 8 * 1024 * 1024;
/** The file being written is emptied when nothing of it is needed and it has at least this share of the limit. */
const WORTH_EMPTYING = 1 / 1_000;
/** This much must be writable before the disk counts as working again. */
const PROBE = Buffer.alloc(64 * 1024);
/** The most frames that wait for their insert, in all files. */
const MOST_FRAMES = 500_000;

const sync = promisify(fdatasync);

interface Segment {
  readonly file: string;
  readonly fd: number;
  bytes: number;
  /** Frames that are not in the database. */
  readonly open: Map<string, Placed>;
}

/** The spool has reached its limit, and nothing was written. */
export class SpoolFull extends Error {}

/** The files of the spool. Used by one thread of one process; frames come out in the order they went in. */
export class Segments {
  readonly #dir: string;
  readonly #limit: number;
  readonly #segments: Segment[] = [];
  readonly #of = new Map<string, Segment>();
  #writing: Segment | undefined;
  #next = 1;
  #damaged = 0;

  /** Reads the files that an earlier run left. */
  constructor(dir: string, limit: number) {
    this.#dir = dir;
    this.#limit = limit;
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    const entries = readdirSync(dir, { withFileTypes: true }).filter(({ name }) => name.endsWith('.rows'));
    for (const entry of entries.sort((one, other) => (one.name < other.name ? -1 : 1))) {
      this.#next = Math.max(this.#next, (Number.parseInt(entry.name, 10) || 0) + 1);
      // Links and folders of such a name are not ours.
      if (entry.isFile()) this.#readSegment(entry.name);
    }
  }

  get bytes(): number {
    return this.#segments.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Damaged frames of an earlier run; some may have been in the database. */
  get damaged(): number {
    return this.#damaged;
  }

  /** Frames that are not in the database, oldest first. */
  get frames(): Frame[] {
    return this.#segments.flatMap(({ open }) => [...open.values()].map(({ frame }) => frame));
  }

  /** @returns a unique name for the next frame */
  name(): string {
    return randomBytes(12).toString('hex');
  }

  /**
   * Writes frames: they survive the end of the process from here on, and a power cut after `sync`.
   *
   * @throws SpoolFull; the error of the disk
   */
  append(frames: readonly { readonly frame: Frame; readonly text: Buffer }[]): void {
    const encoded = frames.map(({ frame, text }) => ({ frame, ...encodeFrame(frame, text) }));
    const size = encoded.reduce((sum, { head, content }) => sum + head.length + content.length, 0);
    if (this.bytes + size > this.#limit || this.#of.size + frames.length > MOST_FRAMES) throw new SpoolFull();
    const segment = this.#writable();
    const start = segment.bytes;
    try {
      writeAll(
        segment.fd,
        encoded.flatMap(({ head, content }) => [head, content]),
        start,
      );
      segment.bytes += size;
    } catch (error) {
      this.#abandon(segment, start);
      throw error;
    }
    let at = start;
    for (const { frame, head, content, crc } of encoded) {
      segment.open.set(frame.id, { frame, start: at + head.length, bytes: content.length, crc });
      this.#of.set(frame.id, segment);
      at += head.length + content.length;
    }
  }

  /** @returns whether a frame is still needed */
  has(id: string): boolean {
    return this.#of.has(id);
  }

  /** Makes frames durable. @throws the error of the disk */
  async sync(ids: Iterable<string>): Promise<void> {
    const segments = new Set([...ids].flatMap((id) => this.#of.get(id) ?? []));
    for (const { fd } of segments) await sync(fd);
  }

  /** @returns undefined when the frame is not needed any more */
  frame(id: string): Frame | undefined {
    return this.#of.get(id)?.open.get(id)?.frame;
  }

  /** @returns the rows of a frame, one a line; undefined when the file is damaged */
  read(id: string): Buffer | undefined {
    const segment = this.#of.get(id);
    const placed = segment?.open.get(id);
    if (!segment || !placed) return undefined;
    const content = Buffer.allocUnsafe(placed.bytes);
    const read = readSync(segment.fd, content, 0, placed.bytes, placed.start);
    return read === placed.bytes ? decodeContent(content, placed.crc) : undefined;
  }

  /** Tries whether the disk works again. @throws the error of the disk */
  probe(): void {
    const file = join(this.#dir, 'probe');
    const fd = openSync(file, 'w', 0o600);
    try {
      writeAll(fd, [PROBE], 0);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
      rmSync(file, { force: true });
    }
  }

  /** A frame is in the database. @returns whether space was freed */
  done(id: string): boolean {
    const segment = this.#of.get(id);
    if (!segment) return false;
    this.#of.delete(id);
    segment.open.delete(id);
    if (
      segment.open.size > 0 ||
      (segment === this.#writing && segment.bytes < this.#limit * WORTH_EMPTYING)
    ) {
      mark(segment.file, id);
      return false;
    }
    this.#empty(segment);
    return true;
  }

  close(): void {
    this.#writing = undefined;
    for (const segment of [...this.#segments]) {
      if (segment.open.size === 0) this.#empty(segment);
      else closeSync(segment.fd);
    }
  }

  #readSegment(name: string): void {
    const file = join(this.#dir, name);
    const content = readFileSync(file);
    const done = new Set(marked(file));
    const open = new Map<string, Placed>();
    const damaged = () => {
      this.#damaged += 1;
    };
    for (const placed of framesOf(content, damaged)) {
      if (!done.has(placed.frame.id)) open.set(placed.frame.id, placed);
    }
    if (open.size === 0) {
      remove(file);
      return;
    }
    const segment = { file, fd: openSync(file, 'r'), bytes: content.length, open };
    this.#segments.push(segment);
    for (const id of open.keys()) this.#of.set(id, segment);
  }

  #writable(): Segment {
    if (this.#writing && this.#writing.bytes < SEGMENT_BYTES) return this.#writing;
    const file = join(this.#dir, `${String(this.#next).padStart(12, '0')}.rows`);
    this.#next += 1; // a name is used once, even if its file cannot be made
    const fd = openSync(file, 'wx+', 0o600);
    try {
      syncPath(this.#dir);
    } catch (error) {
      closeSync(fd);
      throw error;
    }
    const segment = { file, fd, bytes: 0, open: new Map<string, Placed>() };
    this.#segments.push(segment);
    this.#writing = segment;
    return segment;
  }

  /** Removes a frame that was written in part, so that the next one does not stand behind it. */
  #abandon(segment: Segment, end: number): void {
    segment.bytes = end;
    try {
      ftruncateSync(segment.fd, end);
    } catch {
      this.#writing = undefined; // a reader stops at the incomplete frame; later frames go into another file
    }
  }

  #empty(segment: Segment): void {
    if (segment === this.#writing) {
      ftruncateSync(segment.fd, 0);
      segment.bytes = 0;
      rmSync(marksOf(segment.file), { force: true });
      return;
    }
    closeSync(segment.fd);
    this.#segments.splice(this.#segments.indexOf(segment), 1);
    remove(segment.file);
  }
}

/** Beside a file: the ids of frames that are in the database, one a line. */
export function marksOf(file: string): string {
  return `${file}.done`;
}

/** A lost mark is no error: after a crash the frame is inserted once more by the same name. */
export function mark(file: string, id: string): void {
  try {
    appendFileSync(marksOf(file), `${id}\n`, { mode: 0o600 });
  } catch {}
}

/** Ids of the frames of a file that are in the database. */
export function marked(file: string): string[] {
  try {
    return readFileSync(marksOf(file), 'utf8').split('\n');
  } catch {
    return [];
  }
}

/** A file with its marks. */
export function remove(file: string): void {
  rmSync(file, { force: true });
  rmSync(marksOf(file), { force: true });
}

/** Writes buffers one behind another. @param position bytes from the file's start @throws the error of the disk */
function writeAll(fd: number, buffers: readonly Buffer[], position: number): void {
  const whole = Buffer.concat(buffers);
  for (let done = 0; done < whole.length; ) {
    done += writeSync(fd, whole, done, whole.length - done, position + done);
  }
}
