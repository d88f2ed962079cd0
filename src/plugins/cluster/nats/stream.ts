import type { StoredMsg, StreamInfo } from '@nats-io/jetstream';
import type { Logger } from '../../../core/host/logging/logger.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import { ClusterError } from '../errors.ts';
import { Follower, type FollowOptions } from './follow.ts';
import type { LinkHandler, NatsLink } from './link.ts';
import { ReadWindow } from './read-window.ts';
import { EXPECTED_LAST, type Headers, MESSAGE_ID, Seal } from './seal.ts';
import {
  appendError,
  isMissingMessage,
  isMissingStream,
  makeError,
  readError,
  StreamGap,
  StreamGone,
  StreamRewound,
  StreamUnavailable,
} from './stream-errors.ts';
import { type Looked, openStored, type StreamEnds, type StreamMessage } from './stream-message.ts';
import { configOf, differencesOf, type StreamSettings } from './stream-settings.ts';

export type { StreamEnds, StreamMessage };

export interface StreamDependencies {
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface AppendOptions {
  /** The first subject of the stream unless set. */
  readonly subject?: string;
  /** By it the server knows a repetition, for as long as the duplicate window. */
  readonly id?: string;
  /** The stream must end with this message, else nothing is stored. */
  readonly expectedLast?: number;
  /** Names begin with `Hf-`. */
  readonly headers?: Headers;
  /** Until it is given up as unknown; 5,000 unless set. Milliseconds. */
  readonly timeoutMs?: number;
}

const APPEND_TIMEOUT_MS = 5_000;
/** Appends that may wait for their acknowledgement. */
const MOST_IN_FLIGHT = 8_192;
/** So many forged messages may stand before the first one of a subject. */
const MOST_BEFORE = 4;

/**
 * A stream of JetStream as one line of messages (docs/cluster.md, "The log on a stream"): appended at its end and nowhere else, read without gaps, by its
 * leader alone. Messages have a code by the key of the cluster, over this stream and, with `expectedLast`, their place in it.
 */
export class LinearStream {
  readonly name: string;
  readonly subjects: readonly string[];
  /** When it was made, as the server says: another stream of the same name has another one. */
  readonly incarnation: string;
  /** Copies on different servers. */
  readonly replicas: number;
  readonly #link: NatsLink;
  readonly #dependencies: StreamDependencies;
  readonly #seal: Seal;
  #seen = 0;
  #rewoundSince: number | undefined;
  #inFlight = 0;

  private constructor(link: NatsLink, info: StreamInfo, dependencies: StreamDependencies) {
    this.#link = link;
    this.name = info.config.name;
    this.subjects = info.config.subjects;
    this.incarnation = info.created;
    this.replicas = info.config.num_replicas;
    this.#dependencies = dependencies;
    this.#seal = new Seal(link.key, `${this.name} ${this.incarnation}`);
    this.#seen = info.state.last_seq;
  }

  /**
   * Opens a stream and makes it where there is none.
   *
   * @throws HF_CLUSTER_STREAM_DIFFERS there is one with other settings, or one of another name has its subjects
   * @throws HF_CLUSTER_UNREACHABLE, HF_CLUSTER_STREAM_UNAVAILABLE, HF_CLUSTER_STREAM_REFUSED, HF_CLUSTER_STREAM_FULL
   */
  static async open(
    link: NatsLink,
    settings: StreamSettings,
    dependencies: StreamDependencies,
  ): Promise<LinearStream> {
    const there = await infoOf(link, settings.name);
    const info = there ?? (await make(link, settings));
    const differences = differencesOf(settings, info.config, link.isClustered);
    if (differences.length > 0)
      throw new ClusterError('HF_CLUSTER_STREAM_DIFFERS', {
        stream: settings.name,
        differences: differences.join(', '),
      });
    return new LinearStream(link, info, dependencies);
  }

  /**
   * Opens a stream that is there, e.g. that of another host.
   *
   * @returns undefined when there is none
   * @throws HF_CLUSTER_UNREACHABLE, HF_CLUSTER_STREAM_UNAVAILABLE, HF_CLUSTER_STREAM_REFUSED
   */
  static async existing(
    link: NatsLink,
    name: string,
    dependencies: StreamDependencies,
  ): Promise<LinearStream | undefined> {
    const info = await infoOf(link, name);
    return info && new LinearStream(link, info, dependencies);
  }

  /** @returns the names of the streams that keep a subject, e.g. `hf.home.log.>` */
  static async names(link: NatsLink, subject: string): Promise<readonly string[]> {
    try {
      return await link.asked(async ({ streams }) => {
        const names: string[] = [];
        for await (const name of streams.names(subject)) names.push(name);
        return names.sort();
      });
    } catch (error) {
      throw readError(error, subject);
    }
  }

