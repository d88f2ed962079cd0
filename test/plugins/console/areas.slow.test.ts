// The pages of plugins and their actions in a real browser: one runtime with every plugin that brings any, one browser.
import { AxeBuilder } from '@axe-core/playwright';
import test, { type ExecutionContext } from 'ava';
import type { Page } from 'playwright-core';
import { alertRaised } from '../../../src/core/contracts/alerts.ts';
import { alerts } from '../../../src/plugins/alerts/index.ts';
import { columnar } from '../../../src/plugins/columnar/index.ts';
import { consolePlugin } from '../../../src/plugins/console/index.ts';
import { jobs } from '../../../src/plugins/jobs/index.ts';
import { memory } from '../../../src/plugins/memory/index.ts';
import { reconciler } from '../../../src/plugins/reconciler/index.ts';
import { restore } from '../../../src/plugins/restore/index.ts';
import { router } from '../../../src/plugins/router/index.ts';
import { uptimeMonitor } from '../../../src/plugins/uptime-monitor/index.ts';
import { watchdog } from '../../../src/plugins/watchdog/index.ts';
import { startChromium } from '../../support/chromium.ts';
import { PATIENCE_MS } from '../../support/until.ts';
import { ApprovalRig, wipe } from '../gateway/approval-rig.ts';
import { FieldStore } from '../restore/field-store.ts';
import { ConsoleRig } from './console-rig.ts';

/** Pages that have every form of section between them: the colours of one theme are those of these. */
const EVERY_FORM = ['router', 'router-versions', 'alerts', 'monitors', 'drills'];
const CANARY = 'canary-77ac0e15';

async function start(t: ExecutionContext) {
  const [live, scratch] = await Promise.all([FieldStore.start(t), FieldStore.start(t)]);
  live.fill(6);
  live.collections.get('memory')?.points.set(6, { id: 6, vector: [1, 0, 0], payload: { text: CANARY } });
  const on = await ApprovalRig.open(t, {
    others: [
      consolePlugin({ port: 0 }),
      router({ port: 0, windowMs: 3_600_000 }),
      reconciler(),
      alerts({ rules: [] }),
      uptimeMonitor({ port: 0, monitors: [{ name: 'bell', interval: 3_600 }] }),
      jobs(),
      columnar({ url: 'http://127.0.0.1:9' }),
      watchdog({ signals: ['otel_logs'], cron: '0 0 29 2 *', monitor: 'bell' }),
      memory({ url: live.url, seeds: { ids: [1] } }),
      restore({ scratchUrl: scratch.url, pollMs: 5 }),
    ],
  });
  const rig = new ConsoleRig(on.rig.runtime, on.rig.dataDir, []);
  t.teardown(() => rig.dispatcher.destroy());
  await rig.login();
  const { bus, actors, clock } = rig.runtime.services;
  bus.publish(alertRaised, {
    ...{ name: 'store.full', severity: 'critical', text: 'The store is full.', labels: { state: 'firing' } },
  });
  for (const [index, up] of [true, false, true].entries()) {
    const beat = { type: 'BEAT', at: clock.now() - 60_000 * (3 - index), up, msg: 'OK', ping: 10 * index };
    actors.deliver('uptime-monitor.monitor/bell', beat);
  }
  const { url = '' } = rig.runtime.surfaces.router ?? {};
  const active: any = await (await fetch(`${url}/v1/config/active`)).json();
  active.domain = 'home.example';
  active.pppoe = { isp: { password: CANARY } };
  const set = await fetch(`${url}/v1/config/set`, {
    ...{ method: 'POST', headers: { 'content-type': 'application/json' } },
    body: JSON.stringify({ ...active, transactionOp: 'append', transID: 'kitchen' }),
  });
  t.is(set.status, 200);
  const call = wipe(await on.connect(t));
  const [waiting] = await on.waiting(t);
  await rig.durable();
  return { rig, call, waiting: waiting?.id ?? '' };
}

/** Waits until all that the page asks for is there. */
async function settled(page: Page): Promise<void> {
  await page.locator('main section.card, main .empty, main .problem').first().waitFor();
  await page.locator('.wait').first().waitFor({ state: 'detached' });
}

/** What is pending, what fires and who was notified stand on one screen of a laptop. */
async function nowIsSeenAtOnce(t: ExecutionContext, rig: ConsoleRig, page: Page): Promise<void> {
  await page.setViewportSize({ width: 1_440, height: 900 });
  await page.goto(`${rig.url}/now`);
  await page.locator('.pending .countdown').waitFor();
  t.regex(await page.locator('.pending').innerText(), /kitchen.*is pending.*in \d+ (s|min)/s);
  const wrong = page.locator('.wrong li', { hasText: 'store.full' });
  await wrong.waitFor();
  t.regex(await wrong.innerText(), /The store is full\..*nobody/s);
  t.regex(await page.locator('.cards').innerText(), /Surfaces: \d+ listen.*Plugins: \d+ of \d+ started/s);
  const [whole = 1, seen = 0] = await page
    .locator('main')
    .evaluate((main) => [main.scrollHeight, main.clientHeight]);
  t.true(whole <= seen, `${whole} of ${seen} pixels`);
}

