import { randomBytes } from 'node:crypto';
import type { Logger } from '../../../core/host/logging/logger.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { ClusterError } from '../errors.ts';
import { inTime } from '../nats/in-time.ts';
import type { NatsLink } from '../nats/link.ts';
import { LinearStream } from '../nats/stream.ts';
import { StreamConflict, StreamGap, StreamGone, StreamRewound } from '../nats/stream-errors.ts';
import { type LedgerEntry, madeAt, newIncarnation } from './ledger.ts';
import type { LedgerLog, LedgerRead } from './ledger-reader.ts';
import { MOST_BETWEEN } from './message.ts';

export interface LedgerStreamOptions {
  readonly link: NatsLink;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Of the cluster, e.g. `home`. */
  readonly name: string;
  readonly replicas?: number | undefined;
  readonly ttlMs: number;
}

/** Minutes of a hundred hosts: old claims may go, because each claim is repeated as long as it holds. */
const MOST_MESSAGES = 4_000;
const MAX_BYTES = 32 * 1024 * 1024;
/** A hint comes before its message is stored on most servers: a second look, milliseconds later. */
const SECOND_LOOK_MS = 30;
/** As `newIncarnation` makes them until the year 2286: tokens count on from there, and must have room. */
const INCARNATION = /^\d{13}-[0-9a-z]+$/;
/** The wall clock of whoever made the ledger may be so far ahead. Tokens of a later one would outrank those of every ledger after it. */
const MOST_AHEAD_MS = 24 * 3_600_000;
const TIMEOUT_MS = { least: 400, most: 2_000 };

/** What became of a message. */
interface Attempt {
  /** The end of the stream then, as the server says. */
  readonly last: number;
  /** Where the message stands, if it does. */
  readonly stored: number | undefined;
}

/**
 * The ledger as a stream of JetStream. Its subject ends with the incarnation, so that what a host sends to the stream as it knew
 * it is not taken by one that was made anew under the same name, even where its number would fit.
 */
export class LedgerStream implements LedgerLog {
  readonly #options: LedgerStreamOptions;
  readonly #name: string;
  readonly #prefix: string;
  readonly #timeoutMs: number;
  #stream: LinearStream | undefined;
  /** No message up to this one has the code of this cluster's key; undefined when one was read that has. */
  #foreignTo: number | undefined = 0;
  /** Whether strangers have written any of what was read last. */
  #hasStrangers = false;
  /** How many messages came between the last reading and the attempt to append that followed. */
  #between = 0;

  constructor(options: LedgerStreamOptions) {
    this.#options = options;
    this.#name = `HF_${options.name}_LEDGER`;
    this.#prefix = `hf.${options.name}.ledger.`;
    this.#timeoutMs = Math.min(TIMEOUT_MS.most, Math.max(TIMEOUT_MS.least, options.ttlMs / 5));
  }

  /**
   * Reads from an entry on, and makes the stream first where there is none.
   *
   * @throws HF_CLUSTER_LEDGER it has other settings, or holds messages and none of this cluster
   */
  read(from: number): Promise<LedgerRead> {
    return this.#inTime(this.#read(from));
  }

  async append(body: Buffer, after: number, incarnation: string): Promise<number | undefined> {
    const stream = this.#stream;
    if (!stream || this.#incarnationOf(stream) !== incarnation)
      throw new StreamGone(this.#name, 'it was replaced');
    const attempts = this.#places(after).map((place) => this.#attempt(stream, body, place));
    const outcomes = await Promise.allSettled(attempts);
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected' || outcome.value.stored === undefined) continue;
      this.#foreignTo = undefined;
      this.#between = outcome.value.stored - after - 1;
      return outcome.value.stored;
    }
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') throw outcome.reason;
      this.#between = Math.min(Math.max(0, outcome.value.last - after), MOST_BETWEEN);
    }
    return undefined;
  }

