import { KernelError } from '../errors/kernel-error.ts';
import { readChained } from './chain.ts';
import type { MissingRange } from './missing.ts';
import { ARCHIVE_DELETED, CHECKPOINT, goesBack, type LogRecord, logRecordSchema } from './record.ts';
import { isGenuine, type Signature } from './signing.ts';
import type { SqliteReader } from './sqlite-reader.ts';
import type { Trust } from './trust.ts';

export interface IntegrityReport {
  readonly records: number;
  /** Seqs of the first and the last record; zeros for an empty log. */
  readonly first: number;
  readonly last: number;
  /** Records that chain saved states to the log, and whose states are what was saved. */
  readonly checkpoints: number;
  /** Records of some actors only are here. */
  readonly partial: boolean;
  /** What a repair could not save. */
  readonly missing?: readonly MissingRange[];
  /** `<seq>:<hash>` of the newest record; absent for an empty log. */
  readonly head?: string;
  /** Who signed, and up to which record; absent when nobody did. */
  readonly signed?: { readonly key: string; readonly upTo: number; readonly signatures: number };
}

const STEP = 2_000;

/**
 * Checks a log as far as it can tell by itself (C9): SQLite's own structure, the chain, the columns beside each body,
 * the schema of each record, time that goes back, causes that are yet to come, saved states against the digests that
 * the chain holds, and saved states of records that are gone. Yields the seq reached.
 *
 * Who changes records and computes all hashes anew cannot sign them. Without the folder's noted head and mark, what
 * stands behind the last signature can be cut off or written anew unseen: only an anchor finds that.
 *
 * @throws HF_LOG_CORRUPT naming the first bad record; HF_LOG_DAMAGED SQLite finds the file damaged; HF_LOG_UNSIGNED
 */
export function* integritySteps(reader: SqliteReader, trust: Trust = {}): Generator<number, IntegrityReport> {
  const { anchor, mark } = trust;
  const damage = reader.damage();
  if (damage !== undefined) throw new KernelError('HF_LOG_DAMAGED', { reason: damage });
  const first = reader.firstSeq();
  const last = reader.lastSeq();
  let at = 0;
  let records = 0;
  let checkpoints = 0;
  const seal = new Seal(reader, trust);
  let isBeginRecorded = false;
  for (const record of readChained(reader, Math.max(first, 1), undefined, 'known')) {
    const { seq } = record;
    const bad = (reason: string) => new KernelError('HF_LOG_CORRUPT', { seq, reason });
    const issue = logRecordSchema.safeParse(record).error?.issues[0];
    if (issue) throw bad(`${issue.path.join('.')}: ${issue.message}`);
    if (goesBack(record, at))
      throw bad(`its time lies ${at - record.at} ms before that of the record before`);
    if (record.cause !== undefined && record.cause >= seq)
      throw bad(`its cause, ${record.cause}, comes later`);
    if (anchor?.seq === seq && reader.hashOf(seq) !== anchor.hash) {
      throw bad('its hash is not that of the anchor: what stands up to it was written anew');
    }
    if (mark?.seq === seq && reader.hashOf(seq) !== mark.hash) {
      const reason = `it or one of those up to ${seq} was written anew: record ${seq} is not the one acknowledged`;
      throw new KernelError('HF_LOG_CORRUPT', { seq: seal.upTo + 1, reason });
    }
    seal.pass(seq);
    isBeginRecorded ||= record.actor === ARCHIVE_DELETED.actor && isDeletionUpTo(record, first - 1);
    if (checksStates(reader, record, first)) checkpoints += 1;
    at = record.at;
    records += 1;
    if (records % STEP === 0) yield seq;
  }
  if (!isBeginRecorded) seal.checkBegin(first);
  const saved = reader.snapshotSeq();
  const expectedLast = Math.max(saved, anchor?.seq ?? 0, mark?.seq ?? 0, seal.newest);
  if (expectedLast > last) {
    const by = {
      [mark?.seq ?? 0]: `record ${expectedLast} was acknowledged`,
      [anchor?.seq ?? 0]: 'the anchor names it',
      [seal.newest]: `record ${expectedLast} was signed`,
      [saved]: 'states were saved after it',
    }[expectedLast];
    throw new KernelError('HF_LOG_CORRUPT', { seq: last + 1, reason: `it is missing, and ${by}` });
  }
  seal.end(last);
  const newest = reader.hashOf(last);
  return {
    records,
    first,
    last,
    checkpoints,
    partial: reader.partial,
    ...(reader.missing().length > 0 && { missing: reader.missing() }),
    ...(newest && { head: `${last}:${newest}` }),
    ...(seal.key !== undefined && {
      signed: { key: seal.key, upTo: seal.upTo, signatures: seal.signatures },
    }),
  };
}