test('[C15,C9] pages of plugins are readable for everybody, from 360 px on, and each action works from its page', async (t) => {
  t.timeout(300_000);
  const { rig, call, waiting } = await start(t);
  const browser = await startChromium(t);
  const [name = '', value = ''] = rig.cookie.split('=');
  const { pages } = await rig.ask('/api/pages');
  const faults: string[] = [];
  const windowOf = async (colorScheme: 'light' | 'dark', width: number) => {
    const context = await browser.newContext({ colorScheme, viewport: { width, height: 800 } });
    context.setDefaultTimeout(PATIENCE_MS);
    await context.addCookies([{ name, value, url: rig.url }]);
    const page = await context.newPage();
    page.on('pageerror', (error) => faults.push(error.message));
    return page;
  };
  for (const [colorScheme, width] of [
    ['light', 1_280],
    ['dark', 360],
  ] as const) {
    const page = await windowOf(colorScheme, width);
    const isLooked = (one: any) =>
      colorScheme === 'light' ? EVERY_FORM.includes(one.name) : one.area !== 'Telemetry stack';
    for (const one of pages.filter(isLooked)) {
      await page.goto(`${rig.url}/area/${one.name}`);
      await settled(page);
      const { violations } = await new AxeBuilder({ page }).setLegacyMode().analyze();
      const found = violations.map(
        ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' | ')}`,
      );
      t.deepEqual(found, [], `${one.name} in ${colorScheme}`);
      const { width: drawn = 0 } = (await page.locator('body').boundingBox()) ?? {};
      t.true(drawn <= width, `${one.name} is ${drawn} px wide`);
      t.false((await page.content()).includes(CANARY), one.name);
    }
    if (colorScheme === 'light') await nowIsSeenAtOnce(t, rig, page);
    await page.context().close();
  }

  const page = await windowOf('light', 1_280);
  /** Does what a button of a page offers: it is confirmed in words first. @returns what the page says then */
  const act = async (path: string, title: string, fields: Readonly<Record<string, string>> = {}) => {
    await page.goto(rig.url + path);
    await settled(page);
    await page.getByRole('button', { name: `${title} …` }).click();
    const form = page.locator('form.asked');
    t.regex(await form.innerText(), /\w+\. \w/, `${title} says what will happen`);
    for (const [label, text] of Object.entries(fields)) {
      const field = form.getByLabel(label, { exact: true });
      if ((await field.evaluate(({ tagName }) => tagName)) === 'SELECT') await field.selectOption(text);
      else await field.fill(text);
    }
    await form.getByRole('button', { name: title, exact: true }).click();
    const said = form.locator('output, .problem').first();
    await said.waitFor();
    return said.innerText();
  };
  const sees = (text: string | RegExp) => page.locator('main').getByText(text).first().waitFor();

  await page.goto(`${rig.url}/area/router`);
  await sees(/kitchen, by /);
  await sees(/until .* in 5\d min/);
  t.regex(await act('/area/router', 'Commit the pending change'), /^Done/);
  await sees('commits kitchen');
  t.regex(await act('/area/router', 'Revert the pending change'), /HF_ROUTER_TRANSACTION_NONE|no pending/i);
  t.regex(await act('/area/legs', 'Resync all legs'), /^Done/);
  await sees('requested');
  const ack = { Alert: 'store.full', 'For how long, e.g. 2h': '2h', Note: 'is being cleaned' };
  t.regex(await act('/area/alerts', 'Acknowledge an alert', ack), /^Done/);
  await sees('after the time of ada');
  const silence = { 'Name, * stands for anything': 'lamp.*', 'For how long, e.g. 2h': '1h' };
  t.regex(await act('/area/alerts', 'Silence alerts', silence), /^Done/);
  await sees('lamp.*');
  await page.goto(`${rig.url}/area/routes`);
  await sees('pages wipe');
  const decision = { 'Id of the request': waiting, Why: 'it may go' };
  t.regex(await act('/area/routes', 'Approve a call', decision), /^Done/);
  t.is(await call, 'wiped home');
  t.regex(await act('/area/gateway-calls', 'Deny a call', decision), /approved|HF_GATEWAY/);
  t.regex(await act('/area/routes', 'Roll a route back', { Route: 'none' }), /HF_GATEWAY_ROLLBACK|none/);
  t.regex(await act('/area/drills', 'Start a restore drill', { Drill: 'a' }), /^Done/);
  await sees('its backup is proven');

  await page.goto(`${rig.url}/area/alerts?at=5`);
  await settled(page);
  t.true(
    await page.getByRole('button', { name: 'Silence alerts …' }).isDisabled(),
    'nothing is done in the past',
  );
  await page
    .getByRole('navigation', { name: 'Uptime and alerts' })
    .getByRole('link', { name: 'Monitors' })
    .click();
  await page.waitForURL(/\/area\/monitors\?at=5/);
  t.deepEqual(faults, []);
});
