import { CoreError } from '../errors/core-error.ts';
import { readChained } from './chained.ts';
import { CHECKPOINT, type LogRecord, logRecordSchema } from './record.ts';
import { Seal } from './seal.ts';
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
  if (damage !== undefined) throw new CoreError('HF_LOG_DAMAGED', { reason: damage });
  const first = reader.firstSeq();
  const last = reader.lastSeq();
  let at = 0;
  let records = 0;
  let checkpoints = 0;
  const seal = new Seal(reader, trust);
  seal.checkBegin(first);
  for (const record of readChained(reader, Math.max(first, 1))) {
    const { seq } = record;
    const bad = (reason: string) => new CoreError('HF_LOG_CORRUPT', { seq, reason });
    const issue = logRecordSchema.safeParse(record).error?.issues[0];
    if (issue) throw bad(`${issue.path.join('.')}: ${issue.message}`);
    if (record.at < at) throw bad(`its time lies ${at - record.at} ms before that of the record before`);
    if (record.cause !== undefined && record.cause >= seq)
      throw bad(`its cause, ${record.cause}, comes later`);
    if (anchor?.seq === seq && reader.hashOf(seq) !== anchor.hash) {
      throw bad('its hash is not that of the anchor: what stands up to it was written anew');
    }
    if (mark?.seq === seq && reader.hashOf(seq) !== mark.hash) {
      const reason = `it or one of those up to ${seq} was written anew: record ${seq} is not the one acknowledged`;
      throw new CoreError('HF_LOG_CORRUPT', { seq: seal.upTo + 1, reason });
    }
    seal.pass(seq);
    if (checksStates(reader, record, first)) checkpoints += 1;
    at = record.at;
    records += 1;
    if (records % STEP === 0) yield seq;
  }
  const saved = reader.snapshotSeq();
  const known = Math.max(saved, anchor?.seq ?? 0, mark?.seq ?? 0, seal.newest);
  if (known > last) {
    const by = {
      [mark?.seq ?? 0]: `record ${known} was acknowledged`,
      [anchor?.seq ?? 0]: 'the anchor names it',
      [seal.newest]: `record ${known} was signed`,
      [saved]: 'states were saved after it',
    }[known];
    throw new CoreError('HF_LOG_CORRUPT', { seq: last + 1, reason: `it is missing, and ${by}` });
  }
  seal.end(last);
  const newest = reader.hashOf(last);
  return {
    records,
    first,
    last,
    checkpoints,
    partial: reader.partial,
    ...(newest && { head: `${last}:${newest}` }),
    ...(seal.key !== undefined && {
      signed: { key: seal.key, upTo: seal.upTo, signatures: seal.signatures },
    }),
  };
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
  throw new CoreError('HF_LOG_CORRUPT', { seq, reason });
}
