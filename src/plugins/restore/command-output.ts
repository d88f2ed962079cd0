import { sizeText } from '../../core/host/size.ts';
import type { Likeness, PointList, Report, Result, Source } from '../../machines/restore/drill-shapes.ts';
import type { Progress } from './steps.ts';

export const secondsText = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;

export const timeText = (at: number): string =>
  `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`;

export function sourceText({ kind, name, size, madeAt, seenAt }: Source): string {
  const details = [
    ...(size === undefined ? [] : [sizeText(size)]),
    ...(madeAt === undefined ? [] : [`made ${madeAt.replace('T', ' ')}`]),
    ...(seenAt === undefined ? [] : [`recorded when first seen, ${timeText(seenAt)}`]),
  ];
  const what = kind === 'volume' ? 'a copy of the ' : `${kind} `;
  return `${what}${name}${details.length > 0 ? ` (${details.join(', ')})` : ''}`;
}

/** One line of how far a phase is. */
export function progressText(state: string, progress: Progress | undefined): string {
  if (!progress) return state;
  const { text, done, total, unit, leftMs } = progress;
  const amount = (value: number) => (unit === 'bytes' ? sizeText(value) : String(value));
  const extent =
    total === undefined ? '' : `, ${done === undefined ? '' : `${amount(done)} of `}${amount(total)}`;
  const points = unit === 'points' && extent !== '' ? ' points' : '';
  const pace =
    unit === 'bytes' && leftMs && total !== undefined && done !== undefined && total > done
      ? `, ${sizeText(((total - done) / leftMs) * 1_000)}/s`
      : '';
  return `${state}: ${text}${extent}${points}${pace}${leftMs === undefined ? '' : `, ${secondsText(leftMs)} left`}`;
}

/** What an auditor reads: what was restored, from when, into what, compared how, and the result. */
export function summaryLines(result: Result, isClean: boolean): string[] {
  const { id, path, at, endedAt, source, place, report, failure, outcome } = result;
  const lines = [
    ['drill', `${id}, path ${path}, ${timeText(at)}, took ${secondsText(endedAt - at)}`],
    ['restored', source ? sourceText(source) : 'nothing was chosen'],
    ['into', place === undefined ? 'nothing was made' : `${place}${isClean ? ', removed again' : ''}`],
    ...(report ? reportRows(report) : []),
    ...(isClean
      ? []
      : [['clean-up', 'NOT DONE: it is tried again by itself, see `holdfast restore status`']]),
    [
      'result',
      outcome === 'completed'
        ? `PROVEN: ${report?.verdict}`
        : `NOT PROVEN, failed while ${failure?.phase}: ${failure?.reason}`,
    ],
  ];
  return lines.map(([label = '', text]) => `${label.padEnd(10)} ${text}`);
}

const RECORDED = {
  made: 'recorded when it was made',
  seen: 'recorded when first seen',
  copied: 'recorded while it was copied',
  live: 'in the live store now: nothing was recorded',
} as const;

function reportRows({
  expected,
  restored,
  live,
  file,
  points,
  seeds,
  drift,
  moving,
  vectors,
}: Report): string[][] {
  const { least, most, by, at } = expected;
  const wanted = least === most ? String(least) : `${least} to ${most}`;
  const when = at === undefined ? '' : `, ${timeText(at)}`;
  const faults = [
    ...(seeds.missing.length > 0 ? [`missing ${seeds.missing.join(', ')}`] : []),
    ...(seeds.changed.length > 0 ? [`changed ${seeds.changed.join(', ')}`] : []),
  ];
  const seeded = faults.length > 0 ? faults.join('; ') : 'all as they were, payload and vector';
  return [
    ['count', `${restored.count} restored, ${wanted} ${RECORDED[by]}${when} (all exact)`],
    ['', `points_count, which is approximate: ${restored.approximate} restored, ${live.approximate} live`],
    ...(file ? [['file', LIKENESS[file.state] + reasonText(file)]] : []),
    ['points', `${points.same} as ${RECORDED[by]}: id, payload and vector of each`],
    ...differenceRows('missing', points.missing),
    ...differenceRows('not recorded', points.unexpected),
    ...differenceRows('other content', points.changed),
    ...differenceRows('unknown, written while it was recorded', points.unsettled),
    ...(points.digest
      ? [['', `digest of all points: ${points.digest.state}${reasonText(points.digest)}`]]
      : []),
    ...(points.unlisted === undefined ? [] : [['', `compared without a list: ${points.unlisted}`]]),
    ['seeds', seeds.checked === 0 ? 'none are known' : `${seeds.checked} compared: ${seeded}`],
    ...(vectors ? [['vectors', `${vectors.restored} restored, ${vectors.expected} expected`]] : []),
    ...driftRows(by, drift, live.count, points),
    ...differenceRows('written meanwhile', moving),
  ];
}

const LIKENESS = {
  same: 'the bytes that were recorded (sha256)',
  different: 'other bytes than were recorded',
  unknown: 'unknown',
} as const;

const reasonText = ({ reason }: Likeness): string => (reason === undefined ? '' : `: ${reason}`);

/** What was written into the live store since is no fault of the backup. */
function driftRows(
  by: Report['expected']['by'],
  drift: Report['drift'],
  count: number,
  { unlisted, digest }: Report['points'],
): string[][] {
  if (by === 'live') return [];
  const { added, deleted, changed } = drift;
  if (added.total + deleted.total + changed.total === 0)
    return [['live now', `${count} points, none written since`]];
  const isKnown = unlisted === undefined || digest?.state === 'same';
  const why = isKnown
    ? 'written since, which is no fault of the backup'
    : 'written since or damaged, which is unknown';
  return [
    ['live now', `${count} points; ${why}:`],
    ...differenceRows('added', added),
    ...differenceRows('deleted', deleted),
    ...differenceRows('changed', changed),
  ];
}

function differenceRows(what: string, { total, ids }: PointList): string[][] {
  if (total === 0) return [];
  const rest = total > ids.length ? `, and ${total - ids.length} more` : '';
  return [['', `${what}: ${total} (${ids.join(', ')}${rest})`]];
}
