import type { PointList, Report } from '../../../machines/restore/drill-shapes.ts';

/** Ids that a sentence names. */
const NAMED = 20;

const WITNESS = {
  made: 'recorded when it was made',
  seen: 'recorded when it was first seen',
  copied: 'recorded while it was copied',
  live: 'in the live store now',
} as const;

type Facts = Omit<Report, 'ok' | 'verdict'>;

/**
 * Whether a restore is proven: each point is what was recorded, and so is the file, as far as that can be read. How the
 * live store differs by now does not count, unless nothing was recorded: then it is the only witness.
 *
 * @param listed how many points the restored collection lists
 */
export function verdictOf(facts: Facts, listed: number): Pick<Report, 'ok' | 'verdict'> {
  const faults = [...faultsOf(facts, listed)];
  if (faults.length > 0) return { ok: false, verdict: `${faults.join('; ')}.` };
  const { restored, expected, seeds, file } = facts;
  const planted = seeds.checked > 0 ? `, ${seeds.checked} seeds among them` : '';
  const bytes =
    file === undefined
      ? ''
      : file.state === 'same'
        ? '; its file has the bytes that were recorded'
        : `; the bytes of its file are unknown: ${file.reason}`;
  return {
    ok: true,
    verdict: `${restored.count} points, each with the id, payload and vector ${WITNESS[expected.by]}${planted}${bytes}.`,
  };
}

function* faultsOf(
  { expected, restored, points, seeds, file, vectors }: Facts,
  listed: number,
): Generator<string> {
  const { least, most, by } = expected;
  const witness = WITNESS[by];
  if (restored.count < least || restored.count > most) {
    yield `${restored.count} points instead of ${least === most ? least : `${least} to ${most}`}, as ${witness}`;
  }
  if (restored.count !== listed) yield `it counts ${restored.count} points and lists ${listed}`;
  if (points.missing.total > 0) yield `${named(points.missing)} missing`;
  if (points.unexpected.total > 0) yield `${named(points.unexpected)} not ${witness}`;
  if (points.changed.total > 0) yield `${named(points.changed)} not as ${witness}`;
  if (points.unsettled.total > 0) {
    yield `${named(points.unsettled)} unknown, because of writes while it was ${by}: neither as before nor as after them`;
  }
  const differing = points.missing.total + points.unexpected.total + points.changed.total;
  if (points.digest?.state === 'different' && differing === 0) {
    yield `the digest of all points differs: ${points.digest.reason}`;
  }
  if (points.unlisted !== undefined && points.digest?.state !== 'same') {
    yield `which points these should be is unknown: ${points.unlisted.replace(/\.$/, '')}`;
  }
  if (seeds.missing.length > 0) yield `seeds are missing: ${seeds.missing.join(', ')}`;
  if (seeds.changed.length > 0) yield `seeds are changed: ${seeds.changed.join(', ')}`;
  if (vectors) yield `its vectors are ${vectors.restored} instead of ${vectors.expected}`;
  if (file?.state === 'different') yield 'its file has other bytes than were recorded';
  if (differing > 0 && by === 'seen')
    yield 'they were written before it was first seen, or it is damaged: nobody knows';
  if (differing > 0 && by === 'live')
    yield 'nothing recorded what it held, so writes since and damage look the same';
}

/** `point 7 is`, `3 points (1, 2, 3) are`. */
function named({ total, ids }: PointList): string {
  const first = ids.slice(0, NAMED);
  if (total === 1) return `point ${first.join()} is`;
  const rest = total > first.length ? `, and ${total - first.length} more` : '';
  return `${total} points (${first.join(', ')}${rest}) are`;
}
