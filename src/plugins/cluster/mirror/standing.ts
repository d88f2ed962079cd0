import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { CHAIN_START } from '../../../core/kernel/log/chain-hash.ts';
import type { SqliteReader } from '../../../core/kernel/log/sqlite-reader.ts';
import type { LinearStream } from '../nats/stream.ts';
import { streamHeaderOf } from './batch.ts';
import { Counting, type Fence, type MirrorBody } from './message.ts';
import { newestStates } from './newest-states.ts';
import { entriesOf } from './stream-lines.ts';

/** A record on the stream: the message that holds it, or its last part. */
export interface StreamPlace {
  readonly streamSeq: number;
  readonly seq: number;
  readonly hash: string;
}

/** A fence, and the last record of this host before it. */
export interface MetFence extends Fence {
  readonly atSeq: number;
}

/** One that stands on a stream. */
export interface FoundFence extends MetFence {
  readonly streamSeq: number;
}

/** How a stream stands to the local log. */
export type Standing =
  | {
      /** It ends with a record of the local log. */
      readonly kind: 'continues';
      readonly place: StreamPlace;
      /** Its oldest message. */
      readonly first: number;
      /** Its last message: the next one is appended behind it. */
      readonly last: number;
      /** Behind the place that was known before. */
      readonly fences: readonly FoundFence[];
    }
  /** Nothing is in it that counts. */
  | { readonly kind: 'empty'; readonly first: number; readonly last: number }
  /** It ends before what it had acknowledged; a server that is cut off from the others may say so, too. */
  | { readonly kind: 'behind'; readonly last: number }
  /** This host wrote records that its log does not have: the data folder is an older copy, or lost its newest records. */
  | { readonly kind: 'ahead'; readonly from: number; readonly to: number; readonly last: number }
  /** It holds what somebody else wrote, or cannot be compared. */
  | { readonly kind: 'differs'; readonly reason: string; readonly last: number };

type Ahead = Extract<Standing, { readonly kind: 'ahead' }>;
type Stream = Pick<LinearStream, 'subjects' | 'last' | 'read' | 'lastOf' | 'look'>;
type Log = Pick<SqliteReader, 'hashBefore' | 'lastSeq'>;

/**
 * Compares a stream with the local log: what stands behind the last record that it acknowledged, and whether that is still
 * there.
 *
 * @param key the public key of this host, which its streams name
 * @param known the last record that it acknowledged, as far as this host remembers
 * @throws HF_CLUSTER_* the stream cannot be read now
 */
export async function standingOf(
  stream: Stream,
  log: Log,
  key: string,
  known?: StreamPlace,
): Promise<Standing> {
  let last: number;
  let first: number;
  try {
    ({ seq: last, firstSeq: first } = await stream.last());
  } catch (error) {
    if (isCoded(error, 'HF_CLUSTER_STREAM_REWOUND'))
      return { kind: 'behind', last: Number(error.details.last) };
    throw error;
  }
  if (known && last < known.streamSeq) return { kind: 'behind', last };
  if (last === 0) return { kind: 'empty', first, last };
  try {
    // The host may have forgotten the last that it did: what it remembers may have been removed to make room.
    const isThere = known !== undefined && known.streamSeq >= first;
    const begin = isThere && first === 1 ? undefined : await beginOf(stream, first, last);
    // Whoever removes its oldest messages, it must begin with the states before the next.
    if (first > 1 && (begin === undefined || streamHeaderOf(begin.body).key !== key))
      return { kind: 'differs', reason: `its messages before ${first} were removed`, last };
    const place = isThere ? await checked(stream, known) : await startIn(stream, log, key, begin, last);
    if (place === undefined && isThere) {
      const reason = `message ${known.streamSeq} is not the one that holds record ${known.seq}`;
      return { kind: 'differs', reason, last };
    }
    if (place === 'foreign') {
      const reason = 'the records that it ends with are not those of this host';
      return { kind: 'differs', reason, last };
    }
    if (place === undefined) return { kind: 'empty', first, last };
    if ('kind' in place) return place;
    return await behind(stream, log, place, { first, last });
  } catch (error) {
    if (!isCoded(error, 'HF_CLUSTER_STREAM_GAP')) throw error;
    return { kind: 'differs', reason: error.message, last };
  }
}

