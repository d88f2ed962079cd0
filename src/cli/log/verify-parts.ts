import { KernelError } from '../../core/kernel/errors/kernel-error.ts';
import type { IntegrityReport } from '../../core/kernel/log/integrity.ts';
import type { SqliteReader } from '../../core/kernel/log/sqlite-reader.ts';
import type { Trust } from '../../core/kernel/log/trust.ts';
import type { WitnessReport } from '../../core/kernel/log/witnessed-heads.ts';
import { withLog } from './source.ts';

/** What the check of a log found, and what its witness has of it. */
export interface Verified {
  readonly report: IntegrityReport;
  readonly witnessed?: WitnessReport | undefined;
}

/**
 * Checks archives one after another, so that no more than one is unpacked at a time, and then the folder that they lead
 * to.
 *
 * @param check checks one of them
 * @throws HF_LOG_CORRUPT one does not continue the one before, or is not what was written
 */
export async function verifyParts(
  places: readonly string[],
  trust: Trust,
  check: (log: SqliteReader, against: Trust, isLast: boolean) => Promise<Verified>,
  signal: AbortSignal,
): Promise<Verified> {
  const [place = '', ...rest] = places;
  let verified = await withLog(
    place,
    (log) => check(log, trustFor(log, trust, rest.length === 0), rest.length === 0),
    signal,
  );
  for (const [index, next] of rest.entries()) {
    const isLast = index === rest.length - 1;
    const before = verified;
    verified = await withLog(
      next,
      async (log) => {
        checkContinues(log, before.report, next);
        return together(before, await check(log, trustFor(log, trust, isLast), isLast));
      },
      signal,
    );
  }
  return verified;
}

/** The noted head and mark are those of the folder, which is the last; the anchor is where its record is. */
function trustFor(log: SqliteReader, trust: Trust, isLast: boolean): Trust {
  const { anchor, key } = trust;
  if (isLast) return trust;
  const isHere = anchor && anchor.seq >= log.firstSeq() && anchor.seq <= log.lastSeq();
  return { key, ...(isHere && { anchor }) };
}

function checkContinues(log: SqliteReader, { last, head }: IntegrityReport, place: string): void {
  if (`${last}:${log.hashBefore(last + 1)}` === head) return;
  const reason = `what ${place} is chained to is not record ${last} as the archive before has it`;
  throw new KernelError('HF_LOG_CORRUPT', { seq: last + 1, reason });
}

function together(
  { report: before, witnessed: earlier }: Verified,
  { report, witnessed }: Verified,
): Verified {
  const twice = Math.max(0, before.last - report.first + 1);
  const signatures = (before.signed?.signatures ?? 0) + (report.signed?.signatures ?? 0);
  const missing = [...(before.missing ?? []), ...(report.missing ?? [])];
  return {
    report: {
      ...report,
      first: before.first,
      records: before.records + report.records - twice,
      checkpoints: before.checkpoints + report.checkpoints,
      ...(report.signed && { signed: { ...report.signed, signatures } }),
      ...(missing.length > 0 && { missing }),
    },
    witnessed: witnessed && {
      ...witnessed,
      matching: witnessed.matching + (earlier?.matching ?? 0),
      archived: Math.max(0, witnessed.archived - (earlier?.matching ?? 0)),
    },
  };
}
