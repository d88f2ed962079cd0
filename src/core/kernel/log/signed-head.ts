import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { CoreError } from '../errors/core-error.ts';
import { syncPath } from '../sync-path.ts';
import { BodyKeys } from './body-keys.ts';
import { readChained } from './chained.ts';
import { readMark } from './mark.ts';
import { headFile, isGenuine, type LogKey, openLogKey, type Signature, signatureSchema } from './signing.ts';
import type { SqliteReader } from './sqlite-reader.ts';

/**
 * Notes the newest signature beside the key. Who cuts the database off, or puts an older one in its place, does not
 * reach it. It appears whole or not at all.
 */
export function writeHead(dataDir: string, head: Signature): void {
  const file = headFile(dataDir);
  const draft = `${file}.new`;
  const descriptor = openSync(draft, 'w', 0o600);
  try {
    writeSync(descriptor, `${JSON.stringify(head)}\n`);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  renameSync(draft, file);
  syncPath(dirname(file));
}

/**
 * @returns undefined when the log was never signed here
 * @throws HF_LOG_UNTRUSTED it is not what was noted
 */
export function readHead(dataDir: string): Signature | undefined {
  const file = headFile(dataDir);
  if (!existsSync(file)) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    value = undefined; // told below
  }
  const { data } = signatureSchema.safeParse(value);
  if (data) return data;
  throw new CoreError('HF_LOG_UNTRUSTED', {
    dir: dataDir,
    reason: 'secrets/log-head holds no signature',
  });
}

/**
 * Looks before a runtime goes on with a log: what was signed last is there, what came after is chained to it, and the
 * states that the start will begin from are those that were saved. The rest is for `log verify`, for it takes as long
 * as the log is.
 *
 * @throws HF_LOG_UNTRUSTED, HF_LOG_CORRUPT; HF_CONFIG_SECRET_MODE, HF_CONFIG_SECRET_INVALID
 */
export function checkBeforeStart(reader: SqliteReader, dataDir: string): LogKey {
  const key = openLogKey(dataDir);
  new BodyKeys(dataDir).close(); // the writer would find out too late that others may read them
  const refuse = (reason: string): never => {
    throw new CoreError('HF_LOG_UNTRUSTED', { dir: dataDir, reason });
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
  if (head && reader.firstSeq() > 1 && (begin?.key !== key.text || !isGenuine('begin', begin)))
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
