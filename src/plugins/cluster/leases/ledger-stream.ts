import { randomBytes } from 'node:crypto';
import type { Logger } from '../../../core/host/logging/logger.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import { ClusterError } from '../errors.ts';
import type { NatsLink } from '../nats/link.ts';
import { LinearStream } from '../nats/stream.ts';
import { StreamConflict, StreamGap, StreamGone, StreamRewound } from '../nats/stream-errors.ts';
import type { LedgerLog, LedgerRead } from './leases.ts';
import { type LedgerEntry, newIncarnation } from './ledger.ts';

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

  constructor(options: LedgerStreamOptions) {
    this.#options = options;
    this.#name = `HF_${options.name}_LEDGER`;
    this.#prefix = `hf.${options.name}.ledger.`;
    this.#timeoutMs = Math.min(TIMEOUT_MS.most, Math.max(TIMEOUT_MS.least, options.ttlMs / 5));
  }

  /** Makes the stream where there is none. */
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
      return stored?.body.equals(body) ? seq : undefined;
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
      const start = Math.max(from, first);
      for await (const { seq, body } of stream.read(start, last)) {
        while (start + entries.length < seq) entries.push({ seq: start + entries.length }); // forged
        entries.push({ seq, body });
        if (clock.monotonic() > end)
          return { incarnation: this.#incarnationOf(stream), first, last, entries };
      }
      while (start + entries.length <= last) entries.push({ seq: start + entries.length });
      return { incarnation: this.#incarnationOf(stream), first, last, entries };
    } catch (error) {
      const isAnother = [StreamGone, StreamRewound, StreamGap].some((fault) => error instanceof fault);
      if (isAnother && this.#stream === stream) this.#stream = undefined;
      throw error;
    }
  }

  async #open(): Promise<LinearStream> {
    const { link, clock, logger, replicas } = this.#options;
    const there = await LinearStream.existing(link, this.#name, { clock, logger });
    const incarnation = newIncarnation(clock.now(), randomBytes(6).toString('hex'));
    const subjects = there?.subjects ?? [`${this.#prefix}${incarnation}`];
    const limits = { maxBytes: MAX_BYTES, maxMessages: MOST_MESSAGES, discard: 'old', replicas } as const;
    return LinearStream.open(link, { name: this.#name, subjects, ...limits }, { clock, logger });
  }

  #incarnationOf({ subjects }: LinearStream): string {
    return subjects[0]?.slice(this.#prefix.length) ?? '';
  }

  /** A leader that has just died answers nobody, and the next beat must not wait for it. What comes later is dropped. */
  #inTime<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const ms = this.#timeoutMs;
      const cancel = this.#options.clock.after(ms, () =>
        reject(new ClusterError('HF_CLUSTER_TIMEOUT', { what: this.#name, ms })),
      );
      void work.then(resolve, reject).finally(cancel);
    });
  }
}
