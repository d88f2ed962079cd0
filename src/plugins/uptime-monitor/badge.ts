import { escapeText } from './escape-text.ts';
import type { MonitorState, MonitorView } from './view.ts';

const COLOURS = {
  up: '#2a7d2e',
  late: '#8a6100',
  waiting: '#5f6670',
  paused: '#5f6670',
  down: '#b3261e',
} as const;
const CHARACTER = 6.6;

export const BADGES = ['status', 'uptime', 'ping'] as const;
export type Badge = (typeof BADGES)[number];

/** A badge of one monitor as SVG; the text is in its title, for those who do not see it. */
export function badge(kind: Badge, { title, state, uptime24h, lastBeat }: MonitorView): string {
  const values: Record<Badge, string> = {
    status: state,
    uptime: uptime24h === undefined ? 'n/a' : `${(uptime24h * 100).toFixed(2)}%`,
    ping: lastBeat?.ping === undefined ? 'n/a' : `${lastBeat.ping} ms`,
  };
  return drawn(kind === 'status' ? title : `${title} ${kind}`, values[kind], state);
}

/** The badge of something that is not known: an image all the same, as with Uptime Kuma, and never a green one. */
export function unknownBadge(label: string): string {
  return drawn(label, 'n/a', 'waiting');
}

/** The badge of a whole status page: up only when every monitor of it is. */
export function pageBadge(slug: string, views: readonly MonitorView[]): string {
  const of = (state: MonitorState) => views.filter((view) => view.state === state).length;
  const down = of('down');
  if (down > 0) return drawn(slug, `${down} of ${views.length} down`, 'down');
  const unknown = views.length - of('up');
  return unknown > 0
    ? drawn(slug, `${unknown} of ${views.length} not known to be up`, 'late')
    : drawn(slug, 'up', 'up');
}

function drawn(label: string, value: string, state: MonitorState): string {
  const [left, right] = [label, value].map((text) => Math.round(text.length * CHARACTER + 12)) as [
    number,
    number,
  ];
  const text = (x: number, content: string) =>
    `<text x="${x}" y="14" text-anchor="middle">${escapeText(content)}</text>`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${left + right}" height="20" role="img">`,
    `<title>${escapeText(`${label}: ${value}`)}</title>`,
    `<rect width="${left}" height="20" fill="#444"/>`,
    `<rect x="${left}" width="${right}" height="20" fill="${COLOURS[state]}"/>`,
    `<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">`,
    text(left / 2, label),
    text(left + right / 2, value),
    '</g></svg>',
  ].join('');
}
