import { type Inheritance, newestTakeover } from '../../../core/kernel/actors/adoption.ts';
import { type ActorState, applyRecord } from '../../../core/kernel/actors/transition.ts';
import { type ClockJump, JUMP_MS, jumpsOf } from '../../../core/kernel/clock-jumps.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { KernelError } from '../../../core/kernel/errors/kernel-error.ts';
import { parseActorRef } from '../../../core/kernel/ids.ts';
import { chainHash } from '../../../core/kernel/log/chain-hash.ts';
import { parseLine } from '../../../core/kernel/log/portable/format.ts';
import { ADOPT, CLOCK, checkRecord, type LogEvent } from '../../../core/kernel/log/record.ts';
import { isGenuine } from '../../../core/kernel/log/signing.ts';
import type { SingletonContext } from '../../../machines/cluster/singleton.ts';
import { singletonActor } from '../actors.ts';
import { ClusterError } from '../errors.ts';
import { numberOf } from '../leases/ledger.ts';
import { LinearStream } from '../nats/stream.ts';
import { StreamConflict, StreamFull, StreamUnknown } from '../nats/stream-errors.ts';
import { type ChainPlace, type StreamHeader, streamHeaderOf } from './batch.ts';
import {
  incarnationsNamed,
  type LogStreamLimits,
  type LogStreams,
  namesOf,
  newestIncarnation,
  openLogStream,
} from './incarnations.ts';
import { Counting, type Fence, fenceHeaders, type MirrorEntry, textsOf } from './message.ts';
import { newestStates } from './newest-states.ts';
import { entriesOf } from './stream-lines.ts';

/** A fence as it stands on a host's stream. */
export interface PlacedFence extends Fence {
  /** The host that held the singleton until then. */
  readonly host: string;
  readonly incarnation: number;
  readonly streamSeq: number;
  /** When this host appended it, epoch milliseconds by its own clock. */
  readonly sentAt: number;
}

/** What a host left of a singleton. */
export interface Left extends Inheritance {
  /** Number of the newest token under which the work of the singleton began there; absent when it never did. */
  readonly begun?: number;
}

/** Attempts to append behind what the old holder sends meanwhile. */
const ATTEMPTS = 2_000;
/** Streams behind the newest that the host has begun: it makes one at a time. */
const MOST_LATER = 8;
/** Of a stream that is there already, which may have others. */
const LIMITS: LogStreamLimits = { maxBytes: 1024 * 1024 * 1024, replicas: 1 };

/**
 * Ends what a host does in the name of a singleton: from here on its appends fail until it has read this. Whoever has the
 * lease calls it, once or again.
 *
 * @throws HF_CLUSTER_NO_LOG that host has no stream; HF_CLUSTER_*
 */
export async function placeFence(streams: LogStreams, host: string, fence: Fence): Promise<PlacedFence> {
  const newest = await newestIncarnation(streams, host);
  // The host may be about to begin a later one: it meets the fence there. Others can be whoever's.
  const later = (await incarnationsNamed(streams, host)).filter((incarnation) => incarnation > newest);
  for (const incarnation of later.slice(0, MOST_LATER)) {
    try {
      await openLogStream(streams.link, namesOf(streams.cluster, host, incarnation), LIMITS, streams);
      await fenceIn(streams, host, incarnation, fence);
    } catch (error) {
      // Its host cannot begin it, either.
      if (!isCoded(error, 'HF_CLUSTER_STREAM_DIFFERS') && !(error instanceof StreamFull)) throw error;
    }
  }
  return fenceIn(streams, host, newest, fence);
}

async function fenceIn(
  streams: LogStreams,
  host: string,
  number: number,
  fence: Fence,
): Promise<PlacedFence> {
  const { stream, names, incarnation } = await openIncarnation(streams, host, number);
  let { seq: expectedLast } = await stream.last();
  for (let attempt = 1; ; attempt += 1) {
    const sentAt = streams.clock.now();
    try {
      const { seq } = await stream.append('', {
        subject: names.records,
        expectedLast,
        headers: fenceHeaders(fence),
      });
      return { ...fence, host, incarnation, streamSeq: seq, sentAt };
    } catch (error) {
      const isUnknown = error instanceof StreamUnknown;
      if (attempt === ATTEMPTS || !(isUnknown || error instanceof StreamConflict)) throw error;
      const { seq } = await stream.last();
      // A fence whose acknowledgement was lost may stand there.
      const standing = isUnknown ? await findFence(stream, fence, expectedLast + 1, seq) : undefined;
      if (standing !== undefined) return { ...fence, host, incarnation, streamSeq: standing, sentAt };
      expectedLast = seq;
    }
  }
}

