import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { gunzipSync } from 'node:zlib';
import type { SignalTable } from '../../../core/contracts/columnar-tables.ts';
import { free } from '../../../core/host/http/bounded-body.ts';
import { decode } from '../decode/decode.ts';
import { defaultShape, type RowWriter, readRows, writerOf } from '../decode/row-writer.ts';
import { BodyInvalid } from '../decode/values.ts';
import { Batch } from './batch.ts';
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

/** Decoding pauses while this many bytes of rows wait for the disk. */
const MOST_WAITING = 4 * 1024 * 1024;
/** Rows that are not in the database this long after their write are synced, ms. */
const SYNC_AFTER_MS = 30;
/** While this many inserts are under way, rows wait for the next one. */
const ENOUGH_INSERTS = 2;
/** The longest that rows wait for others while inserts are under way, ms. */
const LONGEST_WAIT_MS = 500;

type Take = Extract<ToThread, { type: 'take' }>;
type Post = (message: FromThread, transfer?: readonly ArrayBuffer[]) => void;

/** The thread that inflates and decodes bodies, writes their rows to disk, and reads them again for inserts. */
class IntakeThread {
  readonly #settings: ThreadSettings;
  readonly #post: Post;
  readonly #shared: Int32Array;
  readonly #segments: Segments;
  readonly #queue: Take[] = [];
  #batch: Batch;
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
    this.#batch = new Batch(() => this.#segments.name());
    const { frames, bytes, damaged } = this.#segments;
    post({ type: 'opened', frames, bytes, damaged });
  }

  async handle(message: ToThread): Promise<void> {
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

  /** The rows of a frame for its table as it is now, in a buffer that can be handed to the main thread. */
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
      while (this.#batch.bytes > MOST_WAITING) await this.#commits;
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
      this.#batch.add(id, decoded);
      if (this.#batch.hasFullFrame) this.#wake?.();
      this.#commits ??= this.#commitAll();
    } catch (error) {
      this.#post({ type: 'failed', ids: [id], failure: failureOf(error) });
    } finally {
      free(body);
      Atomics.store(this.#shared, DECODING, 0);
    }
  }

  /** Inflating ends at the limit, whatever a small body would become. */
  #inflated(body: Uint8Array, gzip: boolean): Buffer {
    const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
    return gzip ? gunzipSync(bytes, { maxOutputLength: this.#settings.bodyLimit }) : bytes;
  }

  /** Group commit: rows that are decoded during one write go with the next. */
  async #commitAll(): Promise<void> {
    while (this.#batch.taken.length > 0) {
      await this.#waitForRows();
      const batch = this.#batch;
      this.#batch = new Batch(() => this.#segments.name());
      this.#committedAt = performance.now();
      this.#commit(batch);
      await setImmediate(); // bodies that came meanwhile are decoded before the next commit
    }
    this.#commits = undefined;
  }

  /**
   * Lets rows wait for others: until `lingerMs` after the last commit, and then while enough inserts are under way,
   * since a hundred rows cost the engine half as much as a thousand.
   */
  async #waitForRows(): Promise<void> {
    const wait = this.#committedAt + this.#settings.lingerMs - performance.now();
    if (wait > 0 && !this.#batch.hasFullFrame) await sleep(wait);
    const until = performance.now() + LONGEST_WAIT_MS;
    for (;;) {
      const now = performance.now();
      const isBusy = Atomics.load(this.#shared, INSERTING) >= ENOUGH_INSERTS;
      if (!isBusy || now >= until || this.#batch.hasFullFrame) return;
      const over = new AbortController();
      this.#wake = () => over.abort();
      await sleep(until - now, undefined, { signal: over.signal }).catch(() => {});
      this.#wake = undefined;
    }
  }

  #commit(batch: Batch): void {
    const { taken } = batch;
    try {
      const filled = batch.frames(Date.now());
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

  /** Frames that get into the database soon after they were written need no sync, which spares the disk. */
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
  // Too deep nesting exhausts the stack.
  if (error instanceof RangeError) return { kind: 'invalid', reason: 'it is nested too deep, or too large' };
  return { kind: 'disk', reason: code || message };
}

if (!isMainThread && parentPort) {
  const port = parentPort;
  const thread = new IntakeThread(workerData as ThreadSettings, (message, transfer = []) =>
    port.postMessage(message, [...transfer]),
  );
  port.on('message', (message: ToThread) => void thread.handle(message));
}
