import { KernelError } from '../../errors/kernel-error.ts';
import { isObject } from '../../json.ts';
import type { HistoryReader, RawRecord, ReadRange } from '../event-log.ts';
import { checkRecord, type LogRecord, parseRecord } from '../record.ts';
import { type PortableHeader, parseHeader, parseLine } from './format.ts';

const PAGE = 1_000;

/** What a portable file holds, line by line. */
interface Contents {
  readonly header: PortableHeader;
  readonly records: readonly RawRecord[];
  /** The hashes that records chain to whose record before was left out. */
  readonly links: ReadonlyMap<number, string>;
  /** The states before the first record, by actor. */
  readonly states: ReadonlyMap<string, string>;
}

/**
 * An exported log in memory, for where neither Node nor a database is. It answers as `SqliteReader` does of the same file.
 */
export class MemoryReader implements HistoryReader {
  readonly header: PortableHeader;
  readonly partial: boolean;
  readonly #records: readonly RawRecord[];
  readonly #links: ReadonlyMap<number, string>;
  readonly #states: ReadonlyMap<string, string>;
  readonly #places = new Map<number, number>();
  readonly #byActor: ReadonlyMap<string, readonly RawRecord[]>;
  readonly #byCorrelation: ReadonlyMap<string, readonly RawRecord[]>;
  #broken: number | undefined;

  /**
   * @param lines of a portable file
   * @param name of the file, for errors
   * @throws HF_PORTABLE_*; HF_LOG_CORRUPT
   */
  constructor(lines: Iterable<string>, name: string) {
    const { header, records, links, states } = contentsOf(lines, name);
    this.header = header;
    this.partial = !header.complete;
    this.#records = records;
    this.#links = links;
    this.#states = states;
    for (const [place, { seq }] of records.entries()) this.#places.set(seq, place);
    this.#byActor = Map.groupBy(records, ({ actor }) => actor);
    this.#byCorrelation = Map.groupBy(records, ({ correlation }) => correlation);
  }

  /**
   * Checks that every record is what was written. Readers of the chain refuse the first that is not.
   *
   * @param digest SHA-256 of a text, as hex
   * @param changed records whose bodies are not those that were hashed, on purpose: only their place in the chain is checked
   * @returns the first record that is not what was written
   */
  async verify(
    digest: (text: string) => Promise<string>,
    changed: ReadonlySet<number> = new Set(),
  ): Promise<number | undefined> {
    for (const { seq, body, hash } of this.#records) {
      if (changed.has(seq)) continue;
      if ((await digest((this.hashBefore(seq) ?? '') + body)) === hash) continue;
      this.#broken = seq;
      return seq;
    }
    return undefined;
  }

  async *read(range: ReadRange = {}): AsyncIterable<LogRecord> {
    let left = range.limit ?? Number.POSITIVE_INFINITY;
    for (const page of this.pages(range)) {
      for (const raw of page) {
        if (left <= 0) return;
        left -= 1;
        yield parseRecord(raw.seq, raw.body);
      }
    }
  }

  *pages({ from = 1, to, actor, correlation, reverse, limit }: ReadRange = {}): Iterable<RawRecord[]> {
    const all =
      correlation === undefined
        ? actor === undefined
          ? this.#records
          : (this.#byActor.get(actor) ?? [])
        : (this.#byCorrelation.get(correlation) ?? []);
    const wanted = all
      .slice(placeOf(all, from), placeOf(all, (to ?? Number.MAX_SAFE_INTEGER - 1) + 1))
      .filter((record) => actor === undefined || record.actor === actor);
    if (reverse) wanted.reverse();
    const size = Math.max(1, Math.min(limit ?? PAGE, PAGE));
    for (let begin = 0; begin < wanted.length; begin += size) yield wanted.slice(begin, begin + size);
  }

  firstSeq(): number {
    return this.#records[0]?.seq ?? 0;
  }

  lastSeq(): number {
    return this.#records.at(-1)?.seq ?? 0;
  }

  usedBytes(): number {
    return this.#records.reduce((sum, { body }) => sum + body.length, 0);
  }

  record(seq: number): LogRecord {
    const raw = this.#raw(seq);
    if (!raw) throw new KernelError('HF_LOG_RANGE', { seq, first: this.firstSeq(), last: this.lastSeq() });
    return parseRecord(seq, raw.body);
  }

  *stateEntered(actor: string, upTo: number): Generator<undefined, number | undefined> {
    return this.#newestOf(
      actor,
      upTo,
      ({ from, to }) => from === undefined || JSON.stringify(from) !== JSON.stringify(to.value),
    );
  }

  *contextSet(
    actor: string,
    upTo: number,
    field: string,
    value: number,
  ): Generator<undefined, number | undefined> {
    return this.#newestOf(
      actor,
      upTo,
      ({ to }) => isObject(to.context) && Object.hasOwn(to.context, field) && to.context[field] === value,
    );
  }

