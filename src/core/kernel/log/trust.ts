import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { KernelError } from '../errors/kernel-error.ts';
import { syncPath } from '../sync-path.ts';
import { readChained } from './chain.ts';
import { BodyKeys } from './sealed-bodies.ts';
import { headFile, isGenuine, type LogKey, openLogKey, type Signature, signatureSchema } from './signing.ts';
import type { SqliteReader } from './sqlite-reader.ts';

/** A record's number and hash that were noted elsewhere. */
export interface Anchor {
  readonly seq: number;
  readonly hash: string;
}

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

/**
 * Notes the newest signature beside the key, where somebody who truncates the database or replaces it by an older one
 * does not reach it. The file appears whole or not at all.
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
    value = undefined; // reported below
  }
  const { data } = signatureSchema.safeParse(value);
  if (data) return data;
  throw new KernelError('HF_LOG_UNTRUSTED', {
    dir: dataDir,
    reason: 'secrets/log-head holds no signature',
  });
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

/** One line of constant length, which is overwritten in place. */
const BYTES = 96;

/**
 * The newest record that was acknowledged, noted beside the key. It is written after each commit and not synced: the
 * kernel keeps it through a kill; after a power cut it may be older than the log, but never newer. So a log that is
 * shorter has lost a record that was acknowledged.
 */
export class Mark {
  readonly #file: string;
  #descriptor: number | undefined;

  constructor(dataDir: string) {
    this.#file = markFile(dataDir);
  }

  /** An error of the disk is not thrown here: the next commit reports it. */
  write({ seq, hash }: Anchor): void {
    try {
      this.#descriptor ??= openSync(this.#file, existsSync(this.#file) ? 'r+' : 'w', 0o600);
      writeSync(this.#descriptor, `${`${seq}:${hash}`.padEnd(BYTES - 1)}\n`, 0);
    } catch {
      // The older mark stays, and is still true.
    }
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }
}

/** @returns undefined when nothing was acknowledged yet, or a power cut tore it */
export function readMark(dataDir: string): Anchor | undefined {
  try {
    const [, seq, hash] =
      /^(\d{1,15}):([0-9a-f]{64}) *\n$/.exec(readFileSync(markFile(dataDir), 'utf8')) ?? [];
    return seq !== undefined && hash !== undefined ? { seq: Number(seq), hash } : undefined;
  } catch {
    return undefined;
  }
}

function markFile(dataDir: string): string {
  return join(dataDir, 'secrets', 'log-mark');
}