/** Whether a record says that archives up to another one were deleted: then nothing before it can be missed. */
function isDeletionUpTo({ event }: LogRecord, seq: number): boolean {
  return event.type === ARCHIVE_DELETED.event && event.to === seq;
}

/** A checkpoint's digest covers the states saved at its seq, in the order in which they were saved. */
function checksStates(reader: SqliteReader, { seq, actor, event }: LogRecord, first: number): boolean {
  if (event.type !== CHECKPOINT.event || actor !== CHECKPOINT.actor) return false;
  if (typeof event.seq !== 'number' || typeof event.digest !== 'string') return false;
  if (event.seq < first) return false; // an export begins with states of its own
  const digest = reader.digestAt(event.seq);
  if (digest === undefined) return false; // dropped, or not part of an export: they are derived
  if (digest === event.digest) return true;
  const reason = `the states saved at record ${event.seq} are not what its digest says`;
  throw new KernelError('HF_LOG_CORRUPT', { seq, reason });
}

/** The signatures of a log, passed one after another while its records are walked. */
class Seal {
  readonly #reader: SqliteReader;
  readonly #trust: Trust;
  readonly #all: readonly Signature[];
  #next = 0;
  /** Whose signatures count: the expected key's, else that of the newest signature. */
  readonly key: string | undefined;
  /** The newest record that was signed, whether it is there or not. */
  readonly newest: number;
  /** Up to this record all is as that key signed it. */
  upTo = 0;
  signatures = 0;

  constructor(reader: SqliteReader, trust: Trust) {
    this.#reader = reader;
    this.#trust = trust;
    const there = reader.signatures();
    const { head } = trust;
    const isThere = there.some(
      ({ seq, hash, key }) => seq === head?.seq && hash === head.hash && key === head.key,
    );
    this.#all = [...there, ...(head && !isThere ? [head] : [])].toSorted((a, b) => a.seq - b.seq);
    const signed = this.#all.at(-1);
    this.key = trust.key !== undefined && (signed || trust.whole) ? trust.key : signed?.key;
    this.newest = signed?.seq ?? 0;
  }

  /** A log that does not begin at record 1 was pruned or imported: its own key says so, or somebody took records away. */
  checkBegin(first: number): void {
    if (first <= 1 || !this.#trust.head || this.#reader.isMissing(1, first - 1)) return;
    const begin = this.#reader.begin();
    if (begin?.key === this.#trust.key && begin && isGenuine('begin', begin)) return;
    const reason = `it is missing, with all up to ${first - 1}, and no signature says that they were archived`;
    throw new KernelError('HF_LOG_CORRUPT', { seq: 1, reason });
  }

  /** @throws HF_LOG_CORRUPT what was signed at this record is another */
  pass(seq: number): void {
    for (let next = this.#all[this.#next]; next && next.seq <= seq; next = this.#all[this.#next]) {
      this.#next += 1;
      if (next.seq === seq) this.#check(next);
    }
  }

  /** @throws HF_LOG_UNSIGNED something stands behind the last signature, and nothing may */
  end(last: number): void {
    if (!this.#trust.whole || this.upTo >= last) return;
    throw new KernelError('HF_LOG_UNSIGNED', { from: this.upTo + 1, to: last, key: this.key ?? 'any key' });
  }

  #check(signature: Signature): void {
    const { seq, hash, key } = signature;
    if (!isGenuine('record', signature)) {
      throw new KernelError('HF_LOG_CORRUPT', {
        seq,
        reason: 'its signature is not one of the key it names',
      });
    }
    if (this.#reader.hashOf(seq) !== hash) {
      const span = this.upTo + 1 < seq ? `it or one of those up to ${seq}` : 'it';
      const reason = `${span} was written anew: record ${seq} is not the one that was signed`;
      throw new KernelError('HF_LOG_CORRUPT', {
        seq: Math.max(this.upTo + 1, this.#reader.firstSeq()),
        reason,
      });
    }
    if (key !== this.key) return;
    this.upTo = seq;
    this.signatures += 1;
  }
}
