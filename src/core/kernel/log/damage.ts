import { isCoded } from '../errors/holdfast-error.ts';
import { CHAIN_START, chainHash } from './chain-hash.ts';
import type { RawRecord } from './event-log.ts';
import { type Anchor, readHead, readMark } from './head.ts';
import { parseRecord } from './record.ts';
import { findLogKey, isGenuine, type Signature } from './signing.ts';
import type { SqliteReader } from './sqlite-reader.ts';

/** Records that cannot be trusted, and why. */
export interface DamagedRange {
  /** Inclusive. */
  readonly from: number;
  readonly to: number;
  readonly reason: string;
}

/** What a full reading of a log found. `log verify` ends at the first fault; this names all of them. */
export interface LogDamage {
  /** Records that were read. */
  readonly records: number;
  /** The newest record that was read, 0 when there is none. */
  readonly last: number;
  readonly ranges: readonly DamagedRange[];
  /** Everything else that is not as it was written: pages, saved states, signatures, stored bodies. */
  readonly others: readonly string[];
}

/** Records that are read in one go, and between two steps. */
const STEP = 500;
/** How far apart swapped records may be, so that the record behind them is not taken for damaged as well. */
const SWAPPED = 64;
/** What is listed of one kind: a file that is all noise would otherwise fill the log with its description. */
const MOST = 50;

/**
 * Reads everything in a log of a data folder, also while a runtime writes it, and goes on behind each fault. Yields the
 * part that is done, 0 to 1, some thousand times, so that the caller can pause.
 *
 * @param dataDir holds the key, the noted head and the mark with which the records are compared
 */
export function* findDamage(reader: SqliteReader, dataDir: string): Generator<number, LogDamage> {
  const others: string[] = [];
  const note = (text: string) => void (others.length < MOST && others.push(text));
  // Noted before the records are read: the log may only be longer than they say.
  const noted = notedFacts(dataDir, note);
  for (const text of reader.damages(MOST)) note(text);
  yield 0;
  const ranges = new Ranges();
  let records = 0;
  const first = attempt(() => reader.firstSeq(), 0, note);
  const last = Math.max(
    attempt(() => reader.lastSeq(), 0, note),
    noted.head?.seq ?? 0,
    noted.mark?.seq ?? 0,
  );
  const walk = chained(reader, Math.max(first, 1), last, ranges);
  for (let at = walk.next(); !at.done; at = walk.next()) {
    records = at.value.records;
    yield (0.9 * (at.value.seq - first)) / Math.max(1, last - first);
  }
  for (const anchor of [noted.head, noted.mark]) checkAnchor(reader, anchor, ranges);
  for (const signature of attempt(() => reader.signatures(), [], note)) {
    if (!isGenuine('record', signature)) note(`the signature of record ${signature.seq} is not genuine`);
    else checkAnchor(reader, signature, ranges);
  }
  yield 0.93;
  yield* checkSavedStates(reader, noted.key, note);
  const begin = attempt(() => reader.begin(), undefined, note);
  const isCut = first > 1 && !attempt(() => reader.isMissing(1, first - 1), false, note);
  if (isCut && (!begin || !isGenuine('begin', begin)))
    note(`the log begins at record ${first}, and nothing that was signed says so`);
  for (const text of reader.damagedBodies()) note(text);
  return { records, last, ranges: ranges.list, others };
}

interface Noted {
  readonly key: string | undefined;
  readonly head: Signature | undefined;
  readonly mark: Anchor | undefined;
}

function notedFacts(dataDir: string, note: (text: string) => void): Noted {
  const key = findLogKey(dataDir)?.text;
  const head = attempt(() => readHead(dataDir), undefined, note);
  if (head && !isGenuine('record', head)) note('secrets/log-head holds no genuine signature');
  else if (head && key !== undefined && head.key !== key)
    note('secrets/log-head was not signed with the key beside it');
  return { key, head: head && isGenuine('record', head) ? head : undefined, mark: readMark(dataDir) };
}

/** Walks the chain, and goes on with what the next record proves behind each fault. */
function* chained(
  reader: SqliteReader,
  from: number,
  to: number,
  ranges: Ranges,
): Generator<{ seq: number; records: number }> {
  let previous = attempt(
    () => (from <= 1 ? undefined : reader.hashBefore(from)),
    undefined,
    () => {},
  );
  let expected = from;
  let records = 0;
  let doubtful: { raw: RawRecord; hash: string } | undefined;
  /** The hashes of the newest records that do not fit: of swapped ones, one is that of the last. */
  let unfit: string[] = [];
  for (const row of rowsOf(reader, from, to)) {
    if ('reason' in row) {
      doubtful = settle(doubtful, undefined, ranges);
      if (row.to >= expected) ranges.add({ ...row, from: Math.max(row.from, expected) });
      expected = Math.max(expected, row.to + 1);
      previous = undefined;
      continue;
    }
    if (row.seq > expected) {
      // A prune of the running instance may have moved the begin meanwhile.
      const begin = attempt(
        () => reader.firstSeq(),
        expected,
        () => {},
      );
      if (begin < row.seq && !reader.isMissing(Math.max(expected, begin), row.seq - 1)) {
        doubtful = settle(doubtful, undefined, ranges);
        ranges.add({ from: Math.max(expected, begin), to: row.seq - 1, reason: 'it is missing' });
      }
      previous = attempt(
        () => reader.hashBefore(row.seq),
        undefined,
        () => {},
      );
    }
    if (doubtful) {
      previous = chainHash(doubtful.hash, row.body) === row.hash ? doubtful.hash : doubtful.raw.hash;
      doubtful = settle(doubtful, row, ranges);
    }
    const hash = expectedHash(previous, row);
    const fits =
      hash === undefined || hash === row.hash || unfit.some((one) => chainHash(one, row.body) === row.hash);
    if (!fits) doubtful = { raw: row, hash };
    unfit = fits ? [] : [...unfit, row.hash].slice(-SWAPPED);
    if (fits) {
      const fault = columnFault(row);
      if (fault !== undefined) ranges.add({ from: row.seq, to: row.seq, reason: fault });
    }
    previous = row.hash;
    expected = row.seq + 1;
    records += 1;
    if (records % STEP === 0) yield { seq: row.seq, records };
  }
  settle(doubtful, undefined, ranges);
  if (expected <= to)
    ranges.add({ from: expected, to, reason: 'it is missing, and a later one was acknowledged' });
  yield { seq: to, records };
}

