import type { LogRecord } from '../../kernel/log/record.ts';

/** Records of one host, in their order. */
export interface HostRecords {
  readonly host: string;
  /** How far the host's clock is behind a clock that all hosts share, milliseconds; negative when it is ahead. */
  readonly clockBehindMs: number;
  readonly records: AsyncIterable<LogRecord> | Iterable<LogRecord>;
}

/** A record, and the host that made it. */
export interface HostRecord {
  readonly host: string;
  readonly record: LogRecord;
}

/** One host while its records are merged: its next record, and when that was made by the shared clock. */
interface Source {
  readonly host: string;
  readonly clockBehindMs: number;
  readonly records: AsyncIterator<LogRecord> | Iterator<LogRecord>;
  next: LogRecord | undefined;
  at: number;
}

/**
 * The records of several hosts as one story: each host's own order is kept, a record that another host's led to never stands
 * before that one, and otherwise the time decides, by a clock that all share; of two at the same time, the host's name does. The
 * same logs always give the same story.
 */
export async function* mergedRecords(hosts: readonly HostRecords[]): AsyncGenerator<HostRecord> {
  const sources = new Map<string, Source>();
  for (const { host, clockBehindMs, records } of hosts.toSorted((a, b) => (a.host < b.host ? -1 : 1))) {
    const iterator =
      Symbol.asyncIterator in records ? records[Symbol.asyncIterator]() : records[Symbol.iterator]();
    const source: Source = { host, clockBehindMs, records: iterator, next: undefined, at: 0 };
    await advance(source);
    sources.set(host, source);
  }
  try {
    for (let source = earliest(sources); source?.next; source = earliest(sources)) {
      yield { host: source.host, record: source.next };
      await advance(source);
    }
  } finally {
    for (const { records } of sources.values()) await records.return?.();
  }
}

async function advance(source: Source): Promise<void> {
  const { done, value } = await source.records.next();
  source.next = done ? undefined : value;
  // A clock that was set back does not take a record before the one that it follows.
  if (source.next) source.at = Math.max(source.at, source.next.at + source.clockBehindMs);
}

/** The source whose record comes next: the earliest, or what that one waits for. */
function earliest(sources: ReadonlyMap<string, Source>): Source | undefined {
  let first: Source | undefined;
  for (const source of sources.values()) if (source.next && (!first || source.at < first.at)) first = source;
  const passed = new Set<Source>();
  for (let source = first; source; ) {
    passed.add(source);
    const origin = source.next?.origin;
    const awaited = origin && sources.get(origin.host);
    const isThere = !awaited?.next || origin?.seq === undefined || awaited.next.seq > origin.seq;
    // Logs that say that each came first are no story; they are told in the order of time.
    if (isThere || passed.has(awaited)) return source;
    source = awaited;
  }
  return first;
}
