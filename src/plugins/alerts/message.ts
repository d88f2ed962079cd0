import type { Notice, Queued } from '../../machines/alerts/notice.ts';

/**
 * The text for the person who is notified: what is wrong, where, since when, the cause according to the log, what to do
 * first, and where to read more. Every format of a receiver has this text (`payloads.ts`).
 *
 * @param queued the notice, and when it was queued
 */
export function personText({ at, notice }: Pick<Queued, 'at' | 'notice'>): string {
  const { state, text, since, cause, firstStep, runbook, link } = notice;
  const lasted = at - since >= MINUTE_MS ? `, for ${durationText(at - since)}` : '';
  const isOver = state === 'resolved';
  const lines = [
    `${PREFIX[state]}${text}`,
    row('Where', placesOf(notice)),
    row('Since', `${timeText(since)}${lasted}${isOver ? `, until ${timeText(at)}` : ''}`),
    row('Cause', isOver ? undefined : cause),
    row('Decide', isOver ? undefined : link),
    row('First', isOver ? undefined : firstStep),
    row('More', runbook),
  ];
  return lines.filter((line) => line !== '').join('\n');
}

const PREFIX: Readonly<Record<Notice['state'], string>> = {
  firing: '',
  reminder: 'Still: ',
  resolved: 'Resolved: ',
  event: '',
};

const row = (name: string, text: string | undefined): string =>
  text === undefined || text === '' ? '' : `${name}: ${text}`;

/** What it is about, and which host and instance notifies. */
function placesOf({ places = [], host, instance }: Notice): string | undefined {
  const here =
    host === undefined ? undefined : `${host}${instance === undefined ? '' : ` (instance ${instance})`}`;
  const others = places.filter((place) => place !== here);
  if (others.length === 0) return here;
  return `${others.join(', ')}${here === undefined ? '' : `; reported by ${here}`}`;
}

const MINUTE_MS = 60_000;

/** e.g. `3 d 4 h`, `25 min` */
function durationText(ms: number): string {
  const minutes = Math.floor(ms / MINUTE_MS);
  const parts = [
    [Math.floor(minutes / 1_440), 'd'],
    [Math.floor(minutes / 60) % 24, 'h'],
    [minutes % 60, 'min'],
  ] as const;
  const first = parts.findIndex(([count]) => count > 0);
  const shown = parts.slice(first, first + 2).filter(([count]) => count > 0);
  return shown.map(([count, unit]) => `${count} ${unit}`).join(' ');
}

/** e.g. `2026-11-21 07:53:30 UTC` */
const timeText = (at: number): string =>
  new Date(at)
    .toISOString()
    .replace('T', ' ')
    .replace(/\.\d+Z$/, ' UTC');
