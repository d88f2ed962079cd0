import type { PointList, Report, Result, Source } from '../../machines/restore/drill-shapes.ts';
import type { Progress } from './steps.ts';

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB'];

export function sizeText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  for (; value >= 1_000 && unit < UNITS.length - 1; unit += 1) value /= 1_000;
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

export const secondsText = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;

export const timeText = (at: number): string =>
  `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`;

export function sourceText({ kind, name, size, madeAt }: Source): string {
  const details = [
    ...(size === undefined ? [] : [sizeText(size)]),
    ...(madeAt === undefined ? [] : [`made ${madeAt.replace('T', ' ')}`]),
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
  return `${state}: ${text}${extent}${points}${leftMs === undefined ? '' : `, ${secondsText(leftMs)} left`}`;
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

const SAYS = {
  record: 'the record made with the snapshot',
  copy: 'the live store during the copy',
  live: 'the live store',
} as const;

function reportRows({ expected, restored, live, seeds, compared, differences, vectors }: Report): string[][] {
  const { least, most, from } = expected;
  const wanted = least === most ? String(least) : `${least} to ${most}`;
  const faults = [
    ...(seeds.missing.length > 0 ? [`missing ${seeds.missing.join(', ')}`] : []),
    ...(seeds.changed.length > 0 ? [`changed ${seeds.changed.join(', ')}`] : []),
  ];
  const seeded = faults.length > 0 ? faults.join('; ') : 'all as they were, payload and vector';
  return [
    ['count', `${restored.count} restored, ${wanted} by ${SAYS[from]}, ${live.count} live now (all exact)`],
    ['', `points_count, which is approximate: ${restored.approximate} restored, ${live.approximate} live`],
    ['seeds', seeds.checked === 0 ? 'none are recorded' : `${seeds.checked} compared: ${seeded}`],
    [
      'compared',
      `${compared.payloads} payloads and ${compared.vectors} vectors with the live store as it is now`,
    ],
    ...differenceRows('only live', differences.onlyLive),
    ...differenceRows('only restored', differences.onlyRestored),
    ...differenceRows('other content', differences.changed),
    ...differenceRows('written meanwhile', differences.moving),
    ...(vectors ? [['vectors', `${vectors.restored} restored, ${vectors.live} live`]] : []),
  ];
}

function differenceRows(what: string, { total, ids }: PointList): string[][] {
  if (total === 0) return [];
  const rest = total > ids.length ? `, and ${total - ids.length} more` : '';
  return [['', `${what}: ${total} (${ids.join(', ')}${rest})`]];
}
