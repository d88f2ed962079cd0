import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { CHAIN_START } from '../../../core/kernel/log/chain-hash.ts';
import type { SqliteReader } from '../../../core/kernel/log/sqlite-reader.ts';
import { ClusterError } from '../errors.ts';
import type { LinearStream } from '../nats/stream.ts';
import { StreamFull, StreamUnavailable } from '../nats/stream-errors.ts';
import type { ChainPlace } from './batch.ts';
import { beginAt, firstKept } from './begin.ts';
import { confirm } from './confirm.ts';
import {
  incarnationsNamed,
  isBegun,
  type LogStreamNames,
  type LogStreams,
  MOST_BEFORE_BEGIN,
  namesOf,
  newestIncarnation,
  openLogStream,
} from './incarnations.ts';
import type { KeptFence, KeptFences } from './kept-fences.ts';
import { leftHeaders } from './message.ts';
import type { NewIncarnation, OutboxOptions } from './outbox-options.ts';
import type { StreamBegin } from './position.ts';
import { Room } from './room.ts';
import { type FoundFence, fencesIn, type StreamPlace, standingOf } from './standing.ts';
import { StreamWatch } from './watch.ts';
import { type OpenStream, Writer } from './writer.ts';

/** A stream that was left for the next one within this time is left later. */
const INCARNATION_MS = 5_000;
/** So many streams of others may have the names of the next incarnations. */
const MOST_TAKEN = 8;

/** Nothing is on the stream yet, as far as is known. */
const NOWHERE: StreamPlace = { streamSeq: 0, seq: 0, hash: CHAIN_START };

export interface OwnStreamOptions
  extends Pick<
    OutboxOptions,
    | 'link'
    | 'cluster'
    | 'host'
    | 'key'
    | 'clock'
    | 'logger'
    | 'limits'
    | 'largest'
    | 'position'
    | 'nameIsOurs'
  > {
  readonly reader: SqliteReader;
  readonly fences: KeptFences;
  /** Resolves when the work that a fence ends has ended. */
  readonly onFence: (fence: FoundFence) => Promise<void>;
  /** Records up to this place stand on the stream. */
  readonly onPlace: (place: StreamPlace) => void;
  /** Something that was sent stands on the stream. */
  readonly onStands: () => void;
  readonly onIncarnation: (made: NewIncarnation) => void;
  /** See `WriterOptions`. */
  readonly onChange: () => void;
  /** Waits for so long, milliseconds, or until the stop. */
  readonly wait: (ms: number) => Promise<void>;
}

/** A stream that can be written, and the last record on it. Stop its watch. */
export interface Writable {
  readonly writer: Writer;
  readonly sent: ChainPlace;
  readonly watch: StreamWatch;
  readonly room: Room;
  /** The newest states that were read on it; undefined while there are none. */
  readonly states: () => StreamPlace | undefined;
  /** The next fence that has to be placed, behind its record. @param after the newest record that was sent */
  readonly nextFence: (after: number) => KeptFence | undefined;
}

/**
 * The stream of this host: how far it has come as far as is remembered, and which incarnation it is. One that does not go on with the
 * local log is left for the next, which is filled from there.
 */
export class OwnStream {
  readonly #options: OwnStreamOptions;
  #incarnation = 0;
  #place = NOWHERE;
  #begun: StreamBegin | undefined;
  #states: StreamPlace | undefined;
  #hasRefused = false;
  #leftAt: number | undefined;

  constructor(options: OwnStreamOptions) {
    this.#options = options;
    const known = options.position.current.mirror;
    if (!known) return;
    const { incarnation, begin, ...place } = known;
    this.#place = place;
    this.#begun = begin;
    this.#incarnation = incarnation;
  }

  get incarnation(): number {
    return this.#incarnation;
  }

  /** The newest record that was read on the stream. */
  get place(): StreamPlace {
    return this.#place;
  }

  /** The newest states that were read on the stream; undefined while this process has put none there. */
  get states(): StreamPlace | undefined {
    return this.#states;
  }

  /**
   * Opens the stream where it stands, or the next one where it does not go on with the local log.
   *
   * @throws HF_CLUSTER_* it can be neither read nor begun now
   */
  async open(): Promise<Writable> {
    for (let left: string | undefined; ; ) {
      const writable = await this.#openOne(left);
      if (typeof writable === 'object') return writable;
      left = writable;
      await this.#options.nameIsOurs();
      await this.#leave(left);
    }
  }

