import { createReadStream, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { isoTime } from '../clock.ts';
import { isCoded } from '../errors/holdfast-error.ts';
import { KernelError } from '../errors/kernel-error.ts';
import { isGenuine, parseSignature, type Signature } from './signing.ts';
import type { SqliteReader } from './sqlite-reader.ts';

/** The signature of a record, as somebody outside got it. */
export interface WitnessedHead extends Signature {
  /** When it was sent, epoch milliseconds. */
  readonly at: number;
}

/** One line of a witness: JSON, so that whoever keeps it needs no tool of ours to read it. */
export function witnessLine({ seq, hash, key, signature, at }: WitnessedHead): string {
  return `${JSON.stringify({ holdfast: 'head', seq, hash, key, signature, at: isoTime(at) })}\n`;
}

/** The name of the file of a day in a witness's folder. @param day e.g. `2026-11-22`, UTC */
export function witnessFileOf(day: string): string {
  return `heads-${day}.jsonl`;
}

export function isWitnessFile(name: string): boolean {
  return /^heads-\d{4}-\d\d-\d\d\.jsonl$/.test(name);
}

/**
 * The heads in a witness's file, or in the files of its folder, in the order in which it got them.
 *
 * @throws HF_WITNESS_READ one cannot be read, or holds what is no head that its key signed, or there is no head
 */
export async function readWitness(place: string): Promise<WitnessedHead[]> {
  if (!statSync(place, { throwIfNoEntry: false })?.isDirectory()) return readWitnessFile(place);
  const heads: WitnessedHead[] = [];
  for (const name of readdirSync(place).filter(isWitnessFile).toSorted())
    heads.push(...(await readWitnessFile(join(place, name))));
  if (heads.length > 0) return heads;
  throw new KernelError('HF_WITNESS_READ', { file: place, reason: 'it holds no head' });
}

/**
 * The heads in a witness's file, in the order in which it got them. What is no JSON does not count: a crash may have cut a
 * line short.
 *
 * @throws HF_WITNESS_READ it cannot be read, or a line of it is no head that its key signed
 */
async function readWitnessFile(file: string): Promise<WitnessedHead[]> {
  const heads: WitnessedHead[] = [];
  const refuse = (reason: string, cause?: unknown) =>
    new KernelError('HF_WITNESS_READ', { file, reason }, { cause });
  let line = 0;
  try {
    for await (const text of createInterface({ input: createReadStream(file), crlfDelay: Infinity })) {
      line += 1;
      const value = jsonIn(text);
      if (value === undefined) continue;
      const head = headIn(value);
      if (!head) throw refuse(`line ${line} is no head that its key signed`);
      heads.push(head);
    }
  } catch (error) {
    if (isCoded(error)) throw error;
    throw refuse(error instanceof Error ? error.message : String(error), error);
  }
  if (heads.length === 0) throw refuse('it holds no head');
  return heads;
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function headIn(value: unknown): WitnessedHead | undefined {
  const head = parseSignature(value);
  const at = Date.parse(String((value as { at?: unknown }).at));
  return head && Number.isFinite(at) && isGenuine('record', head) ? { ...head, at } : undefined;
}

/** How a log compares with its witness. */
export interface WitnessReport {
  /** Heads whose records are here and are the same. */
  readonly matching: number;
  /** Heads of records that were archived: archives have to be named to compare them. */
  readonly archived: number;
  /** The newest head that matches. */
  readonly newest?: WitnessedHead;
}

/**
 * Compares a log with what a witness got of it. Who has the signing key can rewrite the past and sign it anew; what went
 * outside before stays.
 *
 * @param key of the log, whose heads count; other logs may share the witness
 * @throws HF_LOG_REWRITTEN naming the first head that differs, and from which record on the log may be another one
 */
export function compareWithWitness(
  reader: SqliteReader,
  heads: readonly WitnessedHead[],
  key: string | undefined,
  place: string,
): WitnessReport {
  const own = heads.filter((head) => key === undefined || head.key === key);
  const [other] = heads;
  if (own.length === 0 && other) {
    const reason = `it has heads of ${other.key}, and none of the key that signs this log now`;
    throw new KernelError('HF_LOG_REWRITTEN', {
      place,
      from: 1,
      to: other.seq,
      at: isoTime(other.at),
      reason,
    });
  }
  const first = reader.firstSeq();
  const last = reader.lastSeq();
  let newest: WitnessedHead | undefined;
  let matching = 0;
  let archived = 0;
  for (const head of own.toSorted((a, b) => a.seq - b.seq)) {
    if (head.seq < first) {
      archived += 1;
      continue;
    }
    if (reader.hashOf(head.seq) === head.hash) {
      matching += 1;
      newest = head;
      continue;
    }
    const reason =
      head.seq > last
        ? `the log ends at record ${last}, and the witness has record ${head.seq}`
        : `record ${head.seq} is not the one that the witness got`;
    const from = Math.min((newest?.seq ?? first - 1) + 1, head.seq);
    throw new KernelError('HF_LOG_REWRITTEN', { place, from, to: head.seq, at: isoTime(head.at), reason });
  }
  return { matching, archived, ...(newest && { newest }) };
}
