import { escapeText } from './page.ts';
import type { BeatRing } from './take-push.ts';
import type { MonitorState, MonitorView } from './view.ts';

/** The read side as Uptime Kuma has it, for what was written for that: numbers for states, messages blanked. */

const STATUS = { down: 0, up: 1, late: 2, waiting: 2, paused: 3 } as const;

export interface Numbered {
  readonly id: number;
  readonly view: MonitorView;
}

/** `/api/status-page/<slug>` */
export function kumaPage(slug: string, monitors: readonly Numbered[]) {
  return {
    config: {
      slug,
      title: slug,
      description: null,
      icon: null,
      autoRefreshInterval: 300,
      theme: 'auto',
      published: true,
      showTags: false,
      customCSS: '',
      footerText: null,
      showPoweredBy: false,
      showCertificateExpiry: false,
    },
    incident: null,
    publicGroupList: [
      {
        id: 1,
        name: 'Services',
        weight: 1,
        monitorList: monitors.map(({ id, view }) => ({ id, name: view.title, sendUrl: 0, type: 'push' })),
      },
    ],
    maintenanceList: [],
  };
}

/** `/api/status-page/heartbeat/<slug>` */
export function kumaHeartbeats(monitors: readonly Numbered[], beats: ReadonlyMap<string, BeatRing>) {
  const heartbeatList: Record<string, unknown> = {};
  const uptimeList: Record<string, number> = {};
  for (const { id, view } of monitors) {
    const list = (beats.get(view.name)?.list() ?? []).map(({ at, up, ping }) => ({
      status: up ? 1 : 0,
      time: spaced(at),
      msg: '',
      ping: ping ?? null,
    }));
    // No beat came to tell of an absence.
    if (view.state !== 'up') {
      const since = view.since ? Date.parse(view.since) : 0;
      list.push({ status: STATUS[view.state], time: spaced(since), msg: '', ping: null });
    }
    heartbeatList[id] = list;
    uptimeList[`${id}_24`] = view.uptime24h ?? 0;
  }
  return { heartbeatList, uptimeList };
}

function spaced(ms: number): string {
  return new Date(ms).toISOString().replace('T', ' ').replace('Z', '');
}

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
