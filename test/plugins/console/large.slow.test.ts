// A log of a million records: one runtime and one browser for all tests.
import test, { type ExecutionContext } from 'ava';
import type { Browser, CDPSession, Page } from 'playwright-core';
import { z } from 'zod';
import { definePlugin } from '../../../src/core/host/plugin/definition.ts';
import { SqliteReader } from '../../../src/core/kernel/log/sqlite-reader.ts';
import { verifyLog } from '../../../src/core/kernel/replay/verify-log.ts';
import { startChromium } from '../../support/chromium.ts';
import { door } from '../../support/door.ts';
import { LONG_STORY, writeLargeLog } from '../../support/large-log.ts';
import { tempDir } from '../../support/temp.ts';
import { watchTurns } from '../../support/turns.ts';
import { PATIENCE_MS, until } from '../../support/until.ts';
import { ConsoleRig } from './console-rig.ts';

const RECORDS = 1_000_000;
const DOORS = 400;
/** One visit of four records in so many fails. */
const FAIL_EVERY = 50;
const LONGEST = 10_000;
/** Longer than the event loop may be held up at a time, milliseconds of this thread's work. */
const MOST_MS = 60;
/** More rows than ever stand in the page at a time. */
const MOST_ROWS = 200;
const MIB = 2 ** 20;
const DOOR = 'test.door/door-7';

const doors = definePlugin({
  name: 'test',
  options: z.strictObject({}),
  register(context) {
    context.actor(door);
    for (const type of ['bell.ring', 'lamp.on'])
      context.effect(type, () => undefined, { onRecovery: 'fail' });
  },
});

interface Shared {
  readonly rig: ConsoleRig;
  readonly browser: Browser;
  readonly last: number;
}
const shared: { of?: Shared } = {};
const ends: (() => unknown)[] = [];
const scope = { teardown: (end: () => unknown) => void ends.unshift(end), log: () => {} };

test.before(async (t) => {
  t.timeout(600_000);
  const dataDir = tempDir(scope);
  const facts = { doors: DOORS, end: Date.now() - 60_000, failEvery: FAIL_EVERY, longest: LONGEST };
  writeLargeLog(dataDir, { records: RECORDS, ...facts, pageBytes: 16_384 });
  const rig = await ConsoleRig.start(scope, { dataDir, others: [doors()] });
  await rig.login();
  shared.of = { rig, last: await rig.durable(), browser: await startChromium(scope) };
});
test.after.always(async () => {
  for (const end of ends) await end();
});

const of = (): Shared => {
  if (!shared.of) throw new Error('the runtime did not start');
  return shared.of;
};

async function open(t: ExecutionContext, path: string): Promise<Page> {
  t.timeout(600_000);
  const { rig, browser } = of();
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  t.teardown(() => context.close());
  context.setDefaultTimeout(PATIENCE_MS);
  const [name = '', value = ''] = rig.cookie.split('=');
  await context.addCookies([{ name, value, url: rig.url }]);
  const page = await context.newPage();
  await page.goto(rig.url + path);
  return page;
}

test('the large log is one that its machine decides', (t) => {
  const dir = tempDir(t);
  writeLargeLog(dir, { records: 2_000, doors: 30, end: 1e12, failEvery: 20, longest: 400 });
  const log = new SqliteReader(dir);
  t.teardown(() => log.close());
  const { records, divergence } = verifyLog(log, new Map([[door.type, door]]));
  t.is(records, 2_000);
  t.is(divergence, undefined);
});

