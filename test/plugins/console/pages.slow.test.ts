// The pages of the console in a real browser: one browser and one runtime for all tests, each with a window of its own.
import { AxeBuilder } from '@axe-core/playwright';
import test from 'ava';
import type { Browser } from 'playwright-core';
import { startChromium } from '../../support/chromium.ts';
import { tempDir } from '../../support/temp.ts';
import { PATIENCE_MS } from '../../support/until.ts';
import { busyDoors, CANARY, doors } from './busy-doors.ts';
import { ConsoleRig } from './console-rig.ts';
import { openWindow, settled } from './windows.ts';

interface Shared {
  readonly rig: ConsoleRig;
  readonly browser: Browser;
  readonly last: number;
}
const shared: { of?: Shared } = {};
const ends: (() => unknown)[] = [];
const scope = { teardown: (end: () => unknown) => void ends.unshift(end), log: () => {} };

test.before(async () => {
  const rig = await ConsoleRig.start(scope as never, { dataDir: tempDir(scope as never), others: [doors()] });
  await rig.login();
  const last = await busyDoors(rig);
  shared.of = { rig, last, browser: await startChromium(scope as never) };
});
test.after.always(async () => {
  for (const end of ends) await end();
});

const of = (): Shared => {
  if (!shared.of) throw new Error('the runtime did not start');
  return shared.of;
};

const open = (
  t: { teardown(end: () => unknown): void },
  path: string,
  options: Parameters<Browser['newContext']>[0] = {},
) => openWindow(t, of(), path, options);

const DOOR = 'test.door/door-1';
const PAGES = [
  '/now',
  '/area/doors',
  '/now?at=40',
  '/stories',
  '/actors',
  `/actors/${DOOR}?value=by`,
  '/stories?text=-nobody&from=20&to=120&top=100',
  '/records/20',
  '/compare?mark=10&at=60',
  '/what-if?alter=20&drop=21&insert=22',
];

for (const colorScheme of ['light', 'dark'] as const) {
  test.serial(
    `[C15] every page is readable for everybody, by keyboard and aloud, in ${colorScheme}`,
    async (t) => {
      t.timeout(240_000);
      const { page, faults } = await open(t, '/stories', { colorScheme });
      for (const path of PAGES) {
        await page.goto(of().rig.url + path);
        await settled(page);
        const { violations } = await new AxeBuilder({ page }).setLegacyMode().analyze();
        t.deepEqual(
          violations.map(
            ({ id, nodes }) => `${path} ${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' | ')}`,
          ),
          [],
        );
      }
      t.deepEqual(faults, []);
    },
  );
}

test.serial('[C15] moving the time bar by keys shows an actor as it was at that record', async (t) => {
  const { rig, last } = of();
  const { page, faults } = await open(t, `/actors/${DOOR}`);
  await page.locator('h1 .state').waitFor();
  const slider = page.getByRole('slider', { name: 'Moment' });
  t.is(await page.locator('.badge.past').count(), 0);
  await slider.press('Home');
  await page.locator('.badge.past').waitFor();
  t.is(new URL(page.url()).searchParams.get('at'), '1');
  for (const seq of [30, 31, 57, last - 3]) {
    await page.goto(`${rig.url}/actors/${DOOR}?at=${seq}`);
    const { state, context } = await rig.ask(`/api/actors/${encodeURIComponent(DOOR)}?at=${seq}`);
    await page.locator('h1 .state', { hasText: state }).waitFor();
    const shown = await page.locator('.card .tree').first().innerText();
    for (const name of Object.keys(context)) t.true(shown.includes(name), `${name} at ${seq}`);
  }
  await slider.press('ArrowLeft');
  await page.waitForURL((url) => url.searchParams.get('at') === String(last - 4));
  await slider.press('End');
  await page.waitForURL((url) => !url.searchParams.has('at'));
  t.deepEqual(faults, []);
});

