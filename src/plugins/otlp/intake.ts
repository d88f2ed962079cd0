import type { ColumnarDatabase } from '../../core/contracts/columnar-database.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import type { Encoding, Signal } from './decode/decode.ts';
import { writerOf } from './decode/row-writer.ts';
import { Drain } from './drain.ts';
import { Answers, type Outcome } from './pending-answers.ts';
import type { Frame, FromThread } from './spool/protocol.ts';
import { Spool } from './spool/spool.ts';

/** The spool takes again when it has so much room, as a share of its limit. */
const FREE_ENOUGH = 0.9;

export interface Body {
  readonly signal: Signal;
  readonly encoding: Encoding;
  readonly gzip: boolean;
  /** Given away: it must not be used after. */
  readonly bytes: Uint8Array;
}

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

/**
 * The way of a body: to the thread that decodes it and writes it down, from there into the database, and then, or as
 * soon as it must not be waited for and its rows are synced, its answer.
 */
export class Intake {
  readonly #parts: IntakeParts;
  readonly #spool: Spool;
  readonly #drain: Drain;
  readonly #answers: Answers;
  #bytes = 0;
  #stuck: string | undefined;
  #damaged = 0;

  constructor(parts: IntakeParts) {
    this.#parts = parts;
    this.#answers = new Answers(parts.clock, () => this.#drain.reason !== undefined);
    this.#spool = new Spool({
      ...parts,
      hear: (message) => this.#hear(message),
      ended: (reason, body, wasOpen) => this.#ended(reason, body, wasOpen),
    });
    this.#drain = new Drain({
      clock: parts.clock,
      database: parts.database,
      read: (frame, schema) => this.#spool.read(frame, schema, writerOf(schema).layout),
      inserting: (change) => this.#spool.inserting(change),
      done: (frame, inserted) => this.#done(frame, inserted),
      changed: (place, reason) => {
        parts.databaseChanged(place, reason);
        if (reason !== undefined) this.#answers.giveDurable();
      },
    });
  }

  /** What an earlier run left begins to be inserted. @throws HF_OTLP_SPOOL its folder cannot be used */
  start(): void {
    this.#spool.start();
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
    const { id, outcome } = this.#answers.expect();
    const own = ownBuffer(bytes);
    const now = this.#parts.clock.now();
    if (!this.#spool.post({ type: 'take', id, ...body, body: own, now }, [own.buffer]))
      this.#answers.give(id, { kind: 'lost', reason: 'the thread that decodes starts anew' });
    return outcome;
  }

  /** Ends after what is under way; what is not in the database by then stays on disk. */
  async stop(): Promise<void> {
    await this.#drain.stop();
    await this.#spool.close();
    this.#answers.giveAll({ kind: 'lost', reason: 'the receiver stops' });
  }

  #hear(message: FromThread): void {
    switch (message.type) {
      case 'opened':
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
        for (const taken of message.taken) this.#answers.written(taken);
        this.#drain.add(message.frames);
        return;
      case 'synced':
        for (const id of message.ids) this.#answers.synced(id);
        return;
      case 'failed':
        if (message.failure.kind === 'full') this.#stick('the spool is full');
        if (message.failure.kind === 'disk') this.#stick(`the disk refuses: ${message.failure.reason}`);
        for (const id of message.ids) this.#answers.give(id, message.failure);
        return;
      case 'freed':
        this.#bytes = message.bytes;
        this.#unstick();
        return;
      case 'rows':
      case 'closed':
    }
  }

  #done(frame: Frame, inserted: boolean): void {
    this.#spool.done(frame.id);
    (inserted ? this.#parts.inserted : this.#parts.lost)(frame);
    this.#answers.done(frame.id);
    if (this.#drain.waiting.length === 0) this.#unstick();
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
  #ended(reason: string, body: number, wasOpen: boolean): void {
    this.#answers.give(body, { kind: 'invalid', reason: 'decoding it needs more memory than is set aside' });
    this.#answers.giveDurable();
    this.#answers.giveAll({ kind: 'lost', reason: 'the thread that decodes ended' });
    this.#parts.threadEnded(reason);
    if (!wasOpen) this.#stick(`the spool cannot be opened: ${reason}`);
  }
}

/** A buffer that is part of a pool cannot be handed over. */
function ownBuffer(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const whole = bytes.byteOffset === 0 && bytes.byteLength === bytes.buffer.byteLength;
  return whole && bytes.buffer instanceof ArrayBuffer
    ? (bytes as Uint8Array<ArrayBuffer>)
    : new Uint8Array(bytes);
}