  #newestOf(actor: string, upTo: number, fits: (record: LogRecord) => boolean): number | undefined {
    for (const page of this.pages({ actor, to: upTo, reverse: true }))
      for (const { seq, body } of page) if (fits(parseRecord(seq, body))) return seq;
    return undefined;
  }

  hashOf(seq: number): string | undefined {
    return this.#raw(seq)?.hash;
  }

  hashBefore(seq: number): string | undefined {
    return this.hashOf(seq - 1) ?? this.#links.get(seq);
  }

  /** As `verify` found it: without Node, hashes are computed in the background alone. */
  isChained({ seq }: RawRecord): boolean {
    return seq !== this.#broken;
  }

  /** An export has no records that a repair could not save. */
  isMissing(from: number, to: number): boolean {
    return from > to;
  }

  /** The states before the first record are all that are saved. */
  snapshotSeq(upTo = Number.MAX_SAFE_INTEGER): number {
    const saved = this.header.range.from - 1;
    return saved <= upTo ? saved : 0;
  }

  snapshots(at: number): string[] {
    return this.#isSaved(at) ? [...this.#states.values()] : [];
  }

  *snapshotPages(at: number): Iterable<string[]> {
    yield this.snapshots(at);
  }

  snapshotOf(actor: string, upTo: number): string | undefined {
    return this.#isSaved(upTo) ? this.#states.get(actor) : undefined;
  }

  #isSaved(at: number): boolean {
    return at >= this.header.range.from - 1;
  }

  close(): void {}

  #raw(seq: number): RawRecord | undefined {
    const place = this.#places.get(seq);
    return place === undefined ? undefined : this.#records[place];
  }
}

/** The place of the first record that is not before a seq. */
function placeOf(records: readonly RawRecord[], seq: number): number {
  let [low, high] = [0, records.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((records[middle]?.seq ?? 0) < seq) low = middle + 1;
    else high = middle;
  }
  return low;
}

function contentsOf(lines: Iterable<string>, file: string): Contents {
  let header: PortableHeader | undefined;
  const records: RawRecord[] = [];
  const links = new Map<number, string>();
  const states = new Map<string, string>();
  let [line, newest, isEnded] = [0, 0, false];
  for (const text of lines) {
    line += 1;
    const damaged = (reason: string) => new KernelError('HF_PORTABLE_DAMAGED', { file, line, reason });
    if (!header) {
      header = parseHeader(text, file);
      newest = header.range.from - 1;
      links.set(header.range.from, header.chainStart);
      continue;
    }
    if (isEnded) throw damaged('there is more behind the end');
    const parsed = parseLine(text, file, line);
    switch (parsed.kind) {
      case 'state':
        states.set(parsed.ref, parsed.body);
        break;
      case 'record': {
        const { body, value, hash, previous } = parsed;
        const { seq, actor, correlation } = checkRecord(newest + 1, value, false);
        if (seq <= newest) throw damaged(`record ${seq} stands behind record ${newest}`);
        if (previous !== undefined) links.set(seq, previous);
        else if (seq > newest + 1)
          throw new KernelError('HF_LOG_CORRUPT', { seq: newest + 1, reason: 'it is missing' });
        records.push({ seq, actor, correlation, body, hash });
        newest = seq;
        break;
      }
      case 'signature':
        break;
      case 'end':
        isEnded = parsed.end.records === records.length;
        break;
    }
  }
  if (!header) throw new KernelError('HF_PORTABLE_FOREIGN', { file, reason: 'it is empty' });
  if (!isEnded) {
    const reason = `the end is missing; the file is cut off behind record ${newest}`;
    throw new KernelError('HF_PORTABLE_DAMAGED', { file, line: line + 1, reason });
  }
  return { header, records, links, states };
}
