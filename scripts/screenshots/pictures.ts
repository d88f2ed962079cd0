// The pictures of the console's pages, each of a fixed size, with a clock that stands still and what differs from run to run
// (ports, folders, process ids) replaced.
import type { Browser, Page } from 'playwright-core';
import { PATIENCE_MS, until } from '../../test/support/until.ts';
import { type Incidents, traceOf } from './incidents.ts';
import { indexedPng, readPng } from './png.ts';

export const THEMES = ['light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

/** Pixels. */
export const SIZE = { width: 1_280, height: 800 } as const;

/** A page of which there is a picture in each theme: `docs/images/<name>-<theme>.png`. */
export interface Picture {
  readonly name: string;
  readonly path: string;
}

/** Every page, with those of the plugins. One trace stands for all. */
export async function picturesOf({ rig, healed, last }: Incidents): Promise<Picture[]> {
  const { pages } = await rig.ask('/api/pages');
  const leg = encodeURIComponent('eth1.40');
  return [
    { name: 'now', path: '/now' },
    { name: 'past', path: `/now?at=${healed.seq}` },
    { name: 'happened', path: '/happened' },
    { name: 'stories', path: '/stories' },
    { name: 'story', path: `/stories/${healed.story}` },
    { name: 'actors', path: '/actors' },
    { name: 'actor', path: `/actors/reconciler.leg/${leg}?at=${healed.seq}` },
    { name: 'record', path: `/records/${healed.seq}` },
    { name: 'compare', path: `/compare?mark=${healed.seq - 40}&at=${last}` },
    { name: 'what-if', path: '/what-if' },
    ...pages.map(({ name }: { name: string }) => ({
      name: `area-${name}`,
      path: `/area/${name}${name === 'trace' ? `?trace=${traceOf(24)}` : ''}`,
    })),
  ];
}

/** A window whose page shows the same wherever the instance runs. */
export interface Window {
  readonly page: Page;
  /** Resolves when the page has asked for nothing for a moment. */
  idle(): Promise<void>;
}

/** How long a page asks for nothing until it is taken to be complete, milliseconds. */
const QUIET_MS = 400;

/** @param colorScheme of the person who looks */
export async function windowFor(
  browser: Browser,
  { rig, clock }: Incidents,
  colorScheme: Theme,
): Promise<Window> {
  const context = await browser.newContext({
    ...{ viewport: SIZE, deviceScaleFactor: 1, colorScheme, reducedMotion: 'reduce' },
    ...{ locale: 'en-GB', timezoneId: 'UTC' },
  });
  context.setDefaultTimeout(PATIENCE_MS);
  const [name = '', value = ''] = rig.cookie.split('=');
  await context.addCookies([{ name, value, url: rig.url }]);
  await context.clock.setFixedTime(clock.now());
  let asked = 0;
  let askedAt = 0;
  await context.route(/\/api\/(?!events)/, async (route) => {
    asked += 1;
    try {
      const answer = await route.fetch();
      await route.fulfill({ response: answer, body: withoutChance(await answer.text(), rig.dataDir) });
    } catch {
      // The page is gone, and nobody waits for the answer.
    } finally {
      asked -= 1;
      askedAt = performance.now();
    }
  });
  return {
    page: await context.newPage(),
    idle: () =>
      until('the page asks for nothing', () => asked === 0 && performance.now() - askedAt > QUIET_MS),
  };
}

/** What is another in each run: addresses of upstreams, folders and processes. */
function withoutChance(text: string, dataDir: string): string {
  return text
    .replaceAll(dataDir, '/var/lib/holdfast')
    .replaceAll(/127\.0\.0\.1:\d{4,5}/g, '127.0.0.1:7800')
    .replaceAll(/\bprocess \d+/g, 'process 23351')
    .replaceAll(/ in [\d.]+ m?s\)/g, ' in 12 ms)')
    .replaceAll(/[\d.]+ [GT]B of the disk/g, '60 GB of the disk');
}

/** @returns the picture, PNG with a palette */
export async function takePicture(
  { page, idle }: Window,
  { rig }: Incidents,
  { path }: Picture,
): Promise<Buffer> {
  await page.goto(rig.url + path);
  await page.locator('main > :not(.wait)').first().waitFor();
  await page.locator('.wait').first().waitFor({ state: 'detached' });
  await page.locator('.badge.live, .badge.past').first().waitFor();
  await idle();
  return indexedPng(readPng(await page.screenshot({ animations: 'disabled', caret: 'hide' })));
}