test.serial('[C15] questions about a million records hold up nothing else', async (t) => {
  t.timeout(600_000);
  const { rig, last } = of();
  await rig.ask('/api/actors?limit=1'); // loads everything
  const measured: Record<string, string> = {};
  const middle = Math.floor(last / 2);
  for (const path of [
    '/api/overview',
    `/api/overview?at=${middle}`,
    '/api/records?text=nobody%20of%20this%20name',
    '/api/records?failed=true',
    '/api/stories',
    '/api/stories?text=guest-7',
    `/api/stories/${LONG_STORY}`,
    '/api/density',
    `/api/actors?at=${middle + 50}`,
    `/api/actors?at=${middle + 51}`,
    `/api/actors/${encodeURIComponent(DOOR)}?at=${last - 20}`,
    `/api/compare?from=${middle - 300_000}&to=${middle + 300_000}`,
    `/api/records/${middle}`,
  ]) {
    const [turns, began] = [watchTurns(), performance.now()];
    await rig.ask(path);
    const stall = turns.longest();
    measured[path] = `${stall} ms at a time, ${Math.round(performance.now() - began)} ms in all`;
    t.true(stall < MOST_MS, `${path}: ${stall} ms`);
  }
  const part = { from: middle + 200_000, to: middle + 250_000 };
  const failed = new Set<number>();
  for (let before = ''; ; ) {
    const query = `failed=true&limit=500&from=${part.from}&to=${part.to}${before}`;
    const { records, next } = await rig.ask(`/api/records?${query}`);
    for (const { seq } of records) failed.add(seq);
    if (next === undefined) break;
    before = `&before=${next}`;
  }
  t.is(failed.size, 50_000 / 4 / FAIL_EVERY, 'a search that goes on finds every record');
  const turns = watchTurns();
  const body = { drop: [1_000], until: 40_000 };
  const { status, body: answer } = await rig.send('/api/what-if', { method: 'POST', body });
  t.is(status, 200);
  t.true(answer.decidedAgain > 10_000);
  t.true(turns.longest() < MOST_MS);
  t.log(JSON.stringify(measured, null, 1));
});

test.serial(
  '[C15] stories of a million records scroll with few rows in the page, so many at once',
  async (t) => {
    const page = await open(t, '/stories');
    const list = page.locator('.rows');
    await page.locator('.story').first().waitFor();
    const newest = await page.locator('.story').first().getAttribute('href');
    let most = 0;
    let height = 0;
    const earlier = page.getByRole('button', { name: 'Earlier stories' });
    for (let isEnd = false; !isEnd; isEnd = (await earlier.count()) > 0) {
      most = Math.max(most, await page.locator('.row').count());
      height = await list.evaluate((element) => element.scrollHeight);
      await list.evaluate((element) => element.scrollTo(0, element.scrollHeight));
      const grown = `document.querySelector('.rows').scrollHeight > ${height}`;
      await until('more are listed, or no more than these', async () => {
        return (await page.evaluate<boolean>(grown)) || (await earlier.count()) > 0;
      });
    }
    t.true(most > 10 && most <= MOST_ROWS, `${most} rows`);
    t.true(height > 2_900 * 44, 'some thousand stories were listed');
    const top = () => page.locator('.story').first().getAttribute('href', { timeout: 1_000 });
    await earlier.click();
    await until('the list goes on behind them', async () => {
      return (await earlier.count()) === 0 && (await top().catch(() => newest)) !== newest;
    });
    t.true((await page.locator('.row').count()) <= MOST_ROWS);
    await page.keyboard.press('l');
    await page.locator(`.story[href="${newest}"]`).waitFor();
  },
);

test.serial(
  '[C15] the time bar shows the beginning, the middle and the end of a million records',
  async (t) => {
    const { rig, last } = of();
    const page = await open(t, `/actors/${DOOR}`);
    await page.locator('h1 .state').waitFor();
    const bar = page.getByRole('slider', { name: 'Moment' });
    await bar.locator('canvas[aria-label*=" over "]').waitFor(); // it knows of the whole log
    for (const [share, low, high] of [
      [0.02, 0, 0.1],
      [0.5, 0.4, 0.6],
      [0.97, 0.9, 1],
    ] as const) {
      // Beside the badge of a past moment it is narrower.
      const { width = 0, height = 0 } = (await bar.boundingBox()) ?? {};
      await bar.click({ position: { x: share * width, y: height / 2 } });
      await page.waitForURL((url) => {
        const seq = Number(url.searchParams.get('at') ?? 0);
        return seq > low * last && seq < high * last;
      });
      const seq = Number(new URL(page.url()).searchParams.get('at'));
      // With its time the badge is wider, and the bar narrower: the next click is measured after that.
      await page
        .locator('.badge.past', { hasText: String(seq) })
        .locator('time')
        .waitFor();
      const {
        state,
        context,
        last: newest,
      } = await rig.ask(`/api/actors/${encodeURIComponent(DOOR)}?at=${seq}`);
      t.true(newest.seq <= seq);
      await page.locator('h1 .state', { hasText: state }).waitFor();
      await page.locator('.tree', { hasText: context.by }).first().waitFor();
    }
    await bar.press('Home');
    await page.waitForURL((url) => url.searchParams.get('at') === '1');
    await bar.press('End');
    await page.waitForURL((url) => !url.searchParams.has('at'));
  },
);

