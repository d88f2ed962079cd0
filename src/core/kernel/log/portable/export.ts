import { KernelError } from '../../errors/kernel-error.ts';
import { version } from '../../version.ts';
import { CHAIN_START } from '../chain-hash.ts';
import type { RawRecord } from '../event-log.ts';
import { parseRecord } from '../record.ts';
import type { LogKey } from '../signing.ts';
import type { SqliteReader } from '../sqlite-reader.ts';
import {
  endLine,
  headerLine,
  PORTABLE_FORMAT,
  type PortableHeader,
  recordLine,
  signatureLine,
  stateLine,
} from './format.ts';

/** The part of a log that is exported. */
export interface ExportPart {
  /** Inclusive. */
  readonly from: number;
  /** Inclusive. */
  readonly to: number;
  /** Only records of these actors: whole actors, so that what is exported can be replayed. */
  readonly actors?: ReadonlySet<string>;
  /** The correlation id by which the actors were chosen. */
  readonly correlation?: string;
}

/** A state before the first record: what `recover` gives. */
interface StateBefore {
  readonly ref: string;
}

/**
 * Where an export begins and ends, and what is in it: one walk over the records, and none is kept.
 *
 * @throws HF_LOG_REPAIRED a repair could not save some of these records
 */
export function portableHeader(reader: SqliteReader, part: ExportPart, now: number): PortableHeader {
  const gap = reader.missing().find(({ from, to }) => from <= part.to && to >= part.from);
  if (gap) throw new KernelError('HF_LOG_REPAIRED', { from: gap.from, to: gap.to });
  const machines = new Map<string, { machine: string; versions: Set<number> }>();
  let first: { seq: number; at: number } | undefined;
  let last = { seq: 0, at: 0 };
  for (const raw of selected(reader, part)) {
    const { seq, at, actor, machine, version: madeBy } = parseRecord(raw.seq, raw.body);
    first ??= { seq, at };
    last = { seq, at };
    const type = actor.slice(0, Math.max(0, actor.indexOf('/')) || actor.length);
    const machineOfType = machines.get(type) ?? { machine, versions: new Set() };
    machineOfType.versions.add(madeBy);
    machines.set(type, machineOfType);
  }
  if (!first) throw new KernelError('HF_PORTABLE_EMPTY', { from: part.from, to: part.to });
  // The file need not mention the records between the begin of the range and the first one that is wanted.
  const from = part.actors ? first.seq : part.from;
  const chainStart = from <= 1 ? CHAIN_START : reader.hashBefore(from);
  if (chainStart === undefined) {
    throw new KernelError('HF_LOG_CORRUPT', { seq: from - 1, reason: 'its hash is missing' });
  }
  return {
    holdfast: 'log',
    format: PORTABLE_FORMAT,
    runtime: version,
    exportedAt: now,
    machines: Object.fromEntries(
      [...machines].map(([type, { machine, versions }]) => [type, { machine, versions: [...versions] }]),
    ),
    chainStart,
    range: { from, to: part.actors ? last.seq : part.to },
    time: { from: first.at, to: last.at },
    complete: part.actors === undefined,
    ...(part.actors && { actors: [...part.actors] }),
    ...(part.correlation !== undefined && { correlation: part.correlation }),
  };
}

/**
 * The lines of a portable file, made one by one.
 *
 * @param header of the same part
 * @param before the states of all actors before the header's first record
 * @param key signs the last record, so that nothing in the file stands behind the last signature
 */
export function* portableLines(
  reader: SqliteReader,
  part: ExportPart,
  header: PortableHeader,
  before: Iterable<StateBefore>,
  key?: LogKey,
): Generator<string> {
  yield headerLine(header);
  for (const state of before) if (part.actors?.has(state.ref) ?? true) yield stateLine(state);
  const { from, to } = header.range;
  let previous = { seq: from - 1, hash: header.chainStart };
  let exported = previous;
  let records = 0;
  for (const page of reader.pages({ from, to })) {
    const signatures = Map.groupBy(
      reader.signatures(page[0]?.seq ?? 0, page.at(-1)?.seq ?? 0),
      ({ seq }) => seq,
    );
    for (const { seq, actor, body, hash } of page) {
      if (part.actors?.has(actor) ?? true) {
        yield recordLine(hash, body, exported.seq === seq - 1 ? undefined : previous.hash);
        for (const signature of signatures.get(seq) ?? []) yield signatureLine(signature);
        exported = { seq, hash };
        records += 1;
      }
      previous = { seq, hash };
    }
  }
  if (key && records > 0) yield signatureLine(key.sign('record', exported.seq, exported.hash));
  yield endLine({ records, seq: exported.seq, hash: exported.hash });
}

function* selected(reader: SqliteReader, { from, to, actors }: ExportPart): Iterable<RawRecord> {
  for (const page of reader.pages({ from, to })) {
    for (const raw of page) if (actors?.has(raw.actor) ?? true) yield raw;
  }
}
