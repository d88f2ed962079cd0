import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import type { ColumnarDatabase } from '../../core/adapters/columnar-database.ts';
import type { Clock } from '../../core/clock.ts';
import { startWorker } from '../../core/worker.ts';
import type { Encoding, Signal } from './decode/index.ts';
import { Drain } from './drain.ts';
import type { Failure, Frame, FromThread, Taken, ThreadSettings, ToThread } from './spool/index.ts';

/** An answer waits so long for its rows to be in the database, ms; on disk they are before. */
const ANSWER_WAIT_MS = 2_000;
const RESTART_MS = 1_000;
/** Rows that are kept in memory until they are inserted, bytes. */
const MOST_HELD = 16 * 1024 * 1024;
/** The thread's heap: a dense body of the largest size needs half of it. */
const HEAP_MIB = 512;
/** The spool takes again when it has so much room, as a share of its limit. */
const FREE_ENOUGH = 0.9;

export interface Body {
  readonly signal: Signal;
  readonly encoding: Encoding;
  readonly gzip: boolean;
  /** Given away: it must not be used after. */
  readonly bytes: Uint8Array;
}

export type Outcome = TakenOutcome | Failure;
type TakenOutcome = Taken & { readonly kind: 'taken' };

export interface IntakeParts {
  readonly clock: Clock;
  readonly dataDir: string;
  readonly bodyLimit: number;
  readonly spoolLimit: number;
  readonly lingerMs: number;
  readonly database: () => ColumnarDatabase | undefined;
  readonly databaseChanged: (place: string, reason: string | undefined) => void;
  /** Nothing can be kept for a reason, or something again. */
  readonly spoolChanged: (reason: string | undefined) => void;
  readonly inserted: (frame: Frame) => void;
  readonly lost: (frame: Frame) => void;
  /** So many frames of an earlier run cannot be read any more. */
  readonly damaged: (frames: number) => void;
  readonly threadEnded: (reason: string) => void;
}

interface Waiting {
  readonly answer: (outcome: Outcome) => void;
  taken?: Taken;
  synced?: boolean;
  left: number;
  cancel?: () => void;
}

/**
 * The way of a body: to the thread that decodes it and writes it down, from there into the database, and then, or as
 * soon as it must not be waited for and its rows are synced, its answer.
 */
export class Intake {
  readonly #parts: IntakeParts;
  readonly #drain: Drain;
  readonly #waiting = new Map<number, Waiting>();
  /** Which bodies wait for a frame. */
  readonly #byFrame = new Map<string, number[]>();
  readonly #reads = new Map<string, PromiseWithResolvers<string | undefined>>();
  /** Rows on their way into the database, by frame. */
  readonly #held = new Map<string, Uint8Array>();
  #heldBytes = 0;
  readonly #decoding = new SharedArrayBuffer(4);
  readonly #dir: string;
  #thread: Worker | undefined;
  #isOpen = false;
  #stopping = false;
  #closed: (() => void) | undefined;
  #restart: (() => void) | undefined;
  #next = 1;
  #bytes = 0;
  #stuck: string | undefined;
  #damaged = 0;