test.serial(
  '[C15] by the keyboard alone one finds a story, its record, why it came, and the actor that it changed',
  async (t) => {
    const { page, faults } = await open(t, '/stories');
    await page.locator('.story').first().waitFor();
    await page.keyboard.press('/');
    await page.locator('input[name=text]:focus').waitFor();
    await page.keyboard.type('guest-39');
    await page.keyboard.press('Enter');
    await page.waitForURL(/text=guest-39/);
    await page.locator('.story.failed').first().waitFor();
    await page.locator('.story.failed').first().press('Enter');
    await page.waitForURL(/\/stories\/./);
    await page.locator('.record.failed .seq').first().waitFor();
    await page.locator('.record.failed .seq').first().press('Enter');
    await page.waitForURL(/\/records\/\d+/);
    await page.locator('.why li').first().waitFor();
    t.regex(await page.locator('.why').innerText(), /lamp/i);
    await page.keyboard.press('Control+k');
    await page.locator('dialog input:focus').waitFor();
    await page.route(
      (url) => url.searchParams.get('text') === 'door-2',
      () => {}, // an answer that does not come in time
    );
    await page.keyboard.type('door-');
    await page.getByRole('option', { name: /test\.door\/door-2/ }).waitFor();
    await page.keyboard.type('2');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/actors\/test\.door\/door-2/);
    await page.locator('.node.active, .outline .active').first().waitFor();
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor({ state: 'hidden' });
    await page.keyboard.press('l');
    await page.waitForURL((url) => !url.searchParams.has('at'));
    t.deepEqual(faults, []);
  },
);

test.serial('[C15] what happens is shown without a reload, in two windows', async (t) => {
  const { rig } = of();
  const windows = [await open(t, '/stories'), await open(t, '/stories')];
  for (const { page } of windows) await page.locator('.badge.live').waitFor();
  rig.runtime.services.actors.deliver('test.door/late', { type: 'OPEN', by: 'a late guest' });
  for (const { page } of windows)
    await page.locator('.story', { hasText: 'test.door/late' }).first().waitFor();
  t.deepEqual(
    windows.flatMap(({ faults }) => faults),
    [],
  );
});

test.serial('[C15,C9] texts of strangers stay text, and no secret is in a page', async (t) => {
  const { page, faults } = await open(t, `/actors/${DOOR}`);
  await page.locator('.record').first().waitFor();
  const dialogs: string[] = [];
  page.on('dialog', (dialog) => {
    dialogs.push(dialog.message());
    void dialog.dismiss();
  });
  const html = await page.content();
  t.true(html.includes('&lt;img src=x onerror'), 'it is shown');
  t.is(await page.locator('img').count(), 0);
  t.false(html.includes(CANARY));
  t.deepEqual(dialogs, []);
  t.deepEqual(faults, []);
});

test.serial(
  '[C15] a window without a login gets the way to one; from 360 pixels on nothing is cut off',
  async (t) => {
    const { rig, browser } = of();
    const context = await browser.newContext();
    t.teardown(() => context.close());
    const stranger = await context.newPage();
    await stranger.goto(`${rig.url}/actors`);
    t.is(new URL(stranger.url()).pathname, '/login');
    const { page } = await open(t, '/stories', { viewport: { width: 360, height: 700 } });
    await page.locator('.story').first().waitFor();
    for (const path of PAGES) {
      await page.goto(rig.url + path);
      await settled(page);
      const width = await page.locator('.app').evaluate((app) => app.scrollWidth);
      t.true(width <= 360, `${path} is ${width} wide`);
    }
  },
);

test.serial(
  '[C15] the link logs in also a window that shows the login page already; logging out ends that',
  async (t) => {
    const { rig, browser } = of();
    const context = await browser.newContext();
    t.teardown(() => context.close());
    context.setDefaultTimeout(PATIENCE_MS);
    const page = await context.newPage();
    await page.goto(rig.url);
    t.is(new URL(page.url()).pathname, '/login');
    await page.goto(`${rig.url}/login#${await rig.code()}`);
    await page.waitForURL((url) => url.pathname !== '/login');
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.waitForURL((url) => url.pathname === '/login');
    await page.goto(`${rig.url}/stories`);
    t.is(new URL(page.url()).pathname, '/login');
  },
);

test.serial('[C15] a time has its milliseconds behind its seconds', async (t) => {
  const { page } = await open(t, '/records/20', { locale: 'en-US' });
  const time = page.locator('h1 time');
  await time.waitFor();
  t.regex(await time.innerText(), /^\d\d:\d\d:\d\d\.\d{3}$/);
});
