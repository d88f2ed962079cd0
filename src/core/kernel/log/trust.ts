import { KernelError } from '../errors/kernel-error.ts';
import { readChained } from './chain.ts';
import { type Anchor, readHead, readMark } from './head.ts';
import { BodyKeys } from './sealed-bodies.ts';
import { findLogKey, isGenuine, type LogKey, openLogKey, type Signature } from './signing.ts';
import type { SqliteReader } from './sqlite-reader.ts';

/** What a log is compared with, besides itself. */
export interface Trust {
  readonly anchor?: Anchor | undefined;
  /** The public key of the data folder, or the one that somebody expects. */
  readonly key?: string | undefined;
  /** The newest signature, as it was noted beside the key. */
  readonly head?: Signature | undefined;
  /** The newest record that was acknowledged, as it was noted there. */
  readonly mark?: Anchor | undefined;
  /** Whether nothing may stand behind the last signature of that key. */
  readonly whole?: boolean | undefined;
}

/** What a data folder itself notes of its log, beside its key. @throws HF_CONFIG_SECRET_MODE, HF_CONFIG_SECRET_INVALID */
export function notedTrust(dataDir: string): Trust {
  const key = findLogKey(dataDir);
  return key ? { key: key.text, head: readHead(dataDir), mark: readMark(dataDir) } : {};
}

/**
 * Checks a log before a runtime goes on with it: the record that was signed last is there, the records after it are
 * chained to it, and the states from which the start begins are those that were saved. `log verify` checks the rest,
 * which takes longer the larger the log is.
 *
 * @throws HF_LOG_UNTRUSTED, HF_LOG_CORRUPT; HF_CONFIG_SECRET_MODE, HF_CONFIG_SECRET_INVALID
 */
export function checkBeforeStart(reader: SqliteReader, dataDir: string): LogKey {
  const key = openLogKey(dataDir);
  new BodyKeys(dataDir).close(); // the writer would find out too late that others may read them
  const refuse = (reason: string): never => {
    throw new KernelError('HF_LOG_UNTRUSTED', { dir: dataDir, reason });
  };
  const head = readHead(dataDir);
  const last = reader.lastSeq();
  const genuine = (signature: Signature) => signature.key === key.text && isGenuine('record', signature);
  if (head) {
    if (!genuine(head)) refuse('secrets/log-head was not signed with the key beside it');
    if (head.seq > last) refuse(`it ends at record ${last}, and record ${head.seq} was signed`);
    if (reader.hashOf(head.seq) !== head.hash) refuse(`record ${head.seq} is not the one that was signed`);
  }
  const mark = readMark(dataDir);
  if (mark && mark.seq > last) refuse(`it ends at record ${last}, and record ${mark.seq} was acknowledged`);
  if (mark && reader.hashOf(mark.seq) !== mark.hash)
    refuse(`record ${mark.seq} is not the one that was acknowledged`);
  const newest = reader.newestSignature(key.text);
  if (newest && (!genuine(newest) || reader.hashOf(newest.seq) !== newest.hash))
    refuse(`record ${newest.seq} is not the one that was signed`);
  const begin = reader.begin();
  const isCut = reader.firstSeq() > 1 && !reader.isMissing(1, reader.firstSeq() - 1);
  if (head && isCut && (begin?.key !== key.text || !isGenuine('begin', begin)))
    refuse(`it begins at record ${reader.firstSeq()}, and nothing that was signed says so`);
  const from = Math.max(head?.seq ?? 0, reader.firstSeq(), 1);
  for (const _ of readChained(reader, from));
  const base = reader.snapshotSeq();
  for (const { seq, digest, signature } of reader.checkpointsFor(base)) {
    const signed = { seq, hash: digest, key: key.text, signature };
    if (!isGenuine('states', signed) || reader.digestAt(seq) !== digest)
      refuse(`the states saved at record ${seq} are not those that were signed`);
  }
  return key;
}