  /** The newest message that this process has seen on it. */
  get seen(): number {
    return this.#seen;
  }

  /**
   * Appends a message. Several may be under way: the server takes them in the order of the calls. At the first error, stop, wait for all
   * that are under way, and read the end of the stream.
   *
   * An acknowledgement is a hint: whoever may use the account can answer in the server's place. Only what is read proves it.
   *
   * @returns its number; `duplicate` when a message of the same id stood there already, under that number
   * @throws StreamConflict, StreamFull, StreamUnavailable, HF_CLUSTER_BUSY, HF_CLUSTER_SIZE, HF_CLUSTER_UNREACHABLE: nothing was stored
   * @throws StreamUnknown it may be stored, now or later
   * @throws StreamGone the stream is not there any more
   */
  async append(
    body: Uint8Array | string,
    options: AppendOptions = {},
  ): Promise<{ seq: number; duplicate: boolean }> {
    const { subject = this.subjects[0] ?? '', id, expectedLast, timeoutMs = APPEND_TIMEOUT_MS } = options;
    const content = typeof body === 'string' ? Buffer.from(body) : body;
    this.#link.fits(content.length);
    if (this.#inFlight >= MOST_IN_FLIGHT)
      throw new ClusterError('HF_CLUSTER_BUSY', { stream: this.name, most: MOST_IN_FLIGHT });
    const sealed = this.#seal.add({
      subject,
      body: content,
      headers: {
        ...options.headers,
        ...(id !== undefined && { [MESSAGE_ID]: id }),
        ...(expectedLast !== undefined && { [EXPECTED_LAST]: String(expectedLast) }),
      },
    });
    this.#inFlight += 1;
    try {
      const headers = this.#link.headers(sealed);
      const expect = { streamName: this.name };
      const ack = await this.#link
        .jetstream()
        .publish(subject, content, { headers, expect, timeout: timeoutMs });
      return { seq: ack.seq, duplicate: ack.duplicate };
    } catch (error) {
      throw appendError(error, this.name, expectedLast);
    } finally {
      this.#inFlight -= 1;
    }
  }

