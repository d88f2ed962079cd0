import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { gunzipSync } from 'node:zlib';
import type { SignalTable } from '../../../core/contracts/columnar-tables.ts';
import { free } from '../../../core/host/free.ts';
import { decode } from '../decode/decode.ts';
import { defaultShape, type RowWriter, readRows, writerOf } from '../decode/row-writer.ts';
import { BodyInvalid } from '../decode/values.ts';
import { Gather } from './batch.ts';
import {
  DECODING,
  type Failure,
  type FromThread,
  INSERTING,
  type Taken,
  type ThreadSettings,
  type ToThread,
} from './protocol.ts';
import { Segments, SpoolFull } from './segments.ts';

/** Decoding waits while so many bytes of rows wait for the disk. */
const MOST_WAITING = 4 * 1024 * 1024;
/** A write that is not in the database by then is synced, ms. */
const SYNC_AFTER_MS = 30;
/** Inserts that the database works on at once; what comes meanwhile goes together with the next. */
const UNDER_WAY = 2;
/** Rows wait for an insert that is under way at most so long, ms. */
const LONGEST_COMPANY_MS = 500;

type Take = Extract<ToThread, { type: 'take' }>;
type Post = (message: FromThread, transfer?: readonly ArrayBuffer[]) => void;

/** The thread that inflates, decodes and writes down what is received, and gives it out again to be inserted. */
class IntakeThread {
  readonly #settings: ThreadSettings;
  readonly #post: Post;
  readonly #shared: Int32Array;
  readonly #segments: Segments;
  readonly #queue: Take[] = [];
  #gather: Gather;
  #decodes: Promise<void> | undefined;
  #commits: Promise<void> | undefined;
  #committedAt = 0;
  #wake: (() => void) | undefined;
  #syncs: Promise<void> | undefined;
  readonly #unsynced: Taken[] = [];
  readonly #writers = new Map<SignalTable, RowWriter>();

  constructor(settings: ThreadSettings, post: Post) {
    this.#settings = settings;
    this.#post = post;
    this.#shared = new Int32Array(settings.shared);
    for (const shape of settings.shapes) this.#writers.set(shape.table, writerOf(shape));
    this.#segments = new Segments(settings.dir, settings.spoolLimit);
    this.#gather = new Gather(() => this.#segments.name());
    const { frames, bytes, damaged } = this.#segments;
    post({ type: 'opened', frames, bytes, damaged });
  }

  async hear(message: ToThread): Promise<void> {
    switch (message.type) {
      case 'take':
        this.#queue.push(message);
        this.#decodes ??= this.#decodeAll();
        return;
      case 'shape':
        this.#writers.set(message.shape.table, writerOf(message.shape));
        return;
      case 'read': {
        const text = this.#read(message.frame);
        return this.#post({ type: 'rows', frame: message.frame, text }, text && [text.buffer]);
      }
      case 'done':
        this.#wake?.();
        if (this.#segments.done(message.frame)) this.#post({ type: 'freed', bytes: this.#segments.bytes });
        return;
      case 'probe':
        return this.#probe();
      case 'close':
        await this.#decodes;
        await this.#commits;
        await this.#syncs;
        this.#segments.close();
        this.#post({ type: 'closed' });
    }
  }

  /** The rows of a frame for its table as it is now, in a buffer that can be handed over. */
  #read(id: string): Uint8Array<ArrayBuffer> | undefined {
    const frame = this.#segments.frame(id);
    const bytes = this.#segments.read(id);
    if (!frame || !bytes) return undefined;
    const writer = this.#writerOf(frame.table);
    if (frame.layout === writer.layout) return new Uint8Array(bytes);
    const lines = readRows(frame.layout, bytes).map((row) => writer.line(writer.scope(row), row));
    return new Uint8Array(Buffer.from(lines.join('\n')));
  }

