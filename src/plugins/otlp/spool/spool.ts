import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import type { TableShape } from '../../../core/contracts/columnar-database.ts';
import type { SignalTable } from '../../../core/contracts/columnar-tables.ts';
import { free } from '../../../core/host/http/bounded-body.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import { startWorker } from '../../../core/kernel/worker.ts';
import { OtlpError } from '../errors.ts';
import {
  DECODING,
  type Frame,
  type FromThread,
  INSERTING,
  type ThreadSettings,
  type ToThread,
} from './protocol.ts';

const RESTART_MS = 1_000;
/** How often a disk that refused is tried again, ms: nothing is taken meanwhile, so nothing else would show that it works. */
const PROBE_MS = 2_000;
/** The thread's heap: a dense body of the largest size needs half of it. */
const HEAP_MIB = 512;
/** Rows that stay in memory until they are inserted, bytes; the others are read from the spool again. */
const MOST_HELD = 8 * 1024 * 1024;

export interface SpoolOptions {
  readonly clock: Clock;
  readonly dataDir: string;
  readonly bodyLimit: number;
  readonly spoolLimit: number;
  readonly lingerMs: number;
  readonly onMessage: (message: FromThread) => void;
  /**
   * The thread has ended.
   *
   * @param body that was being decoded, 0 when none was
   * @param wasOpen whether the files had been read
   */
  readonly onEnd: (reason: string, body: number, wasOpen: boolean) => void;
}

/** The main thread's side of the spool: it starts the thread that owns the files, and restarts it when it ends. */
export class Spool {
  readonly #options: SpoolOptions;
  readonly #dir: string;
  readonly #shared = new Int32Array(new SharedArrayBuffer(8));
  readonly #shapes = new Map<SignalTable, TableShape>();
  readonly #texts = new FrameTexts((frame) => this.post({ type: 'read', frame }));
  #thread: Worker | undefined;
  #isOpen = false;
  #cancelRestart: (() => void) | undefined;
  #cancelProbe: (() => void) | undefined;
  #onClosed: (() => void) | undefined;
  #isStopping = false;

  constructor(options: SpoolOptions) {
    this.#options = options;
    this.#dir = join(options.dataDir, 'otlp-spool');
  }

  /**
   * Starts the thread if an earlier run left anything. Otherwise the first body starts it.
   *
   * @throws HF_OTLP_SPOOL the folder is none, or cannot be read
   */
  start(): void {
    if (filesIn(this.#dir) > 0) this.#open();
  }

  /** @returns whether there is a thread that receives it */
  post(message: ToThread, transfer: readonly ArrayBuffer[] = []): boolean {
    if (message.type === 'take' && !this.#thread && !this.#cancelRestart && !this.#isStopping) this.#open();
    this.#thread?.postMessage(message, transfer);
    return this.#thread !== undefined;
  }

  /**
   * @param shape of the frame's table as it is
   * @param layout of the writer for it
   * @returns the rows of a frame in that layout; undefined when they are lost. Rejects while no thread can read them
   */
  read(frame: Frame, shape: TableShape, layout: string): Promise<Uint8Array | undefined> {
    if (this.#shapes.get(frame.table) !== shape) {
      this.#shapes.set(frame.table, shape);
      this.post({ type: 'shape', shape: plain(shape) });
    }
    return this.#texts.read(frame, layout);
  }

  /** While enough inserts are under way, the thread lets rows wait for the next one. @param change 1 or -1 */
  countInsert(change: 1 | -1): void {
    Atomics.add(this.#shared, INSERTING, change);
  }

  /** A frame is not needed any more. */
  done(frame: string): void {
    this.#texts.release(frame);
    this.post({ type: 'done', frame });
  }

  /** Ends the thread after what is under way. */
  async close(): Promise<void> {
    this.#isStopping = true;
    this.#cancelRestart?.();
    this.#cancelProbe?.();
    const thread = this.#thread;
    if (!thread) return;
    const closed = new Promise<void>((resolve) => {
      this.#onClosed = resolve;
    });
    this.post({ type: 'close' });
    await closed;
    this.#thread = undefined;
    await thread.terminate();
  }

  #open(): void {
    const { bodyLimit, spoolLimit, lingerMs } = this.#options;
    this.#cancelRestart = undefined;
    const data: ThreadSettings = {
      ...{ dir: this.#dir, bodyLimit, spoolLimit, lingerMs },
      shared: this.#shared.buffer,
      shapes: [...this.#shapes.values()].map(plain),
    };
    this.#thread = startWorker<FromThread>({
      module: './thread',
      base: import.meta.url,
      name: 'otlp-intake',
      data,
      heapMiB: HEAP_MIB,
      onMessage: (message) => this.#handle(message),
      onEnd: (reason) => this.#ended(reason),
    });
  }

  #handle(message: FromThread): void {
    if (message.type === 'opened') this.#isOpen = true;
    if (message.type === 'written') this.#texts.hold(message.frames, message.texts);
    if (message.type === 'rows') this.#texts.received(message.frame, message.text);
    if (message.type === 'closed') this.#onClosed?.();
    if (message.type === 'failed' && message.failure.kind === 'disk') this.#probeLater();
    this.#options.onMessage(message);
  }

  #probeLater(): void {
    this.#cancelProbe ??= this.#options.clock.after(PROBE_MS, () => {
      this.#cancelProbe = undefined;
      this.post({ type: 'probe' });
    });
  }

  #ended(reason: string): void {
    if (!this.#thread) return;
    this.#thread = undefined;
    const wasOpen = this.#isOpen;
    this.#isOpen = false;
    this.#texts.fail('the thread that decodes ended');
    this.#options.onEnd(reason, Atomics.exchange(this.#shared, DECODING, 0), wasOpen);
    if (this.#onClosed) this.#onClosed();
    else this.#cancelRestart = this.#options.clock.after(RESTART_MS, () => this.#open());
  }
}

