import { hash } from 'node:crypto';
import { escapeMarkup } from '../../core/host/http/html.ts';
import type { MonitorState } from './spells.ts';
import type { MonitorView } from './view.ts';

/** A monitor with what its bar draws. */
export interface ShownMonitor {
  readonly view: MonitorView;
  readonly bars: readonly (MonitorState | undefined)[];
}

const STYLE = `
:root{color-scheme:light dark;--fg:#1b1d21;--bg:#fff;--soft:#5a616b;--line:#d5d9df;--up:#2a7d2e;--late:#8a6100;--down:#b3261e;--none:#a8aeb8}
@media (prefers-color-scheme:dark){:root{--fg:#e8eaed;--bg:#15171a;--soft:#a4abb6;--line:#363b43;--up:#6fcf75;--late:#e0b040;--down:#ff8a80;--none:#5a616b}}
body{margin:0 auto;max-width:52rem;padding:1.5rem 1rem;font:1rem/1.5 system-ui,sans-serif;color:var(--fg);background:var(--bg)}
h1{font-size:1.4rem;margin:0 0 .25rem}h2{font-size:1.1rem;margin:0}p{margin:.25rem 0;overflow-wrap:anywhere}
article{border-left:.4rem solid var(--none);padding:.1rem 0 .1rem 1rem;margin:1.25rem 0}article.up{border-color:var(--up)}article.late{border-color:var(--late)}article.down{border-color:var(--down)}article>*{color:var(--fg)}article .soft{color:var(--soft)}.soft{color:var(--soft)}
.up{color:var(--up)}.late{color:var(--late)}.down{color:var(--down)}.paused,.waiting{color:var(--soft)}
strong{text-transform:uppercase}svg{display:block;width:100%;height:1.5rem;margin:.5rem 0}
svg .up{fill:var(--up)}svg .late{fill:var(--late)}svg .down{fill:var(--down)}svg .none,svg .paused,svg .waiting{fill:var(--none)}
a{color:inherit}summary{cursor:pointer}li{overflow-wrap:anywhere}
`;

/** Nothing may be loaded or run: the page is text and its own style. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${hash('sha256', STYLE, 'base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  'referrer-policy': 'no-referrer',
};

/** Monitors on one page; those beyond are counted. */
const SHOWN = 500;

const WORDS: Readonly<Record<MonitorState, string>> = {
  up: '',
  late: ', a beat was due and no alert is raised yet,',
  down: '',
  paused: ', no alerts are raised,',
  waiting: ' for its first beat',
};

/** The status page of a slug. @param at ISO 8601, when it was made */
export function statusPage(slug: string, monitors: readonly ShownMonitor[], at: string): string {
  const { words, state } = headline(monitors.map(({ view }) => view.state));
  const rank = (state: MonitorState) => ['down', 'late', 'waiting', 'paused', 'up'].indexOf(state);
  const sorted = [...monitors].sort((one, other) => rank(one.view.state) - rank(other.view.state));
  const rest = monitors.length - SHOWN;
  return shell(`Status of ${slug}`, [
    `<h1>${escapeMarkup(slug)}: <span class="${state}">${words}</span></h1>`,
    `<p class="soft">As of ${time(at)}. Health is what beats say: a run that ended well sends one, and nothing else counts.</p>`,
    ...sorted.slice(0, SHOWN).map((monitor) => article(monitor, at)),
    ...(rest > 0
      ? [`<p>${rest} more: <a href="/status/${escapeMarkup(slug)}.json">all as JSON</a>.</p>`]
      : []),
  ]);
}

/** Silence is not health: monitors that are not known to be up are counted. */
function headline(states: readonly MonitorState[]): { words: string; state: MonitorState } {
  const down = states.filter((state) => state === 'down').length;
  const unknown = states.filter((state) => state !== 'up' && state !== 'down').length;
  const of = states.length;
  if (down > 0) {
    const more = unknown > 0 ? `, ${unknown} more not known to be up` : '';
    return { words: `${down} of ${of} down${more}`, state: 'down' };
  }
  if (unknown > 0) return { words: `None is down, ${unknown} of ${of} not known to be up`, state: 'late' };
  return { words: `All ${of} up`, state: 'up' };
}