  constructor(parts: IntakeParts) {
    this.#parts = parts;
    this.#dir = join(parts.dataDir, 'otlp-spool');
    this.#drain = new Drain({
      clock: parts.clock,
      database: parts.database,
      read: (frame) => this.#read(frame),
      done: (frame, inserted) => this.#done(frame, inserted),
      changed: (place, reason) => {
        parts.databaseChanged(place, reason);
        if (reason !== undefined) this.#answerDurable();
      },
    });
  }

  /** What an earlier run left begins to be inserted. Without that the thread starts with the first body. */
  start(): void {
    if (existsSync(this.#dir) && readdirSync(this.#dir).length > 0) this.#open();
  }

  get spool(): { readonly bytes: number; readonly rows: number; readonly oldest: number | undefined } {
    const frames = this.#drain.waiting;
    const rows = frames.reduce((sum, frame) => sum + frame.rows, 0);
    const oldest = frames.reduce<number | undefined>(
      (at, frame) => Math.min(at ?? frame.at, frame.at),
      undefined,
    );
    return { bytes: frames.length === 0 ? 0 : this.#bytes, rows, oldest };
  }

  /** Frames that were found damaged since the start. */
  get damaged(): number {
    return this.#damaged;
  }

  /** Why nothing gets into the database; undefined while something does. */
  get away(): string | undefined {
    return this.#drain.reason;
  }

  take({ bytes, ...body }: Body): Promise<Outcome> {
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    if (!this.#thread && !this.#restart && !this.#stopping) this.#open();
    if (!this.#thread)
      return Promise.resolve({ kind: 'lost', reason: 'the thread that decodes starts anew' });
    const id = this.#next;
    this.#next = (this.#next % 0x7fff_fffe) + 1;
    this.#waiting.set(id, { answer: resolve, left: 0 });
    const own = ownBuffer(bytes);
    this.#post({ type: 'take', id, ...body, body: own, now: this.#parts.clock.now() }, [own.buffer]);
    return promise;
  }

  /** Ends after what is under way; what is not in the database by then stays on disk. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#restart?.();
    await this.#drain.stop();
    const thread = this.#thread;
    if (thread) {
      const closed = new Promise<void>((resolve) => {
        this.#closed = resolve;
      });
      this.#post({ type: 'close' });
      await closed;
      this.#thread = undefined;
      await thread.terminate();
    }
    this.#failAll({ kind: 'lost', reason: 'the receiver stops' });
  }

  #open(): void {
    const { bodyLimit, spoolLimit, lingerMs } = this.#parts;
    this.#restart = undefined;
    const data: ThreadSettings = {
      dir: this.#dir,
      bodyLimit,
      spoolLimit,
      lingerMs,
      decoding: this.#decoding,
    };
    this.#thread = startWorker<FromThread>({
      module: './spool/thread',
      base: import.meta.url,
      name: 'otlp-intake',
      data,
      heapMiB: HEAP_MIB,
      onMessage: (message) => this.#hear(message),
      onEnd: (reason) => this.#ended(reason),
    });
  }

  #hear(message: FromThread): void {
    switch (message.type) {
      case 'opened':
        this.#isOpen = true;
        this.#bytes = message.bytes;
        this.#damaged = Math.max(this.#damaged, message.damaged);
        if (message.damaged > 0) this.#parts.damaged(message.damaged);
        this.#drain.reset();
        this.#unstick();
        this.#drain.add(message.frames);
        return;
      case 'written':
        this.#bytes = message.bytes;
        this.#unstick();
        this.#hold(message.frames, message.texts);
        for (const taken of message.taken) this.#written(taken);
        this.#drain.add(message.frames);
        return;
      case 'synced':
        for (const id of message.ids) this.#synced(id);
        return;
      case 'failed':
        if (message.failure.kind === 'full') this.#stick('the spool is full');
        if (message.failure.kind === 'disk') this.#stick(`the disk refuses: ${message.failure.reason}`);
        for (const id of message.ids) this.#answer(id, message.failure);
        return;
      case 'rows': {
        const { text } = message;
        this.#reads.get(message.frame)?.resolve(text && textOf(text));
        this.#reads.delete(message.frame);
        return;
      }
      case 'freed':
        this.#bytes = message.bytes;
        this.#unstick();
        return;
      case 'closed':
        this.#closed?.();
    }
  }

  /** The rows of a body are written: it is answered when they are in the database, or synced and not to be waited for. */
  #written(taken: Taken): void {
    const waiting = this.#waiting.get(taken.id);
    if (!waiting) return;
    if (taken.frames.length === 0) {
      this.#answer(taken.id, { kind: 'taken', ...taken });
      return;
    }
    waiting.taken = taken;
    waiting.left = taken.frames.length;
    for (const frame of taken.frames) {
      const others = this.#byFrame.get(frame);
      if (others) others.push(taken.id);
      else this.#byFrame.set(frame, [taken.id]);
    }
  }

  #synced(id: number): void {
    const waiting = this.#waiting.get(id);
    if (!waiting?.taken) return;
    const outcome: Outcome = { kind: 'taken', ...waiting.taken };
    waiting.synced = true;
    if (this.#drain.reason !== undefined) this.#answer(id, outcome);
    else waiting.cancel = this.#parts.clock.after(ANSWER_WAIT_MS, () => this.#answer(id, outcome));
  }

  /** Keeps rows that will be inserted soon; of the others the spool has a copy. */
  #hold(frames: readonly Frame[], texts: readonly Uint8Array[]): void {
    for (const [at, { id }] of frames.entries()) {
      const text = texts[at];
      if (!text || this.#heldBytes + text.length > MOST_HELD) continue;
      this.#held.set(id, text);
      this.#heldBytes += text.length;
    }
  }

  #done(frame: Frame, inserted: boolean): void {
    this.#post({ type: 'done', frame: frame.id });
    (inserted ? this.#parts.inserted : this.#parts.lost)(frame);
    for (const id of this.#byFrame.get(frame.id) ?? []) {
      const waiting = this.#waiting.get(id);
      if (!waiting?.taken) continue;
      waiting.left -= 1;
      if (waiting.left === 0) this.#answer(id, { kind: 'taken', ...waiting.taken });
    }
    this.#byFrame.delete(frame.id);
    this.#letGo(frame.id);
    if (this.#drain.waiting.length === 0) this.#unstick();
  }

  /** Nothing gets into the database: who waits for that has waited enough. */
  #answerDurable(): void {
    for (const [id, { taken, synced }] of this.#waiting) {
      if (taken && synced) this.#answer(id, { kind: 'taken', ...taken });
    }
  }

  #answer(id: number, outcome: Outcome): void {
    const waiting = this.#waiting.get(id);
    if (!waiting) return;
    this.#waiting.delete(id);
    waiting.cancel?.();
    waiting.answer(outcome);
  }

  #read(frame: Frame): Promise<string | undefined> {
    const held = this.#held.get(frame.id);
    if (held) return Promise.resolve(textOf(held));
    const read = Promise.withResolvers<string | undefined>();
    if (!this.#thread) return Promise.reject(new Error('there is no spool'));
    this.#reads.set(frame.id, read);
    this.#post({ type: 'read', frame: frame.id });
    return read.promise;
  }

  #letGo(frame: string): void {
    this.#heldBytes -= this.#held.get(frame)?.length ?? 0;
    this.#held.delete(frame);
  }

  #post(message: ToThread, transfer: ArrayBuffer[] = []): void {
    this.#thread?.postMessage(message, transfer);
  }

  #stick(reason: string): void {
    if (this.#stuck === undefined) this.#parts.spoolChanged(reason);
    this.#stuck = reason;
  }

  #unstick(): void {
    if (this.#stuck === undefined || this.#bytes > this.#parts.spoolLimit * FREE_ENOUGH) return;
    this.#stuck = undefined;
    this.#parts.spoolChanged(undefined);
  }

  /** The body whose decoding ended the thread would end the next one, too. */
  #ended(reason: string): void {
    if (!this.#thread) return;
    this.#thread = undefined;
    const culprit = Atomics.exchange(new Int32Array(this.#decoding), 0, 0);
    this.#answer(culprit, { kind: 'invalid', reason: 'decoding it needs more memory than is set aside' });
    this.#answerDurable();
    this.#failAll({ kind: 'lost', reason: 'the thread that decodes ended' });
    this.#parts.threadEnded(reason);
    if (!this.#isOpen) this.#stick(`the spool cannot be opened: ${reason}`);
    this.#isOpen = false;
    if (this.#closed) this.#closed();
    else this.#restart = this.#parts.clock.after(RESTART_MS, () => this.#open());
  }

  #failAll(failure: Failure): void {
    for (const id of [...this.#waiting.keys()]) this.#answer(id, failure);
    for (const { reject } of this.#reads.values()) reject(new Error(failure.kind));
    this.#reads.clear();
  }
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString();
}

/** A buffer that is part of a pool cannot be handed over. */
function ownBuffer(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const whole = bytes.byteOffset === 0 && bytes.byteLength === bytes.buffer.byteLength;
  return whole && bytes.buffer instanceof ArrayBuffer
    ? (bytes as Uint8Array<ArrayBuffer>)
    : new Uint8Array(bytes);
}