/** The rows of frames on their way into the database: kept in memory since they were written, or read by the thread. */
export class FrameTexts {
  readonly #request: (frame: string) => boolean;
  readonly #held = new Map<string, Uint8Array>();
  /** The newest text of each frame that is being inserted. An older one may still be read by an insert that was given up. */
  readonly #inUse = new Map<string, Uint8Array>();
  readonly #requested = new Map<string, PromiseWithResolvers<Uint8Array | undefined>>();
  #bytes = 0;

  /** @param request requests a frame from the thread; false when there is no thread */
  constructor(request: (frame: string) => boolean) {
    this.#request = request;
  }

  /** @param texts one of each frame */
  hold(frames: readonly Frame[], texts: readonly Uint8Array[]): void {
    for (const [at, { id }] of frames.entries()) {
      const text = texts[at];
      if (!text || this.#bytes + text.length > MOST_HELD) continue;
      this.#held.set(id, text);
      this.#bytes += text.length;
    }
  }

  /**
   * @param layout that the rows must have; the thread knows it too
   * @returns undefined when they are lost. Rejects while there is no thread
   */
  read({ id, layout: written }: Frame, layout: string): Promise<Uint8Array | undefined> {
    const held = this.#held.get(id);
    if (held) {
      this.#held.delete(id);
      this.#bytes -= held.length;
      if (written === layout) {
        this.#inUse.set(id, held);
        return Promise.resolve(held);
      }
    }
    const rows = Promise.withResolvers<Uint8Array | undefined>();
    this.#requested.set(id, rows);
    if (!this.#request(id)) this.fail('there is no thread');
    return rows.promise;
  }

  /** The thread has read a frame. */
  received(frame: string, text: Uint8Array | undefined): void {
    if (text) this.#inUse.set(frame, text);
    this.#requested.get(frame)?.resolve(text);
    this.#requested.delete(frame);
  }

  /** A frame is inserted, or lost. */
  release(frame: string): void {
    const text = this.#inUse.get(frame);
    this.#inUse.delete(frame);
    if (text) free(text);
  }

  /** Rejects all requests to the thread. */
  fail(reason: string): void {
    for (const { reject } of this.#requested.values()) reject(new Error(reason));
    this.#requested.clear();
  }
}

/** A schema has methods, which no message can carry. */
function plain({ table, columns, enumNames }: TableShape): TableShape {
  return { table, columns, enumNames };
}

function filesIn(dir: string): number {
  try {
    return existsSync(dir) ? readdirSync(dir).length : 0;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason = code === 'ENOTDIR' ? 'it is a file' : (code ?? message);
    throw new OtlpError('HF_OTLP_SPOOL', { dir, reason });
  }
}
