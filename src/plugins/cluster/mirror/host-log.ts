import { KernelError } from '../../../core/kernel/errors/kernel-error.ts';
import { openLines } from '../../../core/kernel/log/portable/open-reader.ts';
import { isGenuine } from '../../../core/kernel/log/signing.ts';
import type { SqliteReader } from '../../../core/kernel/log/sqlite-reader.ts';
import { ClusterError } from '../errors.ts';
import { LinearStream } from '../nats/stream.ts';
import { StreamGap } from '../nats/stream-errors.ts';
import { type ChainPlace, type StreamHeader, streamHeaderOf } from './batch.ts';
import { type LogStreams, logStreams, namesOf } from './incarnations.ts';

import { Counting, type Fence, type MirrorEntry } from './message.ts';
import type { FoundFence } from './standing.ts';
import { entriesOf, linesOfEntries } from './stream-lines.ts';

/** The log of a host as its stream holds it. Close its reader. */
export interface HostLog {
  readonly host: string;
  readonly incarnation: number;
  readonly header: StreamHeader;
  /** Chain and signatures are checked. */
  readonly reader: SqliteReader;
  /** Its last record. */
  readonly end: ChainPlace;
  /** What other hosts took over, in order. */
  readonly fences: readonly FoundFence[];
  /** How far the host's clock is behind that of the servers at least, milliseconds: negative when it is ahead. */
  readonly clockBehindMs: number;
  /** It has come as far as the stream before it: while it is being filled again, that one tells more. */
  readonly isFilled: boolean;
}

/** The hosts whose logs are in NATS, by name in order. @throws HF_CLUSTER_* */
export async function hostsOf(streams: LogStreams): Promise<readonly string[]> {
  return [...(await logStreams(streams)).keys()].sort();
}

/**
 * Reads the log of a host from its stream into a database without a name, which is forgotten when it is closed.
 *
 * @param incarnation the newest one that goes furthest unless set
 * @throws HF_CLUSTER_NO_LOG there is none; HF_LOG_CORRUPT, HF_PORTABLE_* it is not what the host wrote; HF_CLUSTER_*
 */
export async function openHostLog(
  streams: LogStreams,
  host: string,
  incarnation?: number,
  signal?: AbortSignal,
): Promise<HostLog> {
  const all = (await logStreams(streams)).get(host) ?? [];
  const wanted = incarnation === undefined ? all.toReversed() : [incarnation];
  let best: HostLog | undefined;
  for (const one of wanted) {
    const found = await readHostLog(streams, host, one, signal);
    if (!found) continue;
    if (best && best.end.seq >= found.end.seq) found.reader.close();
    else {
      best?.reader.close();
      best = found;
    }
    if (best.isFilled) break;
  }
  if (!best) throw new ClusterError('HF_CLUSTER_NO_LOG', { host, cluster: streams.cluster });
  return best;
}

/** A stream is trimmed seldom. */
const ATTEMPTS = 5;

/** @returns undefined when there is no such stream, or nothing is in it yet */
async function readHostLog(
  streams: LogStreams,
  host: string,
  incarnation: number,
  signal: AbortSignal | undefined,
): Promise<HostLog | undefined> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await readOnce(streams, host, incarnation, signal);
    } catch (error) {
      // Its host removes the oldest messages when it is nearly full.
      const isTrimmed = error instanceof StreamGap && error.seq < error.firstSeq;
      if (!isTrimmed || attempt === ATTEMPTS) throw error;
    }
  }
}

async function readOnce(
  { link, cluster, clock, logger }: LogStreams,
  host: string,
  incarnation: number,
  signal: AbortSignal | undefined,
): Promise<HostLog | undefined> {
  const { stream: name } = namesOf(cluster, host, incarnation);
  const stream = await LinearStream.existing(link, name, { clock, logger });
  if (!stream) return undefined;
  const { seq: last, firstSeq } = await stream.last();
  if (last === 0) return undefined;
  const fences: FoundFence[] = [];
  const times: { readonly seq: number; readonly at: number }[] = [];
  const counting = new Counting();
  let header: StreamHeader | undefined;
  async function* watched(entries: AsyncIterable<MirrorEntry>): AsyncGenerator<MirrorEntry> {
    for await (const entry of entries) {
      if (entry.kind === 'fence' && !fences.some((known) => isSame(known, entry.fence)))
        fences.push({ ...entry.fence, atSeq: counting.newest ?? 0, streamSeq: entry.streamSeq });
      if (entry.kind === 'begin') header ??= streamHeaderOf(entry.body);
      if (counting.counts(entry) && entry.kind === 'records') times.push({ seq: entry.to, at: entry.at });
      yield entry;
    }
  }
  const lines = linesOfEntries(watched(entriesOf(stream.read(firstSeq, last))));
  const { reader, end } = await openLines({ name, lines, isOpen: true }, signal);
  if (!header) {
    reader.close();
    return undefined;
  }
  try {
    checkSignatures(reader, header.key);
    const behind = times.map(({ seq, at }) => at - reader.record(seq).at);
    const clockBehindMs = behind.reduce((least, ms) => Math.min(least, ms), behind[0] ?? 0);
    const isFilled = end.seq >= header.range.to;
    return { host, incarnation, header, reader, end, fences, clockBehindMs, isFilled };
  } catch (error) {
    reader.close();
    throw error;
  }
}

/** A stream that is trimmed, or begun anew, has a fence again. */
function isSame(one: Fence, other: Fence): boolean {
  return one.singleton === other.singleton && one.token === other.token;
}

/** The key is the one that the stream's header names, which the key of the cluster vouches for. */
function checkSignatures(reader: SqliteReader, key: string): void {
  for (const signature of reader.signatures()) {
    // What was imported keeps the signatures of whoever wrote it first.
    if (signature.key !== key) continue;
    if (isGenuine('record', signature) && reader.hashOf(signature.seq) === signature.hash) continue;
    const reason = 'it is not what the host signed';
    throw new KernelError('HF_LOG_CORRUPT', { seq: signature.seq, reason });
  }
}
