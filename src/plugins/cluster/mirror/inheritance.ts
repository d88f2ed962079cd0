import type { Inheritance } from '../../../core/kernel/actors/adoption.ts';
import { JUMP_MS } from '../../../core/kernel/clock-jumps.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type { Software, Takeover } from '../../../machines/cluster/singleton.ts';
import { ClusterError } from '../errors.ts';
import type { MirrorPosition } from '../leases/message.ts';
import { LinearStream } from '../nats/stream.ts';
import { StreamFull, StreamUnknown } from '../nats/stream-errors.ts';
import { type StreamHeader, streamHeaderOf } from './batch.ts';
import {
  incarnationsNamed,
  type LogStreamLimits,
  type LogStreams,
  logStreams,
  namesOf,
  newestIncarnation,
  openLogStream,
} from './incarnations.ts';
import { LeftActors } from './left-actors.ts';
import { type Fence, fenceHeaders, type MirrorBody } from './message.ts';
import { newestStates, statesAt } from './newest-states.ts';
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
  /** What it began with there; absent where that host did not record it. */
  readonly begunWith?: Software;
  /** Takeovers by that host of which the hosts before may not know: its successor tells them, too. */
  readonly untold: readonly Takeover[];
  /** The newest record before the fence: later than `seq` where an earlier fence had ended the work. */
  readonly readTo: number;
}

/** What is known of the tenure of the host that left it. */
export interface LeftBy {
  /** Whether no other host can have fenced the singleton there since: else the newest states may stand behind such a fence. */
  readonly isFirst?: boolean;
  /** How far that host was when it said so last in the ledger, by which nobody had fenced it. */
  readonly mirror?: MirrorPosition | undefined;
}

/** Where the work of a singleton began. */
export interface BegunOn {
  readonly host: string;
  /** Of the token. */
  readonly number: number;
  /** How far that host's log is on its stream. */
  readonly mirror: MirrorPosition;
}

/** Attempts to append a fence of which no answer comes, and how long each waits for it: a leader that has lost its followers gives none. Milliseconds. */
const ATTEMPTS = 10;
const ATTEMPT_MS = 1_000;
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
  const { seq: before } = await stream.last();
  for (let attempt = 1; ; attempt += 1) {
    const sentAt = streams.clock.now();
    try {
      // Wherever it stands: the old holder may append without end, and nothing of that counts behind it.
      const sent = { subject: names.records, headers: fenceHeaders(fence), timeoutMs: ATTEMPT_MS };
      await stream.append('', sent);
    } catch (error) {
      if (!(error instanceof StreamUnknown) || attempt >= ATTEMPTS) throw error;
    }
    // An acknowledgement may be lost, or anybody's: what stands there decides. Of several the first one counts.
    const streamSeq = await findFence(stream, fence, before + 1, (await stream.last()).seq);
    if (streamSeq !== undefined) return { ...fence, host, incarnation, streamSeq, sentAt };
    if (attempt >= ATTEMPTS) throw new StreamUnknown(names.stream, 'the fence does not stand there');
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
 * What a host left of a singleton: the states of its actors as of a fence, or the first one that ended its work, from the newest
 * states on its stream that count and the records since, whose chain and signatures are checked. Where no such states are known, the
 * stream is read from its begin, which takes longer.
 *
 * @param types of the singleton's actors
 * @throws HF_CLUSTER_UNFILLED the stream is being filled again and lacks records that may have had effects
 * @throws HF_LOG_CORRUPT, HF_PORTABLE_* it is not what the host wrote; HF_CLUSTER_*
 */
export async function inheritanceOf(
  streams: LogStreams,
  { host, incarnation, streamSeq, sentAt, singleton }: PlacedFence,
  types: readonly string[],
  { isFirst = true, mirror }: LeftBy = {},
): Promise<Left> {
  const { stream, names } = await openIncarnation(streams, host, incarnation);
  const newest = isFirst ? await newestStates(stream, names.states, streamSeq) : undefined;
  const told = mirror?.incarnation === String(incarnation) ? mirror.states : undefined;
  const states = newest ?? (told === undefined ? undefined : await statesAt(stream, told));
  const { left, filledAt } = await readUpTo(stream, { host, singleton, types, streamSeq }, states);
  // Without `from` it was read from its begin.
  streams.logger.info(
    { host, singleton, from: states?.streamSeq, to: streamSeq },
    'cluster.mirror.inherited',
  );
  if (left.place.seq < filledAt)
    throw new ClusterError('HF_CLUSTER_UNFILLED', { host, seq: left.place.seq, to: filledAt });
  const ownBehindMs = ((await stream.get(streamSeq))?.at ?? sentAt) - sentAt;
  const aheadMs = left.clockBehindMs === undefined ? 0 : left.clockBehindMs - ownBehindMs;
  return {
    ...{ host, incarnation: String(incarnation), ...left.end, readTo: left.place.seq, states: left.states() },
    untold: left.untold,
    // Less is the time that messages take.
    ...(Math.abs(aheadMs) > JUMP_MS && { clockAheadMs: aheadMs }),
    clockJumps: left.clockJumps(),
    ...(left.begun !== undefined && { begun: left.begun }),
    ...(left.begunWith && { begunWith: left.begunWith }),
  };
}

/**
 * Where the work of a singleton began last, as the streams of all hosts tell: for when the ledger does not know.
 *
 * @param types of the singleton's actors
 * @returns the newest first
 * @throws HF_CLUSTER_UNFILLED a stream is being filled again, and may yet say more; HF_LOG_CORRUPT, HF_PORTABLE_*, HF_CLUSTER_*
 */
export async function begunOnStreams(
  streams: LogStreams,
  singleton: string,
  types: readonly string[],
): Promise<readonly BegunOn[]> {
  const found: BegunOn[] = [];
  for (const [host, incarnations] of await logStreams(streams)) {
    let lack: Error | undefined;
    // While one is being filled, the one before it tells more.
    for (const incarnation of incarnations.toReversed()) {
      const { stream, names } = await openIncarnation(streams, host, incarnation);
      const streamSeq = (await stream.last()).seq + 1;
      const states = await newestStates(stream, names.states, streamSeq);
      const { left, filledAt } = await readUpTo(stream, { host, singleton, types, streamSeq }, states);
      const { seq } = left.place;
      if (left.begun !== undefined)
        found.push({ host, number: left.begun, mirror: { incarnation: String(incarnation), seq } });
      lack =
        seq < filledAt ? new ClusterError('HF_CLUSTER_UNFILLED', { host, seq, to: filledAt }) : undefined;
      if (!lack) break;
    }
    if (lack) throw lack;
  }
  return found.sort((one, other) => other.number - one.number);
}

/** Folds a stream from states, or from its begin, up to a message. @returns also the record that it has when it is filled */
async function readUpTo(
  stream: LinearStream,
  of: { host: string; singleton: string; types: readonly string[]; streamSeq: number },
  states: MirrorBody | undefined,
): Promise<{ readonly left: LeftActors; readonly filledAt: number }> {
  const { host, singleton, types, streamSeq } = of;
  const header = await headerOf(stream, host, streamSeq);
  const left = new LeftActors(stream.name, header.key, singleton, types);
  if (states) left.take(states);
  const from = states ? states.streamSeq + 1 : (await stream.last()).firstSeq;
  if (from < streamSeq)
    for await (const entry of entriesOf(stream.read(from, streamSeq - 1))) left.take(entry);
  return { left, filledAt: header.range.to };
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
