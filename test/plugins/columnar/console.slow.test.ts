// The pages of telemetry in a real browser, over the real engine: one browser and one runtime for all tests.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AxeBuilder } from '@axe-core/playwright';
import test from 'ava';
import type { Browser, Page } from 'playwright-core';
import type { ColumnarDatabase } from '../../../src/core/contracts/columnar-database.ts';
import { collector } from '../../../src/plugins/collector/index.ts';
import { columnar } from '../../../src/plugins/columnar/index.ts';
import { otlp } from '../../../src/plugins/otlp/index.ts';
import { startChromium } from '../../support/chromium.ts';
import { tempDir } from '../../support/temp.ts';
import { PATIENCE_MS, until } from '../../support/until.ts';
import { ConsoleRig } from '../console/console-rig.ts';
import { CANARY, databaseOf, fillShop, HOSTILE, LARGE, TRACE } from './shop.ts';

interface Shared {
  readonly rig: ConsoleRig;
  readonly browser: Browser;
  readonly database: ColumnarDatabase;
  /** The newest record when the shop's telemetry was there. */
  readonly filled: number;
}
const shared: { of?: Shared } = {};
const ends: (() => unknown)[] = [];
const scope = { teardown: (end: () => unknown) => void ends.unshift(end), log: () => {} };