/** @returns undefined when another message stands in its place */
async function checked(stream: Stream, known: StreamPlace): Promise<StreamPlace | undefined> {
  for await (const { seq, headers } of stream.read(known.streamSeq, known.streamSeq))
    if (
      seq === known.streamSeq &&
      Number(headers['Hf-To']) === known.seq &&
      headers['Hf-Hash'] === known.hash
    )
      return known;
  return undefined;
}

/** @returns undefined when a stream begins with anything else */
async function beginOf(stream: Stream, first: number, last: number): Promise<MirrorBody | undefined> {
  for await (const entry of entriesOf(stream.read(first, last)))
    return 'body' in entry && entry.kind === 'begin' ? entry : undefined;
  return undefined;
}

/** A record in a stream whose position was lost, from which on it can be read: that of its newest states, or its begin. */
async function startIn(
  stream: Stream,
  log: Log,
  key: string,
  begin: MirrorBody | undefined,
  last: number,
): Promise<StreamPlace | Ahead | 'foreign' | undefined> {
  if (!begin) return undefined;
  if (streamHeaderOf(begin.body).key !== key) return 'foreign';
  const states = await newestStates(stream, stream.subjects.at(-1) ?? '', last + 1);
  const { to: seq, hash, streamSeq } = states ?? begin;
  if (isOurs(log, seq, hash)) return { streamSeq, seq, hash };
  return isPruned(log, seq) ? 'foreign' : { kind: 'ahead', from: seq, to: seq, last };
}

/** What this host has no more cannot be compared. */
function isPruned(log: Log, seq: number): boolean {
  return seq <= log.lastSeq() && log.hashBefore(seq + 1) === undefined;
}

/** The record of `begin` is the one before the first that is kept. */
function isOurs(log: Log, seq: number, hash: string): boolean {
  return hash === (seq === 0 ? CHAIN_START : log.hashBefore(seq + 1));
}

/** Goes on from a place: later records of ours are counted, fences are gathered. */
async function behind(
  stream: Stream,
  log: Log,
  from: StreamPlace,
  { first, last }: { readonly first: number; readonly last: number },
): Promise<Standing> {
  let place = from;
  const fences: FoundFence[] = [];
  const counting = new Counting(from.seq);
  const messages = last > from.streamSeq ? stream.read(from.streamSeq + 1, last) : nothing();
  for await (const entry of entriesOf(messages)) {
    const { streamSeq } = entry;
    if (entry.kind === 'fence') fences.push({ ...entry.fence, atSeq: place.seq, streamSeq });
    if (entry.kind === 'left') return { kind: 'differs', reason: 'this host has left it before', last };
    if (entry.kind === 'begin' && entry.to === place.seq && entry.hash === place.hash)
      place = { ...place, streamSeq };
    if (!counting.counts(entry) || !('to' in entry)) continue;
    if (!isOurs(log, entry.to, entry.hash)) {
      const { from: begin, to } = entry;
      const reason = `it holds records ${begin} to ${to}, which this host has no more`;
      return isPruned(log, to) ? { kind: 'differs', reason, last } : { kind: 'ahead', from: begin, to, last };
    }
    place = { streamSeq, seq: entry.to, hash: entry.hash };
  }
  return { kind: 'continues', place, first, last, fences };
}

/**
 * The fences of a stream that is left, as far as it is a part of the local log: those behind which both go on.
 *
 * @returns what can be read of it
 */
export async function fencesIn(stream: Stream, log: Log): Promise<readonly FoundFence[]> {
  const fences: FoundFence[] = [];
  const counting = new Counting();
  let place: { readonly seq: number; readonly hash: string } | undefined;
  try {
    for await (const entry of entriesOf(stream.read((await stream.last()).firstSeq))) {
      if (entry.kind === 'fence' && place && isOurs(log, place.seq, place.hash))
        fences.push({ ...entry.fence, atSeq: place.seq, streamSeq: entry.streamSeq });
      if (counting.counts(entry) && 'to' in entry) place = { seq: entry.to, hash: entry.hash };
    }
  } catch (error) {
    if (!isCoded(error)) throw error; // it may lack messages: that can be why it is left
  }
  return fences;
}

async function* nothing(): AsyncGenerator<never> {}
