import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import type { TableShape } from '../../../core/contracts/columnar-database.ts';
import type { SignalTable } from '../../../core/contracts/columnar-tables.ts';
import { free } from '../../../core/host/free.ts';
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
/** A disk that refused is tried again so often, ms: nothing is taken until it has room, so nobody else would see that. */
const PROBE_MS = 2_000;
/** The thread's heap: a dense body of the largest size needs half of it. */
const HEAP_MIB = 512;

export interface SpoolOptions {
  readonly clock: Clock;
  readonly dataDir: string;
  readonly bodyLimit: number;
  readonly spoolLimit: number;
  readonly lingerMs: number;
  readonly hear: (message: FromThread) => void;
  /**
   * @param body that was being decoded then, 0 when none was
   * @param wasOpen whether the files had been read
   */
  readonly ended: (reason: string, body: number, wasOpen: boolean) => void;
}

/** The spool as the main thread knows it: the thread that owns its files is started, told, and started anew. */
export class Spool {
  readonly #options: SpoolOptions;
  readonly #dir: string;
  readonly #shared = new Int32Array(new SharedArrayBuffer(8));
  readonly #shapes = new Map<SignalTable, TableShape>();
  readonly #texts = new Texts((frame) => this.post({ type: 'read', frame }));
  #thread: Worker | undefined;
  #isOpen = false;
  #restart: (() => void) | undefined;
  #probe: (() => void) | undefined;
  #closed: (() => void) | undefined;
  #stopping = false;

  constructor(options: SpoolOptions) {
    this.#options = options;
    this.#dir = join(options.dataDir, 'otlp-spool');
  }

  /**
   * What an earlier run left is told. Without that the thread starts with the first body.
   *
   * @throws HF_OTLP_SPOOL the folder is none, or cannot be read
   */
  start(): void {
    if (leftIn(this.#dir) > 0) this.#open();
  }

  /** @returns whether the thread hears it */
  post(message: ToThread, transfer: readonly ArrayBuffer[] = []): boolean {
    if (message.type === 'take' && !this.#thread && !this.#restart && !this.#stopping) this.#open();
    this.#thread?.postMessage(message, transfer);
    return this.#thread !== undefined;
  }

  /** @returns the rows of a frame for its table as it is; undefined when they are lost. Rejects while nobody can read */
  read(frame: Frame, shape: TableShape, layout: string): Promise<Uint8Array | undefined> {
    if (this.#shapes.get(frame.table) !== shape) {
      const { table, columns, enumNames } = shape;
      this.#shapes.set(table, shape);
      this.post({ type: 'shape', shape: { table, columns, enumNames } });
    }
    return this.#texts.read(frame, layout);
  }

  /** An insert begins, or ended: while there are enough, the thread gathers more rows for the next. */
  inserting(change: 1 | -1): void {
    Atomics.add(this.#shared, INSERTING, change);
  }

  /** A frame is needed no more. */
  done(frame: string): void {
    this.#texts.letGo(frame);
    this.post({ type: 'done', frame });
  }

  /** Ends the thread after what is under way. */
  async close(): Promise<void> {
    this.#stopping = true;
    this.#restart?.();
    this.#probe?.();
    const thread = this.#thread;
    if (!thread) return;
    const closed = new Promise<void>((resolve) => {
      this.#closed = resolve;
    });
    this.post({ type: 'close' });
    await closed;
    this.#thread = undefined;
    await thread.terminate();
  }

  #open(): void {
    const { bodyLimit, spoolLimit, lingerMs } = this.#options;
    this.#restart = undefined;
    const data: ThreadSettings = {
      ...{ dir: this.#dir, bodyLimit, spoolLimit, lingerMs },
      shared: this.#shared.buffer,
      shapes: [...this.#shapes.values()].map(({ table, columns, enumNames }) => ({
        table,
        columns,
        enumNames,
      })),
    };
    this.#thread = startWorker<FromThread>({
      module: './thread',
      base: import.meta.url,
      name: 'otlp-intake',
      data,
      heapMiB: HEAP_MIB,
      onMessage: (message) => this.#hear(message),
      onEnd: (reason) => this.#ended(reason),
    });
  }

  #hear(message: FromThread): void {
    if (message.type === 'opened') this.#isOpen = true;
    if (message.type === 'written') this.#texts.hold(message.frames, message.texts);
    if (message.type === 'rows') this.#texts.came(message.frame, message.text);
    if (message.type === 'closed') this.#closed?.();
    if (message.type === 'failed' && message.failure.kind === 'disk') this.#probeLater();
    this.#options.hear(message);
  }

  #probeLater(): void {
    this.#probe ??= this.#options.clock.after(PROBE_MS, () => {
      this.#probe = undefined;
      this.post({ type: 'probe' });
    });
  }

  #ended(reason: string): void {
    if (!this.#thread) return;
    this.#thread = undefined;
    const wasOpen = this.#isOpen;
    this.#isOpen = false;
    this.#texts.fail('the thread that decodes ended');
    this.#options.ended(reason, Atomics.exchange(this.#shared, DECODING, 0), wasOpen);
    if (this.#closed) this.#closed();
    else this.#restart = this.#options.clock.after(RESTART_MS, () => this.#open());
  }
}

/** How much lies in the spool's folder. */
function leftIn(dir: string): number {
  try {
    return existsSync(dir) ? readdirSync(dir).length : 0;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason = code === 'ENOTDIR' ? 'it is a file' : (code ?? message);
    throw new OtlpError('HF_OTLP_SPOOL', { dir, reason });
  }
}

/** Rows that are kept in memory until they are inserted, bytes; of others the spool has a copy. */
const MOST_HELD = 8 * 1024 * 1024;

/** The rows of frames on their way into the database: kept since they were written, or asked of the thread again. */
export class Texts {
  readonly #ask: (frame: string) => boolean;
  readonly #held = new Map<string, Uint8Array>();
  /**
   * Given out last. What was given out before that may still be read by an insert that was given up, and is left to the
   * collector of garbage.
   */
  readonly #out = new Map<string, Uint8Array>();
  readonly #asked = new Map<string, PromiseWithResolvers<Uint8Array | undefined>>();
  #bytes = 0;

  /** @param ask has a frame read from its file; false when nobody can now */
  constructor(ask: (frame: string) => boolean) {
    this.#ask = ask;
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
   * @param layout of the table as it is; the thread knows it too
   * @returns undefined when they are lost. Rejects while there is no spool to read
   */
  read({ id, layout: written }: Frame, layout: string): Promise<Uint8Array | undefined> {
    const held = this.#held.get(id);
    if (held) {
      this.#held.delete(id);
      this.#bytes -= held.length;
      if (written === layout) {
        this.#out.set(id, held);
        return Promise.resolve(held);
      }
    }
    const asked = Promise.withResolvers<Uint8Array | undefined>();
    this.#asked.set(id, asked);
    if (!this.#ask(id)) this.fail('there is no spool');
    return asked.promise;
  }

  came(frame: string, text: Uint8Array | undefined): void {
    if (text) this.#out.set(frame, text);
    this.#asked.get(frame)?.resolve(text);
    this.#asked.delete(frame);
  }

  /** A frame is inserted, or lost. */
  letGo(frame: string): void {
    const text = this.#out.get(frame);
    this.#out.delete(frame);
    if (text) free(text);
  }

  /** Nobody will answer what was asked. */
  fail(reason: string): void {
    for (const { reject } of this.#asked.values()) reject(new Error(reason));
    this.#asked.clear();
  }
}