async function findFence(
  stream: LinearStream,
  { singleton, token, by }: Fence,
  from: number,
  to: number,
): Promise<number | undefined> {
  if (to < from) return undefined;
  for await (const entry of entriesOf(stream.read(from, to))) {
    if (entry.kind !== 'fence') continue;
    const { fence } = entry;
    if (fence.singleton === singleton && fence.token === token && fence.by === by) return entry.streamSeq;
  }
  return undefined;
}

/**
 * What a host left of a singleton: the states of its actors as of a fence, from the newest states on its stream and the records
 * since, whose chain and signatures are checked.
 *
 * @param types of the singleton's actors
 * @throws HF_CLUSTER_UNFILLED the stream is being filled again and lacks records that may have had effects
 * @throws HF_LOG_CORRUPT, HF_PORTABLE_* it is not what the host wrote; HF_CLUSTER_*
 */
export async function inheritanceOf(
  streams: LogStreams,
  { host, incarnation, streamSeq, sentAt, singleton }: PlacedFence,
  types: readonly string[],
): Promise<Left> {
  const { stream, names } = await openIncarnation(streams, host, incarnation);
  const header = await headerOf(stream, host, streamSeq);
  const states = await newestStates(stream, names.states, streamSeq);
  const fold = new Fold(stream.name, header.key, new Set(types), `${singletonActor.type}/${singleton}`);
  if (states) fold.take(states);
  const from = states ? states.streamSeq + 1 : (await stream.last()).firstSeq;
  if (from < streamSeq)
    for await (const entry of entriesOf(stream.read(from, streamSeq - 1))) fold.take(entry);
  const { seq, hash } = fold.place;
  if (seq < header.range.to)
    throw new ClusterError('HF_CLUSTER_UNFILLED', { host, seq, to: header.range.to });
  const ownBehindMs = ((await stream.get(streamSeq))?.at ?? sentAt) - sentAt;
  const aheadMs = fold.clockBehindMs === undefined ? 0 : fold.clockBehindMs - ownBehindMs;
  return {
    ...{ host, incarnation: String(incarnation), seq, hash, states: fold.states() },
    // Less is the time that messages take.
    ...(Math.abs(aheadMs) > JUMP_MS && { clockAheadMs: aheadMs }),
    clockJumps: fold.clockJumps(),
    ...(fold.begun !== undefined && { begun: fold.begun }),
  };
}

async function openIncarnation(
  { link, cluster, clock, logger }: LogStreams,
  host: string,
  incarnation: number,
) {
  const names = namesOf(cluster, host, incarnation);
  const stream = incarnation > 0 && (await LinearStream.existing(link, names.stream, { clock, logger }));
  if (!stream) throw new ClusterError('HF_CLUSTER_NO_LOG', { host, cluster });
  return { stream, names, incarnation };
}

/** The message that the host began with names the key that signs the records. Others may have written before it. */
async function headerOf(stream: LinearStream, host: string, before: number): Promise<StreamHeader> {
  const { firstSeq } = await stream.last();
  if (before > firstSeq)
    for await (const entry of entriesOf(stream.read(firstSeq, before - 1)))
      if (entry.kind === 'begin') return streamHeaderOf(entry.body);
  throw new ClusterError('HF_CLUSTER_UNFILLED', { host, seq: 0, to: 1 });
}

/** Folds the records of some types of actors, and checks the chain of all. */
class Fold {
  readonly #name: string;
  readonly #key: string;
  readonly #types: ReadonlySet<string>;
  readonly #tenures: string;
  readonly #states = new Map<string, ActorState>();
  #counting = new Counting();
  /** When the newest record was made, by the host's own clock. */
  #newestAt = 0;
  #place: ChainPlace | undefined;

  /** @param tenures the actor that records the tenures of the singleton */
  constructor(name: string, key: string, types: ReadonlySet<string>, tenures: string) {
    this.#tenures = tenures;
    this.#name = name;
    this.#key = key;
    this.#types = types;
  }

  /** How far the host's clock is behind that of the servers at least, milliseconds; undefined when no record says so. */
  clockBehindMs: number | undefined;