  /** What was opened last could not be written any more. */
  failed(error: unknown): void {
    this.#hasRefused = error instanceof StreamFull;
  }

  get #streams(): LogStreams {
    const { link, cluster, clock, logger } = this.#options;
    return { link, cluster, clock, logger };
  }

  /** @returns why it has to be left for the next one, when it has to */
  async #openOne(left: string | undefined): Promise<Writable | string> {
    const { link, cluster, host, key, reader, clock, onFence } = this.#options;
    if (!link.isUp)
      throw new ClusterError('HF_CLUSTER_UNREACHABLE', { reason: link.problem ?? 'it is down' });
    const newest = await newestIncarnation(this.#streams, host);
    if (newest > this.#incarnation || this.#incarnation === 0) {
      // Of a stream that this host did not write down it remembers nothing.
      this.#enter(Math.max(newest, 1));
    }
    const incarnation = this.#incarnation;
    const known = this.#place.streamSeq > 0 ? this.#place : undefined;
    // One that is there, and said to be empty, is looked at as any other.
    if (known && newest < incarnation && !(await this.#isNamed(incarnation))) {
      await this.#proveDeleted(incarnation);
      return 'it was gone';
    }
    const names = namesOf(cluster, host, incarnation);
    const stream = await this.#stream(names, incarnation);
    if (!stream) return 'somebody else made it';
    const standing = await standingOf(stream, reader, key, known);
    const opened = { stream, names, incarnation, last: standing.last };
    switch (standing.kind) {
      case 'continues': {
        const { seq, hash } = standing.place;
        this.#note(standing.place);
        for (const fence of standing.fences) await onFence(fence);
        if (firstKept(reader) > seq + 1) return `the local log was pruned before record ${seq + 1} was sent`;
        return this.#writable(this.#writer(opened), { seq, hash }, standing.first);
      }
      case 'empty': {
        if (standing.last - standing.first >= MOST_BEFORE_BEGIN) return 'somebody else filled it';
        const writable = await this.#begin(opened, standing.first);
        const from = writable.sent.seq + 1;
        if (left !== undefined) this.#options.onIncarnation({ incarnation, reason: left, from });
        return writable;
      }
      case 'behind': {
        await this.#options.nameIsOurs();
        // Only what a quorum takes proves that records are lost: a server that is cut off knows less than the others.
        const id = `${host}.${incarnation}.left.${standing.last}`;
        const headers = leftHeaders(incarnation + 1);
        await stream.append('', { id, headers, expectedLast: standing.last });
        await confirm(stream, { seq: standing.last + 1, id }, clock);
        return `it lost what stood behind message ${standing.last}`;
      }
      case 'ahead':
        throw new ClusterError('HF_CLUSTER_OLD_FOLDER', {
          ...{ stream: names.stream, host, from: standing.from, to: standing.to },
        });
      case 'differs':
        // A folder that was filled from the stream knows none of them.
        for (const fence of await fencesIn(stream, reader)) await onFence(fence);
        return known ? standing.reason : 'another data folder wrote it, as is expected after `start --adopt`';
    }
  }

  /** @returns undefined when it has other settings, and this host has not begun it */
  async #stream(names: LogStreamNames, incarnation: number): Promise<LinearStream | undefined> {
    const { link, host, limits, clock, logger } = this.#options;
    try {
      return await openLogStream(link, names, limits, { clock, logger });
    } catch (error) {
      const isOurs =
        !isCoded(error, 'HF_CLUSTER_STREAM_DIFFERS') || (await isBegun(this.#streams, host, incarnation));
      if (isOurs) throw error;
      return undefined;
    }
  }

  /**
   * A server that is cut off from the others may not know of a stream. Only a quorum makes the next one, which is needed anyway: whoever answers behind
   * that knows of all streams that were there.
   *
   * @throws HF_CLUSTER_STREAM_UNAVAILABLE it is there
   */
  async #proveDeleted(incarnation: number): Promise<void> {
    const { cluster, host } = this.#options;
    for (let next = incarnation + 1; next <= incarnation + MOST_TAKEN; next += 1)
      if (await this.#stream(namesOf(cluster, host, next), next)) break;
    if (!(await this.#isNamed(incarnation))) return;
    const { stream } = namesOf(cluster, host, incarnation);
    throw new StreamUnavailable(stream, 'a server did not know of it');
  }

  async #isNamed(incarnation: number): Promise<boolean> {
    return (await incarnationsNamed(this.#streams, this.#options.host)).includes(incarnation);
  }

  /** Makes the next incarnation the one to be opened. */
  async #leave(reason: string): Promise<void> {
    const { clock, logger, wait } = this.#options;
    if (this.#leftAt !== undefined) await wait(this.#leftAt + INCARNATION_MS - clock.monotonic());
    this.#leftAt = clock.monotonic();
    logger.warn({ incarnation: this.#incarnation, reason }, 'cluster.mirror.left');
    this.#enter(this.#incarnation + 1);
    this.#save();
  }

  /** Nothing is known of it yet. */
  #enter(incarnation: number): void {
    this.#incarnation = incarnation;
    this.#place = NOWHERE;
    this.#begun = undefined;
    this.#states = undefined;
  }

  /** The first message: where the local log begins, and the states before that. */
  async #begin(opened: OpenStream, first: number): Promise<Writable> {
    const { reader } = this.#options;
    const from = firstKept(reader);
    // What was on an earlier stream may have had effects: this one is as good when it has come so far.
    const filledAt = Math.max(from, reader.lastSeq());
    const writer = this.#writer(opened);
    const hash = await this.#sendBegin(writer, from, { bytesBefore: 0, filledAt });
    return this.#writable(writer, { seq: from - 1, hash }, first);
  }

  /** From here on the stream can be read when what stands before is removed. */
  async #sendBegin(
    writer: Writer,
    from: number,
    { bytesBefore, filledAt }: Omit<StreamBegin, 'streamSeq'>,
  ): Promise<string> {
    const { reader, host, key, clock, largest, fences } = this.#options;
    const facts = { host, incarnation: writer.incarnation, key, now: clock.now(), largest, filledAt };
    const { messages, hash } = await beginAt(reader, from, fences.newest, facts);
    const streamSeq = writer.last + 1;
    for (const message of messages) writer.append(message);
    await writer.stands();
    this.#noteBegin({ streamSeq, bytesBefore, filledAt });
    return hash;
  }

  async #writable(writer: Writer, sent: ChainPlace, first: number): Promise<Writable> {
    const { clock, logger, onChange, reader } = this.#options;
    const watch = new StreamWatch(writer, first, { clock, logger, onLooked: onChange });
    const room = new Room({
      ...{ writer, watch, logger, hasRefused: this.#hasRefused },
      begin: () => this.#begun,
      onTrimmed: () => this.#begun && this.#noteBegin({ ...this.#begun, bytesBefore: 0 }),
      beginAgain: async ({ seq }, bytesBefore) => {
        const filledAt = Math.max(seq, this.#begun?.filledAt ?? reader.lastSeq());
        await this.#sendBegin(writer, seq + 1, { bytesBefore, filledAt });
      },
    });
    await watch.look();
    const { incarnation } = writer;
    const nextFence = (after: number) =>
      this.#options.fences.next(after, { incarnation, begin: this.#begun?.streamSeq ?? 0 });
    return { writer, sent, watch, room, nextFence, states: () => this.#states };
  }

  #writer(opened: OpenStream): Writer {
    const { host, clock, onChange } = this.#options;
    const onStands = (place: StreamPlace | undefined) => {
      this.#options.onStands();
      if (place) this.#note(place);
    };
    const onStates = (place: StreamPlace) => {
      this.#states = place;
    };
    return new Writer(opened, { host, clock, onChange, onStands, onStates });
  }

  #note(place: StreamPlace): void {
    if (place.streamSeq < this.#place.streamSeq) return;
    this.#place = place;
    this.#save();
    this.#options.onPlace(place);
  }

  #noteBegin(begin: StreamBegin): void {
    this.#begun = begin;
    this.#save();
  }

  #save(): void {
    const mirror = { incarnation: this.#incarnation, ...this.#place };
    this.#options.position.set({ mirror: { ...mirror, ...(this.#begun && { begin: this.#begun }) } });
  }
}