  #writerOf(table: SignalTable): RowWriter {
    return this.#writers.get(table) ?? writerOf(defaultShape(table));
  }

  #probe(): void {
    try {
      this.#segments.probe();
      this.#post({ type: 'freed', bytes: this.#segments.bytes });
    } catch (error) {
      this.#post({ type: 'failed', ids: [], failure: failureOf(error) });
    }
  }

  async #decodeAll(): Promise<void> {
    for (let take = this.#queue.shift(); take; take = this.#queue.shift()) {
      while (this.#gather.bytes > MOST_WAITING) await this.#commits;
      await this.#decode(take);
    }
    this.#decodes = undefined;
  }

  async #decode({ id, signal, encoding, gzip, body, now }: Take): Promise<void> {
    try {
      Atomics.store(this.#shared, DECODING, id);
      const inflated = this.#inflated(body, gzip);
      const decoded = await decode(signal, encoding, inflated, now, (table) => this.#writerOf(table));
      free(inflated);
      this.#gather.add(id, decoded);
      if (this.#gather.hasWhole) this.#wake?.();
      this.#commits ??= this.#commitAll();
    } catch (error) {
      this.#post({ type: 'failed', ids: [id], failure: failureOf(error) });
    } finally {
      free(body);
      Atomics.store(this.#shared, DECODING, 0);
    }
  }

  /** Inflating ends at the limit: a bomb never goes off. */
  #inflated(body: Uint8Array, gzip: boolean): Buffer {
    const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
    return gzip ? gunzipSync(bytes, { maxOutputLength: this.#settings.bodyLimit }) : bytes;
  }

  /** Group commit: what is decoded while one write is on its way to the disk goes with the next. */
  async #commitAll(): Promise<void> {
    while (this.#gather.taken.length > 0) {
      await this.#company();
      const gather = this.#gather;
      this.#gather = new Gather(() => this.#segments.name());
      this.#committedAt = performance.now();
      this.#commit(gather);
      await turn(); // what has come meanwhile is decoded before the next commit
    }
    this.#commits = undefined;
  }

  /**
   * An insert costs the engine half as much for a hundred rows as for a thousand: while it is at work, rows wait for
   * others, at least `lingerMs` after the last commit.
   */
  async #company(): Promise<void> {
    const wait = this.#committedAt + this.#settings.lingerMs - performance.now();
    if (wait > 0 && !this.#gather.hasWhole) await sleep(wait);
    const until = performance.now() + LONGEST_COMPANY_MS;
    for (;;) {
      const now = performance.now();
      const isBusy = Atomics.load(this.#shared, INSERTING) >= UNDER_WAY;
      if (!isBusy || now >= until || this.#gather.hasWhole) return;
      const over = new AbortController();
      this.#wake = () => over.abort();
      await sleep(until - now, undefined, { signal: over.signal }).catch(() => {});
      this.#wake = undefined;
    }
  }

  #commit(gather: Gather): void {
    const { taken } = gather;
    try {
      const filled = gather.frames(Date.now());
      if (filled.length > 0) this.#segments.append(filled);
      const frames = filled.map(({ frame }) => frame);
      const texts = filled.map(({ text }) => text);
      this.#unsynced.push(...taken);
      this.#syncs ??= this.#syncAll();
      this.#post(
        { type: 'written', frames, texts, taken, bytes: this.#segments.bytes },
        texts.map(({ buffer }) => buffer),
      );
    } catch (error) {
      this.#post({ type: 'failed', ids: taken.map(({ id }) => id), failure: failureOf(error) });
    }
  }

  /** What gets into the database soon after it was written needs no sync, which spares the disk. */
  async #syncAll(): Promise<void> {
    while (this.#unsynced.length > 0) {
      await sleep(SYNC_AFTER_MS);
      const taken = this.#unsynced.splice(0);
      const ids = taken.map(({ id }) => id);
      const needed = taken.flatMap(({ frames }) => frames).filter((frame) => this.#segments.has(frame));
      try {
        await this.#segments.sync(needed);
        this.#post({ type: 'synced', ids });
      } catch (error) {
        this.#post({ type: 'failed', ids, failure: failureOf(error) });
      }
    }
    this.#syncs = undefined;
  }
}

function failureOf(error: unknown): Failure {
  if (error instanceof BodyInvalid) return { kind: 'invalid', reason: error.message };
  if (error instanceof SpoolFull) return { kind: 'full' };
  const { code = '', message } = error as NodeJS.ErrnoException;
  if (code === 'ERR_BUFFER_TOO_LARGE') return { kind: 'too-large' };
  if (code.startsWith('Z_')) return { kind: 'invalid', reason: 'it is not gzip, or ends too early' };
  // Nesting that exhausts the stack.
  if (error instanceof RangeError) return { kind: 'invalid', reason: 'it is nested too deep, or too large' };
  return { kind: 'disk', reason: code || message };
}

if (!isMainThread && parentPort) {
  const port = parentPort;
  const thread = new IntakeThread(workerData as ThreadSettings, (message, transfer = []) =>
    port.postMessage(message, [...transfer]),
  );
  port.on('message', (message: ToThread) => void thread.hear(message));
}
