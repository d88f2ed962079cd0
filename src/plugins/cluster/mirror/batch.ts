import { z } from 'zod';
import type { RawRecord } from '../../../core/kernel/log/event-log.ts';
import {
  headerLine,
  type PortableHeader,
  parseHeader,
  recordLine,
  signatureLine,
  stateLine,
} from '../../../core/kernel/log/portable/format.ts';
import type { SqliteReader } from '../../../core/kernel/log/sqlite-reader.ts';
import { type MirrorKind, type MirrorMessage, textsOf } from './message.ts';

/** A message carries some hundred records: forty are enough for the server's full rate. */
const MESSAGE_BYTES = 256 * 1024;
/** Records that are read in one turn of the event loop: some milliseconds. */
const MOST_RECORDS = 500;
const FEWEST_RECORDS = 40;
/** A page of the reader. */
const PAGE_RECORDS = 250;

const NEWLINE = 0x0a;
const headerFields = z.looseObject({ host: z.string(), incarnation: z.int().positive(), key: z.string() });

/** What a line takes beside the record's body. */
const LINE_BYTES = 90;

/** Where the next records are chained to. */
export interface ChainPlace {
  readonly seq: number;
  readonly hash: string;
}

/** Records of the local log as one message, or as several where one record is larger than a message may be. */
export interface Batch {
  readonly messages: readonly MirrorMessage[];
  /** Its last record. */
  readonly end: ChainPlace;
  readonly records: number;
  readonly bytes: number;
}

/** The local log does not hold the next record any more: it was pruned. */
export class RecordsGone extends Error {
  constructor(seq: number) {
    super(`record ${seq} is not in the local log any more`);
  }
}

/**
 * The next records of the local log, in the portable form: as many as fit into a message, a record that is larger in parts.
 * Reads and holds no more than that.
 *
 * @param after the last record that was sent
 * @param to the last record that may be sent
 * @param largest bytes that the body of one message may have
 * @returns undefined when there is none
 * @throws RecordsGone
 */
export function nextBatch(
  reader: Pick<SqliteReader, 'pages' | 'signatures'>,
  after: ChainPlace,
  to: number,
  largest: number,
): Batch | undefined {
  if (to <= after.seq) return undefined;
  const { chosen, bytes } = chooseRecords(reader, after.seq, to, Math.min(MESSAGE_BYTES, largest));
  const last = chosen.at(-1);
  if (!last) throw new RecordsGone(after.seq + 1);
  const text = linesOf(reader, after, chosen);
  const end = { seq: last.seq, hash: last.hash };
  const messages = inParts(
    { kind: 'records', from: after.seq + 1, to: end.seq, hash: end.hash },
    text,
    largest,
  );
  return { messages, end, records: chosen.length, bytes };
}

/** Records without a gap, of `most` bytes together; at least one where the next is there. */
function chooseRecords(
  reader: Pick<SqliteReader, 'pages'>,
  after: number,
  to: number,
  most: number,
): { readonly chosen: readonly RawRecord[]; readonly bytes: number } {
  const chosen: RawRecord[] = [];
  let bytes = 0;
  for (let limit = FEWEST_RECORDS; limit > 0; ) {
    const from = after + chosen.length + 1;
    const page = from > to ? [] : pageOf(reader, from, to, limit);
    for (const [index, raw] of page.entries()) {
      const size = Buffer.byteLength(raw.body) + LINE_BYTES;
      const fits = chosen.length === 0 || bytes + size <= most;
      if (raw.seq !== from + index || !fits) return { chosen, bytes };
      chosen.push(raw);
      bytes += size;
    }
    if (page.length < limit) break;
    // A page of large records would take much memory.
    const room = Math.floor((most - bytes) / (bytes / chosen.length));
    limit = Math.min(MOST_RECORDS - chosen.length, room, PAGE_RECORDS);
  }
  return { chosen, bytes };
}

function pageOf(reader: Pick<SqliteReader, 'pages'>, from: number, to: number, limit: number): RawRecord[] {
  for (const page of reader.pages({ from, to, limit })) return page;
  return [];
}

/** The log signs its last record when it closes, which is sent with the first records of the next run. */
function linesOf(
  reader: Pick<SqliteReader, 'signatures'>,
  after: ChainPlace,
  chosen: readonly RawRecord[],
): string {
  const signatures = Map.groupBy(reader.signatures(after.seq, chosen.at(-1)?.seq), ({ seq }) => seq);
  const signed = (seq: number) => (signatures.get(seq) ?? []).map(signatureLine).join('');
  let text = signed(after.seq);
  for (const { seq, hash, body } of chosen) text += recordLine(hash, body) + signed(seq);
  return text;
}

/** Who writes a stream, in its first line: the records' signatures are those of this key. */
export interface StreamHeader extends PortableHeader {
  readonly host: string;
  readonly incarnation: number;
  /** `ed25519:` and the public key, base64url. */
  readonly key: string;
}

/** @returns the header that a stream's first body begins with; @throws HF_PORTABLE_* it is none */
export function streamHeaderOf(body: Uint8Array): StreamHeader {
  const [line = ''] = textsOf(body.subarray(0, body.indexOf(NEWLINE) + 1));
  const header = parseHeader(line, 'the stream');
  const { host, incarnation, key } = headerFields.parse(header);
  return { ...header, host, incarnation, key };
}

/** The first message of a stream: its header, and the states of all actors before its first record. */
export function beginMessages(
  header: StreamHeader,
  states: Iterable<object>,
  largest: number,
): readonly MirrorMessage[] {
  let text = headerLine(header);
  for (const state of states) text += stateLine(state);
  const { from } = header.range;
  return inParts({ kind: 'begin', from, to: from - 1, hash: header.chainStart }, text, largest);
}

/** The states of actors after a record. @param states as JSON */
export function stateMessages(
  at: ChainPlace,
  states: readonly string[],
  largest: number,
): readonly MirrorMessage[] {
  const text = states.map((state) => `{"state":${state}}\n`).join('');
  return inParts({ kind: 'states', from: at.seq + 1, to: at.seq, hash: at.hash }, text, largest);
}

function inParts(
  head: { readonly kind: MirrorKind; readonly from: number; readonly to: number; readonly hash: string },
  text: string,
  largest: number,
): readonly MirrorMessage[] {
  const body = Buffer.from(text);
  const of = Math.max(1, Math.ceil(body.length / largest));
  if (of === 1) return [{ ...head, body }];
  return Array.from({ length: of }, (_, index) => ({
    ...head,
    body: body.subarray(index * largest, (index + 1) * largest),
    part: { number: index + 1, of },
  }));
}
