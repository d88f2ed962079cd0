import { z } from 'zod';
import { escapeMarkup } from '../../core/host/http/html.ts';
import type { MonitorContext } from '../../machines/uptime-monitor/diagnosis.ts';
import { averagePing, LONGEST_PING_PERIOD_MS } from '../../machines/uptime-monitor/pings.ts';
import { type MonitorState, uptimeOver } from './spells.ts';

/**
 * Badges with the paths, parameters and texts of Uptime Kuma's, so that what reads those reads these. What is not known is
 * `N/A` and grey.
 */

export const BADGES = ['status', 'uptime', 'ping', 'avg-response', 'response', 'cert-exp'] as const;
export type Badge = (typeof BADGES)[number];

const COLOURS = {
  up: '#2a7d2e',
  late: '#8a6100',
  waiting: '#5f6670',
  paused: '#5f6670',
  down: '#b3261e',
} as const;
const UNKNOWN = '#5f6670';
const CHARACTER = 6.6;
const HOUR_MS = 3_600_000;

const text = z.string().max(100).optional().catch(undefined);

/** Parameters that replace parts of the texts; others are ignored. */
export const badgeTexts = z.object({
  label: text,
  labelPrefix: text,
  labelSuffix: text,
  prefix: text,
  suffix: text,
  upLabel: text,
  downLabel: text,
  pendingLabel: text,
  maintenanceLabel: text,
});
export type BadgeTexts = z.output<typeof badgeTexts>;

/** The period of a badge. */
export interface Period {
  /** As the label shows it, e.g. `24h`. */
  readonly label: string;
  readonly ms: number;
}

const UNITS: Readonly<Record<string, number>> = {
  m: 60_000,
  h: HOUR_MS,
  d: 24 * HOUR_MS,
  w: 7 * 24 * HOUR_MS,
  M: 30 * 24 * HOUR_MS,
  y: 365 * 24 * HOUR_MS,
};

/**
 * Reads the period in a badge's path: a number of hours, or a number with the unit m, h, d, w, M or y.
 *
 * @returns undefined for any other text, and for more than a year
 */
export function periodOf(duration: string): Period | undefined {
  const [, number = '', unit = 'h'] = /^(\d{1,6})([mhdwMy])?$/.exec(duration) ?? [];
  const ms = Number(number) * (UNITS[unit] ?? 0);
  return ms > 0 && ms <= 365 * 24 * HOUR_MS ? { label: `${number}${unit}`, ms } : undefined;
}

/** What a badge shows of a monitor. */
export interface BadgeSource {
  readonly state: MonitorState;
  readonly context: Pick<MonitorContext, 'changes' | 'lastPing' | 'pings'>;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** A badge of one monitor as SVG; its accessible name is `<label>: <message>`. */
export function badge(kind: Badge, { state, context, now }: BadgeSource, period: Period, texts: BadgeTexts) {
  switch (kind) {
    case 'status':
      return drawn(texts.label ?? 'Status', statusText(state, texts), COLOURS[state]);
    case 'uptime': {
      const uptime = uptimeOver(context.changes, now, period.ms);
      const message =
        uptime === undefined ? undefined : `${(uptime * 100).toPrecision(4)}${texts.suffix ?? '%'}`;
      const colour = uptime === 1 ? COLOURS.up : (uptime ?? 0) > 0.9 ? COLOURS.late : COLOURS.down;
      return measured('', message, colour, withUnit('Uptime', period, texts));
    }
    case 'ping':
      return pingBadge('', context, now, period, withUnit('Avg. Ping', period, texts));
    case 'avg-response':
      return pingBadge(`Avg. Response (${period.label})`, context, now, period, texts);
    case 'response':
      return measured('Response', milliseconds(context.lastPing, texts), COLOURS.up, texts);
    // A push monitor meets no certificate.
    case 'cert-exp':
      return drawn('', 'No/Bad Cert', UNKNOWN);
  }
}

/** The badge of something that is not known: an image all the same, and never a green one. */
export function unknownBadge(): string {
  return drawn('', 'N/A', UNKNOWN);
}

/** The badge of a whole status page: `Up` only when every monitor of it is up, `Down` when every one is down. */
export function pageBadge(states: readonly MonitorState[], { label = '' }: BadgeTexts): string {
  if (states.length === 0) return drawn(label, 'N/A', UNKNOWN);
  if (states.every((state) => state === 'up')) return drawn(label, 'Up', COLOURS.up);
  if (states.every((state) => state === 'down')) return drawn(label, 'Down', COLOURS.down);
  return drawn(label, 'Degraded', states.includes('down') ? COLOURS.down : COLOURS.late);
}

function statusText(state: MonitorState, texts: BadgeTexts): string {
  const { upLabel = 'Up', downLabel = 'Down', pendingLabel = 'Pending' } = texts;
  const { maintenanceLabel = 'Maintenance' } = texts;
  const words = { up: upLabel, down: downLabel, late: pendingLabel, waiting: pendingLabel };
  return state === 'paused' ? maintenanceLabel : words[state];
}

/** For two badges, `labelSuffix` is the unit of the period in the label: `Uptime (24h)` becomes `Uptime (24 hours)`. */
function withUnit(name: string, { label }: Period, { labelSuffix, ...texts }: BadgeTexts): BadgeTexts {
  const period = `${label.slice(0, -1)}${labelSuffix ?? label.slice(-1)}`;
  return { ...texts, label: texts.label ?? `${name} (${period})` };
}

/** Averages are known of 30 days at most, and of whole hours. */
function pingBadge(
  name: string,
  { pings }: BadgeSource['context'],
  now: number,
  { ms }: Period,
  texts: BadgeTexts,
): string {
  const isKept = ms % HOUR_MS === 0 && ms <= LONGEST_PING_PERIOD_MS;
  const average = isKept ? averagePing(pings, now, ms) : undefined;
  return measured(name, milliseconds(average, texts), COLOURS.up, texts);
}

function milliseconds(ms: number | undefined, { suffix = 'ms' }: BadgeTexts): string | undefined {
  return ms === undefined ? undefined : `${Math.trunc(ms)}${suffix}`;
}

function measured(name: string, message: string | undefined, colour: string, texts: BadgeTexts): string {
  if (message === undefined) return unknownBadge();
  const { label = name, labelPrefix = '', labelSuffix = '', prefix = '' } = texts;
  return drawn(`${labelPrefix}${label}${labelSuffix}`, `${prefix}${message}`, colour);
}

function drawn(label: string, message: string, colour: string): string {
  const [left, right] = [label, message].map((content) =>
    content === '' ? 0 : Math.round(content.length * CHARACTER + 12),
  ) as [number, number];
  const name = escapeMarkup(label === '' ? message : `${label}: ${message}`);
  const line = (x: number, content: string) =>
    `<text x="${x}" y="14" text-anchor="middle">${escapeMarkup(content)}</text>`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${left + right}" height="20" role="img" aria-label="${name}">`,
    `<title>${name}</title>`,
    `<rect width="${left}" height="20" fill="#444"/>`,
    `<rect x="${left}" width="${right}" height="20" fill="${colour}"/>`,
    `<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">`,
    ...(label === '' ? [] : [line(left / 2, label)]),
    line(left + right / 2, message),
    '</g></svg>',
  ].join('');
}