  /** The number of the token by which it was being taken, or held, as of the newest record. */
  #tenure: number | undefined;
  /** As `Left.begun`. */
  begun: number | undefined;

  get place(): ChainPlace {
    return this.#place ?? { seq: 0, hash: '' };
  }

  /** Of the wanted types. */
  states(): readonly ActorState[] {
    const states = [...this.#states.values()].filter(({ ref }) => ref !== CLOCK.actor);
    const takeover = newestTakeover(states, () => true);
    // What the host had itself before it took the singleton over ended with that.
    return takeover?.isComplete ? states.filter(({ seq }) => seq >= takeover.first) : states;
  }

  /** How the host's clock was set. */
  clockJumps(): readonly ClockJump[] {
    return jumpsOf(this.#states.get(CLOCK.actor));
  }

  take(entry: MirrorEntry): void {
    if (!this.#place && entry.kind === 'states') this.#counting = new Counting(entry.to);
    else if (!this.#counting.counts(entry)) return;
    if (!('body' in entry)) return;
    this.#place ??= { seq: entry.to, hash: entry.hash };
    const texts = textsOf(entry.body);
    for (const [index, text] of texts.entries()) {
      if (entry.kind === 'begin' && index === 0) continue;
      this.#line(text, index + 1);
    }
    const behindMs = entry.kind === 'records' ? entry.at - this.#newestAt : undefined;
    if (behindMs !== undefined) this.clockBehindMs = Math.min(this.clockBehindMs ?? behindMs, behindMs);
  }

  #line(text: string, line: number): void {
    const parsed = parseLine(text, this.#name, line);
    if (parsed.kind === 'state' && this.#isWanted(parsed.ref))
      this.#states.set(parsed.ref, JSON.parse(parsed.body) as ActorState);
    if (parsed.kind === 'state' && parsed.ref === this.#tenures) this.#tenureOf(parsed.body);
    if (parsed.kind === 'record') this.#record(parsed);
    if (parsed.kind !== 'signature' || parsed.signature.key !== this.#key) return;
    const { signature } = parsed;
    const isThis = signature.seq === this.place.seq;
    if (isGenuine('record', signature) && (!isThis || signature.hash === this.place.hash)) return;
    const reason = 'it is not what the host signed';
    throw new KernelError('HF_LOG_CORRUPT', { seq: signature.seq, reason });
  }

  #record({
    body,
    value,
    hash,
  }: {
    readonly body: string;
    readonly value: unknown;
    readonly hash: string;
  }): void {
    const { seq: before, hash: previous } = this.place;
    const record = checkRecord(before + 1, value, true);
    const bad = (reason: string) => new KernelError('HF_LOG_CORRUPT', { seq: before + 1, reason });
    if (record.seq !== before + 1) throw bad(`record ${record.seq} stands in its place`);
    if (chainHash(previous, body) !== hash) throw bad('its hash does not fit what stands before it');
    this.#place = { seq: record.seq, hash };
    this.#newestAt = record.at;
    if (record.actor === this.#tenures) this.#change(record.event);
    // Elsewhere its actors take no events. A takeover that was cut off has begun nothing.
    else if (this.#types.has(parseActorRef(record.actor).type) && !isCut(record.event))
      this.begun = this.#tenure ?? this.begun;
    if (this.#isWanted(record.actor))
      this.#states.set(record.actor, applyRecord(this.#states.get(record.actor), record));
  }

  #tenureOf(body: string): void {
    const { context } = JSON.parse(body) as { readonly context: SingletonContext };
    const { token, begunBy } = context;
    this.#tenure = token === undefined ? undefined : numberOf(token);
    this.begun = begunBy === undefined ? undefined : numberOf(begunBy);
  }

  #change({ type, token }: LogEvent): void {
    if (type === 'TAKING') this.#tenure = numberOf(String(token));
    if (type === 'BEGUN') this.begun = this.#tenure;
    if (type === 'ENDED' || type === 'STARTED' || type === 'BEGIN_FAILED') this.#tenure = undefined;
  }

  #isWanted(ref: string): boolean {
    return ref === CLOCK.actor || this.#types.has(parseActorRef(ref).type);
  }
}

/** Whether more records of the same takeover have to follow. */
function isCut({ type, part, parts }: LogEvent): boolean {
  return type === ADOPT && Number(part) < Number(parts) - 1;
}
