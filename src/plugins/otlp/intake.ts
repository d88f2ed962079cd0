import type { ColumnarDatabase } from '../../core/contracts/columnar-database.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import type { Encoding, Signal } from './decode/decode.ts';
import { writerOf } from './decode/row-writer.ts';
import { Drain } from './drain.ts';
import type { SpoolLoad } from './intake-actor.ts';
import { type Outcome, PendingAnswers } from './pending-answers.ts';
import type { Frame, FromThread } from './spool/protocol.ts';
import { Spool } from './spool/spool.ts';

/** The spool counts as writable again when it is filled to at most this share of its limit. */
const WRITABLE_SHARE = 0.9;

export interface Body {
  readonly signal: Signal;
  readonly encoding: Encoding;
  readonly gzip: boolean;
  /** Transferred to the thread, so it must not be used afterwards. */
  readonly bytes: Uint8Array;
}

export interface IntakeOptions {
  readonly clock: Clock;
  readonly dataDir: string;
  /** Largest body after inflating, bytes. */
  readonly bodyLimit: number;
  /** Largest sum of the spool's files, bytes. */
  readonly spoolLimit: number;
  /** How long rows wait for others before they are written, ms. */
  readonly lingerMs: number;
  readonly database: () => ColumnarDatabase | undefined;
  /** @param reason why the database takes nothing; undefined when it does */
  readonly onDatabase: (place: string, reason: string | undefined) => void;
  /** @param reason why nothing can be written to disk; undefined when something can */
  readonly onSpool: (reason: string | undefined) => void;
  /** A frame has left the spool. */
  readonly onLeft: (frame: Frame, result: 'inserted' | 'lost') => void;
  /** @param frames how many frames of an earlier run are damaged */
  readonly onDamaged: (frames: number) => void;
  readonly onThreadEnded: (reason: string) => void;
}

/**
 * The path of a body: to the thread that decodes it and writes its rows to disk, then into the database. It is answered when
 * its rows are in the database, or, while inserts fail, when they are synced to disk.
 */
export class Intake {
  readonly #options: IntakeOptions;
  readonly #spool: Spool;
  readonly #drain: Drain;
  readonly #answers: PendingAnswers;
  #spoolBytes = 0;
  #blocked: string | undefined;
  #damaged = 0;

  constructor(options: IntakeOptions) {
    this.#options = options;
    this.#answers = new PendingAnswers(options.clock, () => this.#drain.unavailable !== undefined);
    this.#spool = new Spool({
      ...options,
      onMessage: (message) => this.#handle(message),
      onEnd: (reason, body, wasOpen) => this.#threadEnded(reason, body, wasOpen),
    });
    this.#drain = new Drain({
      clock: options.clock,
      database: options.database,
      read: (frame, schema) => this.#spool.read(frame, schema, writerOf(schema).layout),
      countInsert: (change) => this.#spool.countInsert(change),
      onDone: (frame, result) => this.#frameDone(frame, result),
      onDatabase: (place, reason) => {
        options.onDatabase(place, reason);
        if (reason !== undefined) this.#answers.answerSynced();
      },
    });
  }

  /** Begins to insert what an earlier run left. @throws HF_OTLP_SPOOL its folder cannot be used */
  start(): void {
    this.#spool.start();
  }

  get spool(): SpoolLoad {
    const frames = this.#drain.frames;
    return {
      bytes: frames.length === 0 ? 0 : this.#spoolBytes,
      rows: frames.reduce((sum, { rows }) => sum + rows, 0),
      oldest: frames.length === 0 ? undefined : Math.min(...frames.map(({ at }) => at)),
    };
  }

  /** Frames that were found damaged since the start. */
  get damaged(): number {
    return this.#damaged;
  }

  /** Resolves when the rows of the body are kept, or the body is refused. */
  take({ bytes, ...body }: Body): Promise<Outcome> {
    const { id, outcome } = this.#answers.add();
    const own = transferable(bytes);
    const now = this.#options.clock.now();
    if (!this.#spool.post({ type: 'take', id, ...body, body: own, now }, [own.buffer]))
      this.#answers.answer(id, { kind: 'interrupted', reason: 'the thread that decodes is being restarted' });
    return outcome;
  }

  /** Ends after the inserts that are under way; rows that are not in the database by then stay on disk. */
  async stop(): Promise<void> {
    await this.#drain.stop();
    await this.#spool.close();
    this.#answers.answerAll({ kind: 'interrupted', reason: 'the receiver stops' });
  }

  #handle(message: FromThread): void {
    switch (message.type) {
      case 'opened':
        this.#spoolBytes = message.bytes;
        this.#damaged = Math.max(this.#damaged, message.damaged);
        if (message.damaged > 0) this.#options.onDamaged(message.damaged);
        this.#drain.forgetWaiting();
        this.#unblock();
        this.#drain.add(message.frames);
        return;
      case 'written':
        this.#spoolBytes = message.bytes;
        this.#unblock();
        for (const taken of message.taken) this.#answers.written(taken);
        this.#drain.add(message.frames);
        return;
      case 'synced':
        for (const id of message.ids) this.#answers.synced(id);
        return;
      case 'failed':
        if (message.failure.kind === 'full') this.#block('the spool is full');
        if (message.failure.kind === 'disk') this.#block(`the disk refuses: ${message.failure.reason}`);
        for (const id of message.ids) this.#answers.answer(id, message.failure);
        return;
      case 'freed':
        this.#spoolBytes = message.bytes;
        this.#unblock();
        return;
      case 'rows':
      case 'closed':
    }
  }

  #frameDone(frame: Frame, result: 'inserted' | 'lost'): void {
    this.#spool.done(frame.id);
    this.#options.onLeft(frame, result);
    this.#answers.frameDone(frame.id);
    if (this.#drain.frames.length === 0) this.#unblock();
  }

  #block(reason: string): void {
    if (this.#blocked === undefined) this.#options.onSpool(reason);
    this.#blocked = reason;
  }

  #unblock(): void {
    if (this.#blocked === undefined || this.#spoolBytes > this.#options.spoolLimit * WRITABLE_SHARE) return;
    this.#blocked = undefined;
    this.#options.onSpool(undefined);
  }

  /** @param body that was being decoded; it would end the next thread too, so it is refused as invalid */
  #threadEnded(reason: string, body: number, wasOpen: boolean): void {
    this.#answers.answer(body, {
      kind: 'invalid',
      reason: 'decoding it needs more memory than the thread has',
    });
    this.#answers.answerSynced();
    this.#answers.answerAll({ kind: 'interrupted', reason: 'the thread that decodes ended' });
    this.#options.onThreadEnded(reason);
    if (!wasOpen) this.#block(`the spool cannot be opened: ${reason}`);
  }
}

/** A buffer that is part of a pool cannot be handed to another thread; such bytes are copied. */
function transferable(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const { buffer, byteOffset, byteLength } = bytes;
  return buffer instanceof ArrayBuffer && byteOffset === 0 && byteLength === buffer.byteLength
    ? new Uint8Array(buffer)
    : new Uint8Array(bytes);
}
