import { randomBytes } from 'node:crypto';
import type { Logger } from '../../../core/host/logging/logger.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { ClusterError } from '../errors.ts';
import { inTime } from '../nats/in-time.ts';
import type { NatsLink } from '../nats/link.ts';
import { LinearStream } from '../nats/stream.ts';
import { StreamConflict, StreamGap, StreamGone, StreamRewound } from '../nats/stream-errors.ts';
import { type LedgerEntry, newIncarnation } from './ledger.ts';
import type { LedgerLog, LedgerRead } from './ledger-reader.ts';

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
const TIMEOUT_MS = { least: 400, most: 2_000 };

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

  constructor(options: LedgerStreamOptions) {
    this.#options = options;
    this.#name = `HF_${options.name}_LEDGER`;
    this.#prefix = `hf.${options.name}.ledger.`;
    this.#timeoutMs = Math.min(TIMEOUT_MS.most, Math.max(TIMEOUT_MS.least, options.ttlMs / 5));
  }

  /**
   * Makes the stream where there is none.
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
    try {
      const { seq } = await stream.append(body, { expectedLast: after, timeoutMs: this.#timeoutMs });
      // Who hears the message can send an acknowledgement, too: what stands in the ledger decides.
      const stored = await this.#inTime(stream.get(seq));
      if (!stored?.body.equals(body)) return undefined;
      this.#foreignTo = undefined;
      return seq;
    } catch (error) {
      if (error instanceof StreamConflict) return undefined;
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