/** The list of all status pages. */
export function indexPage(
  pages: readonly { readonly slug: string; readonly states: readonly MonitorState[] }[],
): string {
  const items = pages.map(({ slug, states }) => {
    const { words, state } = headline(states);
    const name = escapeMarkup(slug);
    return `<li><a href="/status/${name}">${name}</a>: <span class="${state}">${words}</span></li>`;
  });
  return shell('Status pages', ['<h1>Status pages</h1>', `<ul>${items.join('')}</ul>`]);
}

function article({ view, bars }: ShownMonitor, now: string): string {
  const { title, state, since, lastBeat, downAt, reason, acknowledged, uptime24h, changes, interval } = view;
  const lines = [
    `<h2>${escapeMarkup(title)}</h2>`,
    `<p><strong class="${state}">${state}</strong>${WORDS[state]}${since ? ` since ${time(since)} (${lasted(since, now)})` : ''}</p>`,
  ];
  if (reason) lines.push(`<p>${state === 'down' ? 'Why' : 'Last run'}: ${escapeMarkup(reason)}</p>`);
  if (acknowledged) {
    const { by, until, note } = acknowledged;
    lines.push(
      `<p>Acknowledged${by ? ` by ${escapeMarkup(by)}` : ''} until ${time(until)}${note ? `: ${escapeMarkup(note)}` : ''}</p>`,
    );
  }
  const beat = lastBeat
    ? `Last beat ${time(lastBeat.at)}${lastBeat.msg ? `: ${escapeMarkup(lastBeat.msg)}` : ''}${lastBeat.ping === undefined ? '' : ` (${lastBeat.ping} ms)`}`
    : 'No beat yet';
  lines.push(
    `<p class="soft">${beat}.${state === 'paused' ? '' : ` One is due every ${interval} s.`}${downAt ? ` Down at ${time(downAt)} without one.` : ''}</p>`,
  );
  const percent = uptime24h === undefined ? 'not known' : `${(uptime24h * 100).toFixed(2)} % up`;
  lines.push(bar(bars, `Last 24 hours: ${percent}`), `<p class="soft">Last 24 hours: ${percent}</p>`);
  if (changes.length > 0) {
    const items = [...changes]
      .reverse()
      .map(
        ({ at, to, why }) =>
          `<li>${time(at)} <span class="${to}">${to}</span>${why ? `: ${escapeMarkup(why)}` : ''}</li>`,
      );
    lines.push(`<details><summary>Changes</summary><ul>${items.join('')}</ul></details>`);
  }
  return `<article class="${state}">${lines.join('\n')}</article>`;
}

function bar(bars: ShownMonitor['bars'], label: string): string {
  const rects = bars.map(
    (state, index) => `<rect x="${index * 10}" width="8" height="20" rx="2" class="${state ?? 'none'}"/>`,
  );
  const width = bars.length * 10;
  return `<svg role="img" aria-label="${escapeMarkup(label)}" viewBox="0 0 ${width} 20" preserveAspectRatio="none">${rects.join('')}</svg>`;
}

/** `42 s`, `10 min`, `3 h`, `2 d`: whole ones of the largest unit that has one. */
function lasted(since: string, now: string): string {
  const seconds = Math.max(0, Math.round((Date.parse(now) - Date.parse(since)) / 1_000));
  for (const [size, unit] of [
    [86_400, 'd'],
    [3_600, 'h'],
    [60, 'min'],
  ] as const) {
    if (seconds >= size) return `${Math.floor(seconds / size)} ${unit}`;
  }
  return `${seconds} s`;
}

function time(at: string): string {
  return `<time datetime="${escapeMarkup(at)}">${escapeMarkup(at.replace('T', ' ').replace(/\.\d+Z$/, ' UTC'))}</time>`;
}

function shell(title: string, body: readonly string[]): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${escapeMarkup(title)}</title>
<meta name="viewport" content="width=device-width,initial-scale=1"><meta http-equiv="refresh" content="60"><style>${STYLE}</style></head>
<body><main>
${body.join('\n')}
</main></body></html>
`;
}