test.serial('[C15] a filter over a million records shows what it has, and can be taken back', async (t) => {
  const page = await open(t, '/stories?text=nobody-of-this-name');
  await page.getByText('Searching earlier records').waitFor();
  await page.goto(`${of().rig.url}/stories?failed=true`);
  await page.locator('.story.failed').first().waitFor();
  t.is(await page.locator('.story:not(.failed)').count(), 0);
  await page.goto(`${of().rig.url}/stories`);
  await page.locator('.story:not(.failed)').first().waitFor();
});

test.serial('[C15] a story of 10,000 records is listed and drawn whole', async (t) => {
  const page = await open(t, `/stories/${LONG_STORY}`);
  await page.locator('h1', { hasText: /10.?000 records/ }).waitFor();
  t.true((await page.locator('.row').count()) <= MOST_ROWS);
  const lanes = page.locator('.lanes');
  const picture = lanes.getByRole('img');
  t.regex((await picture.getAttribute('aria-label')) ?? '', /40 actors, 10000 records, 50 failed/);
  const drawn = "document.querySelector('.lanes canvas').toDataURL()";
  const whole = JSON.stringify(await page.evaluate(drawn));
  await lanes.press('w');
  await until('it is drawn larger', () => page.evaluate<boolean>(`${drawn} !== ${whole}`));
  await lanes.press('f');
  await until('it is drawn whole again', () => page.evaluate<boolean>(`${drawn} === ${whole}`));
  await picture.click({ position: { x: 600, y: 33 } });
  await page.waitForURL((url) => url.searchParams.has('at'));
  const { row } = await of().rig.ask(`/api/records/${new URL(page.url()).searchParams.get('at')}`);
  t.is(row.correlation, LONG_STORY);
});

/** What the page holds once everything that can be freed is. */
async function held(devtools: CDPSession): Promise<{ nodes: number; listeners: number; heap: number }> {
  await devtools.send('HeapProfiler.collectGarbage');
  const { nodes, jsEventListeners } = await devtools.send('Memory.getDOMCounters');
  const { usedSize } = await devtools.send('Runtime.getHeapUsage');
  return { nodes, listeners: jsEventListeners, heap: usedSize };
}

test.serial('[C15] nothing of the page grows with what one looks at', async (t) => {
  const { last } = of();
  const page = await open(t, '/stories');
  const devtools = await page.context().newCDPSession(page);
  let moment = 17;
  const travel = async () => {
    for (let round = 0; round < 16; round += 1) {
      moment = (moment * 7_919) % last;
      const to = `${['/stories', '/actors', `/actors/${DOOR}`, '/now'][round % 4]}?at=${moment + 1}`;
      await page.evaluate(
        `history.pushState(null, '', '${to}'); dispatchEvent(new PopStateEvent('popstate'))`,
      );
      await page.locator('.badge.past', { hasText: String(moment + 1) }).waitFor();
      await until('the page waits for nothing', () =>
        page.evaluate<boolean>("document.querySelectorAll('.wait').length === 0"),
      );
    }
    return held(devtools);
  };
  const before = await travel();
  await travel();
  const after = await travel();
  t.true(after.nodes < before.nodes + 600, `${before.nodes} nodes, then ${after.nodes}`);
  t.true(after.listeners < before.listeners + 60, `${before.listeners} listeners, then ${after.listeners}`);
  t.true(after.heap < before.heap + 20 * MIB, `${before.heap} bytes, then ${after.heap}`);
  t.log(JSON.stringify({ before, after }));
});
