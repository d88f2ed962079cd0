import type { Logger } from '../../../core/host/logging/logger.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import type { NatsLink } from '../nats/link.ts';
import { LinearStream, type StreamDependencies } from '../nats/stream.ts';
import { isOfHost } from './message.ts';

// The log of a host is one stream, of which a later incarnation takes the place of an earlier one (docs/cluster.md, "The log on a stream").

/** How the log of one host stands in NATS. */
export interface LogStreamNames {
  readonly stream: string;
  /** Records, in order. */
  readonly records: string;
  /** States of the actors of singletons, from time to time. */
  readonly states: string;
}

export function namesOf(cluster: string, host: string, incarnation: number): LogStreamNames {
  const subject = `hf.${cluster}.log.${host}.${incarnation}`;
  return {
    stream: `HF_${cluster}_LOG_${host}_${incarnation}`,
    records: `${subject}.records`,
    states: `${subject}.states`,
  };
}

/** What the logs of hosts are read with. */
export interface LogStreams {
  readonly link: NatsLink;
  /** Name of the cluster. */
  readonly cluster: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Which streams hold the logs of a cluster's hosts: the incarnations of each, in order. Whoever may make streams can make some of such names:
 * what somebody with the key of the cluster has not begun is left out.
 */
export async function logStreams(streams: LogStreams): Promise<ReadonlyMap<string, readonly number[]>> {
  const hosts = new Map<string, number[]>();
  for (const [host, all] of await namedStreams(streams)) {
    const begun: number[] = [];
    for (const incarnation of all) if (await isBegun(streams, host, incarnation)) begun.push(incarnation);
    if (begun.length > 0) hosts.set(host, begun);
  }
  return hosts;
}

/** @returns the newest incarnation of a host's stream that is begun; 0 when there is none */
export async function newestIncarnation(streams: LogStreams, host: string): Promise<number> {
  for (const incarnation of (await incarnationsNamed(streams, host)).toReversed())
    if (await isBegun(streams, host, incarnation)) return incarnation;
  return 0;
}

/** The incarnations of a host's streams by name, in order, also those that nobody with the key has begun. */
export async function incarnationsNamed(streams: LogStreams, host: string): Promise<readonly number[]> {
  return (await namedStreams(streams)).get(host) ?? [];
}

async function namedStreams({ link, cluster }: LogStreams): Promise<ReadonlyMap<string, readonly number[]>> {
  const prefix = `HF_${cluster}_LOG_`;
  const found = (await LinearStream.names(link, `hf.${cluster}.log.>`)).flatMap((name) => {
    const [, host, incarnation] = /^([a-z0-9-]+)_([1-9]\d{0,8})$/.exec(name.slice(prefix.length)) ?? [];
    return name.startsWith(prefix) && host !== undefined ? [{ host, incarnation: Number(incarnation) }] : [];
  });
  const hosts = Map.groupBy(found, ({ host }) => host);
  return new Map(
    [...hosts].map(([host, all]) => [host, all.map(({ incarnation }) => incarnation).sort((a, b) => a - b)]),
  );
}

/**
 * A host begins no stream with more messages before its own: looking for the beginning takes time, and whoever may write to NATS
 * could let it take any.
 */
export const MOST_BEFORE_BEGIN = 1_000;

/** Whether a host has begun the stream of an incarnation. */
export async function isBegun(
  { link, cluster, clock, logger }: LogStreams,
  host: string,
  incarnation: number,
): Promise<boolean> {
  const { stream: name } = namesOf(cluster, host, incarnation);
  const stream = await LinearStream.existing(link, name, { clock, logger });
  if (!stream) return false;
  const { seq, firstSeq } = await stream.last();
  const to = Math.min(seq, firstSeq + MOST_BEFORE_BEGIN);
  for await (const { headers } of stream.read(firstSeq, to)) if (isOfHost(headers)) return true;
  return false;
}

export interface LogStreamLimits {
  /** The most that a stream may hold, bytes. */
  readonly maxBytes: number;
  /** Copies on different servers. */
  readonly replicas?: number | undefined;
}

/** Opens the stream of an incarnation, and makes it where there is none. @throws HF_CLUSTER_* */
export function openLogStream(
  link: NatsLink,
  { stream, records, states }: LogStreamNames,
  limits: LogStreamLimits,
  dependencies: StreamDependencies,
): Promise<LinearStream> {
  const settings = { name: stream, subjects: [records, states], isTrimmed: true, ...limits };
  return LinearStream.open(link, settings, dependencies);
}