test.before(async () => {
  const given: Parameters<typeof databaseOf>[0] = {};
  const rig = await ConsoleRig.start(scope as never, {
    dataDir: tempDir(scope as never),
    others: [columnar({}), collector(), otlp({ port: 0, grpcPort: 0, lingerMs: 0 }), databaseOf(given)],
  });
  await rig.login();
  const { database } = given;
  if (!database) throw new Error('the engine did not start');
  await fillShop(database, Date.now());
  const http = rig.runtime.surfaces.otlpHttp?.url ?? '';
  const key = readFileSync(join(rig.dataDir, 'secrets', 'otel_ingest_api_key'), 'utf8').trim();
  for (const authorization of [key, 'a-key-that-nobody-knows'])
    await fetch(`${http}/v1/logs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization },
      body: JSON.stringify({
        resourceLogs: [
          {
            scopeLogs: [
              { logRecords: [{ timeUnixNano: `${Date.now()}000000`, body: { stringValue: 'sent' } }] },
            ],
          },
        ],
      }),
    });
  const filled = await rig.durable();
  shared.of = { rig, database, filled, browser: await startChromium(scope as never) };
});
test.after.always(async () => {
  for (const end of ends) await end();
});

const of = (): Shared => {
  if (!shared.of) throw new Error('the runtime did not start');
  return shared.of;
};

async function open(
  t: { teardown(end: () => unknown): void },
  path: string,
  options: Parameters<Browser['newContext']>[0] = {},
): Promise<{ page: Page; faults: string[] }> {
  const { rig, browser } = of();
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  t.teardown(() => context.close());
  context.setDefaultTimeout(PATIENCE_MS);
  const [name = '', value = ''] = rig.cookie.split('=');
  await context.addCookies([{ name, value, url: rig.url }]);
  const page = await context.newPage();
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('dialog', (dialog) => {
    faults.push(dialog.message());
    void dialog.dismiss();
  });
  await show(page, path);
  return { page, faults };
}

/** Goes to a page, and waits until what it asks for is there. */
async function show(page: Page, path: string): Promise<void> {
  await page.goto(of().rig.url + path);
  await page.locator('main .card, main .problem').first().waitFor();
}

const SQL = encodeURIComponent(
  'SELECT toStartOfMinute(Timestamp) AS minute, ServiceName, count() AS lines FROM otel_logs GROUP BY 1, 2 ORDER BY 1',
);
const PAGES = [
  '/area/logs?severity=warning%20or%20worse',
  '/area/traces',
  `/area/trace?trace=${TRACE}`,
  '/area/sql',
  `/area/sql?sql=${SQL}`,
  '/area/sql?sql=DROP%20TABLE%20otel_logs',
  '/area/ingest',
];

test.serial(
  '[C15] pages of telemetry are readable for everybody, in both themes, from 360 pixels on',
  async (t) => {
    t.timeout(240_000);
    const { page, faults } = await open(t, '/area/logs');
    for (const path of PAGES) {
      await page.setViewportSize({ width: 1280, height: 800 });
      await show(page, path);
      if (path.includes(TRACE)) await page.getByRole('button', { name: /where it began/ }).click();
      if (path.startsWith('/area/logs')) await page.getByRole('button', { name: 'more' }).first().click();
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        const axe = new AxeBuilder({ page }).setLegacyMode().include('main');
        // All that the other theme changes is colours.
        const { violations } = await (colorScheme === 'dark'
          ? axe.withRules('color-contrast')
          : axe
        ).analyze();
        t.deepEqual(
          violations.map(
            ({ id, nodes }) => `${path} ${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' | ')}`,
          ),
          [],
          colorScheme,
        );
      }
      await page.setViewportSize({ width: 360, height: 700 });
      const width = await page.locator('.app').evaluate((app) => app.scrollWidth);
      t.true(width <= 360, `${path} is ${width} wide`);
    }
    t.deepEqual(faults, []);
  },
);

test.serial(
  '[C15,C9] names of spans and log lines of strangers stay text, and no secret is on a page',
  async (t) => {
    const { page, faults } = await open(t, `/area/logs?text=${encodeURIComponent('onerror')}`);
    await page.getByText(HOSTILE, { exact: true }).first().waitFor();
    await page.getByRole('button', { name: 'more' }).first().click();
    await page.locator('.row-facts').first().waitFor();
    const first = await page.content();
    await show(page, `/area/trace?trace=${TRACE}`);
    await page.getByRole('treeitem', { name: HOSTILE }).click();
    await page.getByRole('heading', { name: HOSTILE }).waitFor();
    for (const html of [first, await page.content()]) {
      t.true(html.includes('&lt;img src=x onerror'));
      t.false(html.includes(CANARY));
    }
    t.is(await page.locator('img').count(), 0);
    for (const path of PAGES.filter((one) => !one.includes('DROP'))) {
      const { text } = await of().rig.send(path.replace('/area/', '/api/pages/'));
      t.false(text.includes(CANARY), path);
    }
    t.deepEqual(faults, []);
  },
);

test.serial(
  '[C15] a person searches log lines, and by the keyboard finds the span where the trace failed',
  async (t) => {
    const { page, faults } = await open(t, '/area/logs');
    await page.keyboard.press('/');
    await page.locator('#input-text:focus').waitFor();
    await page.keyboard.type('within 2 s');
    await page.keyboard.press('Enter');
    await page.waitForURL((url) => url.searchParams.get('text') === 'within 2 s');
    await page.locator('main h2', { hasText: '3 newest log lines' }).waitFor();
    await page.locator('#input-text:focus').waitFor();
    await page.getByRole('link', { name: 'trace', exact: true }).first().press('Enter');
    await page.waitForURL((url) => url.searchParams.get('trace') === TRACE);
    const tree = page.getByRole('tree');
    await tree.waitFor();
    await page.keyboard.press('n');
    const chosen = page.locator('.span[aria-selected=true]');
    t.regex(await chosen.innerText(), /POST \/cart/);
    await page.keyboard.press('n');
    await page.getByRole('heading', { name: /stock: reserve/ }).waitFor();
    t.regex(
      await page.locator('.span-detail').innerText(),
      /deadline exceeded[\s\S]*TimeoutError[\s\S]*did not answer/,
    );
    await tree.focus();
    await page.keyboard.press('ArrowLeft');
    t.is(await chosen.getAttribute('aria-expanded'), 'false');
    t.is(await page.getByRole('treeitem').count(), 4, 'its parts are folded away');
    t.regex(await chosen.innerText(), /1 failed within/);
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('z');
    await page.getByRole('button', { name: 'Whole trace', disabled: false }).waitFor();
    await page.keyboard.press('0');
    await page.getByRole('button', { name: 'Whole trace', disabled: true }).waitFor();
    t.deepEqual(faults, []);
  },
);

test.serial(
  '[C15] of a trace of 2,000 spans only what is seen is in the page, and each can be reached',
  async (t) => {
    const { page, faults } = await open(t, `/area/trace?trace=${LARGE}`);
    const tree = page.getByRole('tree');
    await tree.waitFor();
    const most = () => page.getByRole('treeitem').count();
    t.true((await most()) < 80);
    await page.getByRole('button', { name: /1 span failed/ }).click();
    await page.getByRole('heading', { name: /step 1999/ }).waitFor();
    t.true((await most()) < 80);
    await tree.focus();
    await page.keyboard.press('Home');
    await page.getByRole('heading', { name: /step 0/ }).waitFor();
    const began = performance.now();
    for (let key = 0; key < 40; key += 1) await page.keyboard.press('PageDown');
    await page.keyboard.press('End');
    await page.locator('.span[aria-selected=true]').waitFor();
    t.log(`42 keys over 2,000 spans in ${Math.round(performance.now() - began)} ms`);
    t.true((await most()) < 80);
    await page.getByRole('button', { name: 'Fold all' }).click();
    await page.locator('.span', { hasText: '1 failed within' }).first().waitFor();
    t.true((await most()) < 20);
    t.deepEqual(faults, []);
  },
);

test.serial(
  '[C15] a chart says its values by the arrow keys, and the address keeps a statement',
  async (t) => {
    const { page, faults } = await open(t, '/area/sql');
    await page
      .locator('#input-sql')
      .fill('SELECT ServiceName, count() AS lines FROM otel_logs GROUP BY 1 ORDER BY 2 DESC, 1');
    await page.locator('#input-sql').press('Control+Enter');
    await page.locator('.bars li').first().waitFor();
    t.regex(await page.locator('.bars li').first().innerText(), /shop|gateway/);
    await show(page, `/area/sql?sql=${SQL}`);
    await page.locator('.plot').focus();
    await page.keyboard.press('End');
    await page.keyboard.press('ArrowLeft'); // the last minute has just begun, and may have no line of the shop
    const legend = page.locator('.series .legend');
    await legend.getByText(/\d\d:\d\d/).waitFor();
    t.regex(await legend.innerText(), /shop\s+\d/);
    await page.locator('#input-sql').fill('DROP TABLE otel_logs');
    await page.locator('#input-sql').press('Control+Enter');
    await page.getByText('HF_COLUMNAR_REFUSED').waitFor();
    t.is(await page.locator('.series').count(), 0, 'what was found before does not stand below the error');
    await page.getByRole('navigation').getByRole('link', { name: 'Now' }).click();
    await page.locator('main .card').first().waitFor();
    t.deepEqual(faults, []);
  },
);

test.serial('[C15] moving the console to a moment leaves out telemetry that came later', async (t) => {
  const { rig, database, filled } = of();
  const { time } = await rig.ask(`/api/pages/logs?at=${filled}`);
  const late = Math.max(Date.now(), time + 1);
  await database.insert('otel_logs', [
    { Timestamp: new Date(late).toISOString(), Body: 'after the moment', ServiceName: 'shop' },
  ]);
  await until('the clock is past that line', () => Date.now() > late);
  const { page, faults } = await open(t, '/area/logs?text=after%20the%20moment');
  await page.locator('td', { hasText: 'after the moment' }).waitFor();
  await show(page, `/area/logs?text=after%20the%20moment&at=${filled}`);
  await page.getByRole('heading', { name: 'No log line of this time matches' }).waitFor();
  await show(
    page,
    `/area/sql?at=${filled}&sql=${encodeURIComponent("SELECT count() AS lines FROM otel_logs WHERE Body = 'after the moment'")}`,
  );
  t.is(await page.locator('td.numeric').innerText(), '0');
  t.deepEqual(faults, []);
});

test.serial(
  '[C15,O9] ingest shows the spool, what was taken and refused, keys by fingerprint, and its past by the log',
  async (t) => {
    const { rig, filled } = of();
    const key = readFileSync(join(rig.dataDir, 'secrets', 'otel_ingest_api_key'), 'utf8').trim();
    const now = await rig.send('/api/pages/ingest');
    t.false(now.text.includes(key));
    const titles = (sections: any[]) => sections.map(({ title }) => title);
    t.deepEqual(titles(now.body.sections), [
      'Receiver',
      'Keys, config and connection',
      'Spool',
      'Taken since the start',
      'Refused requests since the start, by reason',
      'Ingest keys',
      'Producers',
      'Rows in the database over time',
    ]);
    const section = (title: string) => now.body.sections.find((one: any) => one.title === title);
    t.like(section('Taken since the start').rows[0].cells, { signal: 'logs', taken: 1, refused: 0 });
    t.is(section('Refused requests since the start, by reason').bars[0].value, 1);
    t.like(section('Receiver').facts, [
      { label: 'Receiver', status: 'ok' },
      { label: 'Database', status: 'ok' },
    ]);
    t.is(section('Ingest keys').rows.length, 1);
    const then = await rig.ask(`/api/pages/ingest?at=${filled}`);
    t.deepEqual(titles(then.sections), [
      'Receiver',
      'Keys, config and connection',
      'Rows in the database over time',
    ]);
  },
);