  /**
   * Asks the leader where the stream ends. A leader that is cut off from the others does not know the newest: only an append proves it.
   *
   * @throws StreamGone it was deleted, or made anew
   * @throws StreamRewound it ends before a message that was seen
   * @throws StreamUnavailable, HF_CLUSTER_UNREACHABLE
   */
  async last(): Promise<StreamEnds> {
    const info = await infoOf(this.#link, this.name);
    if (!info) throw new StreamGone(this.name, 'there is none of this name');
    if (info.created !== this.incarnation)
      throw new StreamGone(this.name, `it was made anew at ${info.created}`);
    const { last_seq: seq, first_seq: firstSeq, bytes } = info.state;
    this.#noteEnd(seq);
    return { seq, firstSeq: Math.max(firstSeq, 1), bytes, maxBytes: info.config.max_bytes };
  }

  /**
   * @returns a message; undefined when it is not there, or forged
   * @throws StreamUnavailable, StreamGone, HF_CLUSTER_UNREACHABLE
   */
  async get(seq: number): Promise<StreamMessage | undefined> {
    const stored = await this.#stored({ seq });
    return stored && this.#opened(stored).message;
  }

  /** @returns the newest message of a subject as it is stored, or forged; undefined when there is none. @throws see `get` */
  async lastOf(subject: string): Promise<Looked | undefined> {
    const stored = await this.#stored({ last_by_subj: subject });
    return stored && this.#opened(stored);
  }

  /**
   * @returns the first message of a subject that somebody with the key of the cluster wrote there, among its first few
   * @throws see `get`
   */
  async firstOf(subject: string): Promise<StreamMessage | undefined> {
    for (let looks = 0, from = 1; looks < MOST_BEFORE; looks += 1) {
      const stored = await this.#stored({ seq: from, next_by_subj: subject });
      const message = stored && this.#opened(stored).message;
      if (!stored || message) return message;
      from = stored.seq + 1;
    }
    return undefined;
  }

  /**
   * Reads messages in order. Each number is asked for by itself, so that none can be left out.
   *
   * @param from its number, from 1
   * @param to the last one; the end of the stream as it is now unless set
   * @throws StreamGap one is missing: `seq`; when that is less than `firstSeq`, it made room for newer ones
   * @throws StreamUnavailable, StreamGone, StreamRewound, HF_CLUSTER_UNREACHABLE
   */
  async *read(from: number, to?: number): AsyncGenerator<StreamMessage, void, undefined> {
    const end = to ?? (await this.last()).seq;
    const under: Promise<StoredMsg | undefined>[] = [];
    const window = new ReadWindow(this.#dependencies.clock);
    let next = from;
    try {
      for (let seq = from; seq <= end; seq += 1) {
        for (; next <= end && under.length < window.size; next += 1) {
          const asked = window.asked(this.#stored({ seq: next }));
          asked.catch(() => {}); // it is awaited in its turn, or never when an earlier one fails
          under.push(asked);
        }
        const stored = (await under.shift()) ?? (await this.#again(seq));
        const { message, bytes } = this.#opened(stored);
        window.came(bytes);
        if (message) yield message;
      }
    } finally {
      await Promise.allSettled(under);
    }
  }

  /**
   * Hands on each message from a number on, one after the other, and those to come. A plain subscription says when to look, and every two
   * seconds it looks anyway. It waits while there is no connection, and skips nothing.
   *
   * @param handler the next message waits for it; what throws is logged and handed on again
   * @returns ends it
   */
  follow(
    from: number,
    handler: (message: StreamMessage) => void | Promise<void>,
    options: FollowOptions = {},
  ): Follower {
    return new Follower(this, this.#link, this.#dependencies, { from, handler, ...options });
  }

  /**
   * Hears what is sent to its subjects at once, maybe before it is stored, maybe without ever being stored: hints.
   *
   * @returns ends it
   */
  hear(handler: LinkHandler, subjects = this.subjects): () => void {
    const ends = subjects.map((subject) => this.#link.subscribe(subject, handler, this.#seal));
    return () => {
      for (const end of ends) end();
    };
  }

  /** Removes the messages before a number. The stream must be `isTrimmed`. @throws StreamUnavailable, HF_CLUSTER_STREAM_REFUSED */
  async removeBefore(seq: number): Promise<void> {
    try {
      await (await this.#link.manager()).streams.purge(this.name, { seq });
    } catch (error) {
      throw readError(error, this.name);
    }
  }

  /**
   * A message as it is stored, or forged, for `follow`.
   *
   * @returns undefined when it is not there (yet)
   */
  async look(seq: number): Promise<Looked | undefined> {
    const stored = await this.#stored({ seq });
    return stored && this.#opened(stored);
  }

  async #stored(query: StoredQuery): Promise<StoredMsg | undefined> {
    try {
      const stored = await this.#link.asked(({ streams }) => streams.getMessage(this.name, query));
      const isOne = 'seq' in query && !('next_by_subj' in query);
      if (stored && isOne && stored.seq !== query.seq)
        throw new StreamUnavailable(this.name, `message ${stored.seq} came instead of ${query.seq}`);
      if (stored && stored.seq > this.#seen) this.#seen = stored.seq;
      return stored ?? undefined;
    } catch (error) {
      if (isMissingMessage(error)) return undefined;
      throw readError(error, this.name);
    }
  }

  /** A leader that was just elected may not have all yet. @throws StreamGap, StreamRewound */
  async #again(seq: number): Promise<StoredMsg> {
    const { seq: lastSeq, firstSeq } = await this.last();
    if (seq > lastSeq)
      throw new StreamRewound(this.name, lastSeq, Math.max(seq, this.#seen), this.#rewoundForMs());
    const stored = await this.#stored({ seq });
    if (!stored) throw new StreamGap(this.name, seq, firstSeq, lastSeq);
    return stored;
  }

  #noteEnd(seq: number): void {
    if (seq >= this.#seen) {
      this.#seen = seq;
      this.#rewoundSince = undefined;
      return;
    }
    this.#rewoundSince ??= this.#dependencies.clock.monotonic();
    throw new StreamRewound(this.name, seq, this.#seen, this.#rewoundForMs());
  }

  #rewoundForMs(): number {
    const now = this.#dependencies.clock.monotonic();
    return now - (this.#rewoundSince ?? now);
  }

  #opened(stored: StoredMsg): Looked {
    const looked = openStored(stored, this.#seal);
    if (looked.message) return looked;
    const { seq, subject } = stored;
    this.#link.countForged(subject, `${this.name} ${this.incarnation} ${seq}`);
    return looked;
  }
}

type StoredQuery = { seq: number } | { last_by_subj: string } | { seq: number; next_by_subj: string };

/** @returns undefined when there is no stream of this name */
async function infoOf(link: NatsLink, name: string): Promise<StreamInfo | undefined> {
  try {
    return await link.asked(({ streams }) => streams.info(name));
  } catch (error) {
    if (isMissingStream(error)) return undefined;
    throw readError(error, name);
  }
}

async function make(link: NatsLink, settings: StreamSettings): Promise<StreamInfo> {
  try {
    return await (await link.manager()).streams.add(configOf(settings, link.isClustered));
  } catch (error) {
    // Another host was faster, perhaps with other settings; or it was stored although no answer came.
    const there = await infoOf(link, settings.name);
    if (there) return there;
    throw makeError(error, settings.name);
  }
}