/** A record whose hash does not fit: what the next one is chained to shows whether its hash or its content was changed. */
function settle(
  doubtful: { raw: RawRecord; hash: string } | undefined,
  next: RawRecord | undefined,
  ranges: Ranges,
): undefined {
  if (!doubtful) return undefined;
  const { raw, hash } = doubtful;
  const proven = next !== undefined && chainHash(hash, next.body) === next.hash;
  const reason = proven ? 'its hash was changed' : 'its hash does not fit what stands before it';
  ranges.add({ from: raw.seq, to: raw.seq, reason });
  return undefined;
}

function expectedHash(previous: string | undefined, { seq, body }: RawRecord): string | undefined {
  if (seq === 1) return chainHash(CHAIN_START, body);
  return previous === undefined ? undefined : chainHash(previous, body);
}

function columnFault({ seq, actor, correlation, body }: RawRecord): string | undefined {
  try {
    const record = parseRecord(seq, body);
    const same = record.seq === seq && record.actor === actor && record.correlation === correlation;
    return same ? undefined : 'its columns differ from its body';
  } catch (error) {
    if (!isCoded(error)) throw error;
    return String(error.details.reason ?? error.what);
  }
}

/** Rows in order; where the database cannot be read, the range is halved until the unreadable records are known. */
function* rowsOf(reader: SqliteReader, from: number, to: number): Generator<RawRecord | DamagedRange> {
  for (let low = from; low <= to; low += STEP) yield* part(reader, low, Math.min(to, low + STEP - 1));
}

function* part(reader: SqliteReader, from: number, to: number): Generator<RawRecord | DamagedRange> {
  let rows: RawRecord[];
  try {
    rows = [...reader.pages({ from, to })].flat();
  } catch (error) {
    if (!isCoded(error)) throw error;
    if (from === to)
      return yield { from, to, reason: `it cannot be read: ${error.details.reason ?? error.what}` };
    const middle = Math.floor((from + to) / 2);
    yield* part(reader, from, middle);
    yield* part(reader, middle + 1, to);
    return;
  }
  yield* rows;
}

function checkAnchor(reader: SqliteReader, anchor: Anchor | undefined, ranges: Ranges): void {
  if (!anchor) return;
  const hash = attempt(
    () => reader.hashOf(anchor.seq),
    undefined,
    () => {},
  );
  if (hash === undefined || hash === anchor.hash || ranges.has(anchor.seq)) return;
  ranges.add({
    from: anchor.seq,
    to: anchor.seq,
    reason: 'it is not the one that was signed or acknowledged',
  });
}

function* checkSavedStates(
  reader: SqliteReader,
  key: string | undefined,
  note: (text: string) => void,
): Generator<number> {
  for (const actor of attempt(() => reader.misplacedStates(), [], note))
    note(`the state saved as that of ${actor} is another actor's`);
  for (const { seq, digest, signature } of attempt(() => reader.checkpoints(), [], note)) {
    const text = `the states saved at record ${seq}`;
    const now = attempt(() => reader.digestAt(seq), undefined, note);
    // A checkpoint may have been thinned out since it was listed.
    if (now === undefined) continue;
    if (now !== digest) note(`${text} are not what was saved`);
    else if (key !== undefined && !isGenuine('states', { seq, hash: digest, key, signature }))
      note(`${text} have no genuine signature`);
    yield 0.95;
  }
}

/** Reads something that damage may have made unreadable. */
function attempt<T>(read: () => T, otherwise: T, note: (text: string) => void): T {
  try {
    return read();
  } catch (error) {
    if (!isCoded(error)) throw error;
    note(String(error.details.reason ?? error.what));
    return otherwise;
  }
}

/** Ranges in order; neighbours with the same reason become one. */
class Ranges {
  readonly list: DamagedRange[] = [];

  add(range: DamagedRange): void {
    const before = this.list.at(-1);
    if (before && before.to + 1 === range.from && before.reason === range.reason)
      this.list[this.list.length - 1] = { ...before, to: range.to };
    else if (this.list.length < MOST) this.list.push(range);
    else if (before)
      this.list[this.list.length - 1] = {
        ...before,
        to: range.to,
        reason: `${MOST} and more ranges are damaged`,
      };
  }

  has(seq: number): boolean {
    return this.list.some(({ from, to }) => from <= seq && seq <= to);
  }
}