  /**
   * A stranger who writes all the time is ahead of whoever reads first and then appends: about as many of his messages come
   * between as the last time.
   *
   * @returns behind which entries to try, the last one first, so that only one can be right
   */
  #places(after: number): number[] {
    if (!this.#hasStrangers) return [after];
    const least = Math.floor(this.#between / 2);
    const most = Math.min(2 * this.#between + 2, MOST_BETWEEN);
    return Array.from({ length: Math.max(0, most - least) + 1 }, (_, index) => after + most - index);
  }

  /** Appends behind an entry and nowhere else. @returns where it stands, or what the stream ended with */
  async #attempt(stream: LinearStream, body: Buffer, behind: number): Promise<Attempt> {
    try {
      const { seq } = await stream.append(body, { expectedLast: behind, timeoutMs: this.#timeoutMs });
      // Who hears the message can send an acknowledgement, too: what stands in the ledger decides.
      const stored = await this.#inTime(stream.get(seq));
      return { last: seq, stored: stored?.body.equals(body) ? seq : undefined };
    } catch (error) {
      if (error instanceof StreamConflict) return { last: error.lastSeq, stored: undefined };
      throw error;
    }
  }

  onHint(listener: () => void): () => void {
    const { link, clock } = this.#options;
    let cancel = () => {};
    const look = () => {
      listener();
      cancel();
      cancel = clock.after(SECOND_LOOK_MS, listener);
    };
    const ends = [link.listen(`${this.#prefix}*`, look), link.onChange((isUp) => isUp && listener())];
    return () => {
      cancel();
      for (const end of ends) end();
    };
  }

  async #read(from: number): Promise<LedgerRead> {
    const { clock } = this.#options;
    this.#stream ??= await this.#open();
    const end = clock.monotonic() + this.#timeoutMs / 2;
    const stream = this.#stream;
    try {
      const { seq: last, firstSeq: first } = await stream.last();
      const entries: LedgerEntry[] = [];
      const answer = () => {
        this.#recognise(entries, last);
        if (entries.length > 0) this.#hasStrangers = entries.some(({ body }) => !body);
        return { incarnation: this.#incarnationOf(stream), first, last, entries };
      };
      const start = Math.max(from, first);
      for await (const { seq, body } of stream.read(start, last)) {
        while (start + entries.length < seq) entries.push({ seq: start + entries.length }); // forged
        entries.push({ seq, body });
        if (clock.monotonic() > end) return answer();
      }
      while (start + entries.length <= last) entries.push({ seq: start + entries.length });
      return answer();
    } catch (error) {
      const isAnother = [StreamGone, StreamRewound, StreamGap].some((fault) => error instanceof fault);
      if (isAnother && this.#stream === stream) this.#stream = undefined;
      throw error;
    }
  }

  /** @throws HF_CLUSTER_LEDGER whoever has another key, or another cluster of this name, is at work there */
  #recognise(entries: readonly LedgerEntry[], last: number): void {
    if (this.#foreignTo === undefined) return;
    if (entries.some(({ body }) => body)) {
      this.#foreignTo = undefined;
      return;
    }
    const [first, newest] = [entries[0], entries.at(-1)];
    const isNext = first !== undefined && (this.#foreignTo === 0 || first.seq <= this.#foreignTo + 1);
    if (isNext && newest) this.#foreignTo = Math.max(this.#foreignTo, newest.seq);
    if (last === 0 || this.#foreignTo < last) return;
    throw this.#foreign('none of its messages has the code of this cluster’s key');
  }

  async #open(): Promise<LinearStream> {
    const { link, clock, logger, replicas } = this.#options;
    this.#foreignTo = 0;
    const incarnation = newIncarnation(clock.now(), randomBytes(6).toString('hex'));
    const limits = {
      maxBytes: MAX_BYTES,
      maxMessages: MOST_MESSAGES,
      discard: 'old',
      replicas,
      needsCopies: true,
    } as const;
    for (;;) {
      const there = await LinearStream.existing(link, this.#name, { clock, logger });
      const subjects = there?.subjects ?? [`${this.#prefix}${incarnation}`];
      if (there && !(subjects.length === 1 && INCARNATION.test(this.#incarnationOf(there))))
        throw this.#foreign(`it keeps ${subjects.join(', ')}`);
      if (there && madeAt(this.#incarnationOf(there)) > clock.now() + MOST_AHEAD_MS)
        throw this.#foreign(
          'by its name it was made in the future: a clock is wrong, here or where it was made',
        );
      try {
        return await LinearStream.open(link, { name: this.#name, subjects, ...limits }, { clock, logger });
      } catch (error) {
        if (!isCoded(error, 'HF_CLUSTER_STREAM_DIFFERS')) throw error;
        if (there) throw this.#foreign(`its settings differ: ${error.details.differences}`);
        // Another host has just made it, as an incarnation of its own.
      }
    }
  }

  #foreign(reason: string): Error {
    return new ClusterError('HF_CLUSTER_LEDGER', { stream: this.#name, reason });
  }

  #incarnationOf({ subjects }: LinearStream): string {
    const [subject = ''] = subjects;
    return subject.startsWith(this.#prefix) ? subject.slice(this.#prefix.length) : '';
  }

  /** The next beat must not wait for it. */
  #inTime<T>(work: Promise<T>): Promise<T> {
    return inTime(work, this.#name, this.#timeoutMs, this.#options.clock);
  }
}
