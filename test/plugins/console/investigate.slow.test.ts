// How somebody finds out what happened, in a real browser: one browser and one runtime for all promises.
import test from 'ava';
import type { Browser, Page } from 'playwright-core';
import { startChromium } from '../../support/chromium.ts';
import { tempDir } from '../../support/temp.ts';
import { until } from '../../support/until.ts';
import { busyDoors, doors } from './busy-doors.ts';
import { ConsoleRig } from './console-rig.ts';
import { openWindow } from './windows.ts';

interface Shared {
  readonly rig: ConsoleRig;
  readonly browser: Browser;
  readonly last: number;
}
const shared: { of?: Shared } = {};
const ends: (() => unknown)[] = [];
const scope = { teardown: (end: () => unknown) => void ends.unshift(end), log: () => {} };
const DOOR = 'test.door/door-1';

test.before(async () => {
  const rig = await ConsoleRig.start(scope, { dataDir: tempDir(scope), others: [doors()] });
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

const param = (page: Page, name: string) => new URL(page.url()).searchParams.get(name);
const said = (page: Page, text: RegExp) => page.locator('.notice', { hasText: text }).waitFor();

test.serial(
  '[C15] filters leave out, take expressions and outcomes, and are kept as views by name',
  async (t) => {
    const { page, context, faults } = await openWindow(t, of(), '/stories');
    const rows = page.locator('.story');
    await rows.first().waitFor();
    await page.keyboard.press('/');
    await page.locator('input[name=text]:focus').waitFor();
    await page.keyboard.type('/guest-3[0-9]/ ');
    // What comes in while somebody types takes nothing from the field.
    of().rig.runtime.services.actors.deliver('test.door/door-in', { type: 'OPEN', by: 'a guest meanwhile' });
    await page.locator('.story', { hasText: 'door-in' }).first().waitFor();
    await page.keyboard.type('-guest-35');
    await page.keyboard.press('Enter');
    await page.waitForURL(/text=/);
    await page.locator('.story', { hasText: 'guest-36' }).first().waitFor();
    await page.locator('.story').nth(12).waitFor({ state: 'detached' });
    const texts = (await rows.allInnerTexts()).join('\n');
    t.false(/guest-35|guest-2\d/.test(texts), texts);
    await page.getByPlaceholder('keep this view as').fill('thirties');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'thirties', exact: true }).waitFor();
    await page.getByRole('button', { name: 'Clear' }).click();
    await page.waitForURL((url) => !url.searchParams.has('text'));
    await page.getByLabel('outcome').selectOption('ignored');
    await page.waitForURL(/outcome=ignored/);

    // Another window of the same browser has the view in its palette.
    const other = await context.newPage();
    await other.goto(`${of().rig.url}/now`);
    await other.locator('.card').first().waitFor();
    await other.keyboard.press('Control+k');
    await other.locator('dialog input:focus').waitFor();
    await other.keyboard.type('thirt');
    await other.getByRole('option', { name: /thirties/ }).click();
    await other.waitForURL((url) => url.pathname === '/stories' && url.searchParams.has('text'));
    await other.locator('input[name=text]').fill('/(a/');
    await other.keyboard.press('Enter');
    await other.getByRole('alert').first().waitFor();
    t.regex(await other.getByRole('alert').first().innerText(), /HF_CONSOLE_REQUEST/);
    t.deepEqual(faults, []);
  },
);

test.serial('[C15] whoever scrolls away looks at what stands still, until l follows again', async (t) => {
  const { rig } = of();
  const { page, faults } = await openWindow(t, of(), '/stories?actor=door*');
  await page.locator('.badge.live').waitFor();
  await page.locator('.story').nth(8).waitFor();
  const list = page.locator('section.rows');
  const rowOnTop = () =>
    page.evaluate<string | undefined>(`(() => {
      const { left, top } = document.querySelector('section.rows').getBoundingClientRect();
      return document.elementFromPoint(left + 40, top + 12)?.closest('.story')?.getAttribute('href');
    })()`);
  await list.evaluate((box) => {
    box.scrollTop = 44 * 12;
  });
  await page.getByRole('status').filter({ hasText: 'paused' }).waitFor();
  await page.waitForURL(/top=\d+/);
  const before = (await rowOnTop())?.replace(/\?.*/, '');
  for (const name of ['x', 'y', 'z'])
    rig.runtime.services.actors.deliver(`test.door/door-${name}`, { type: 'OPEN', by: 'the late one' });
  await rig.durable();
  await page
    .getByRole('status')
    .filter({ hasText: /paused, [1-9]/ })
    .waitFor();
  t.is((await rowOnTop())?.replace(/\?.*/, ''), before);
  t.is(await page.locator('.story', { hasText: 'door-z' }).count(), 0);

  // Without the filter the same story is on top; so is it for whoever gets the link.
  await page.getByRole('button', { name: 'Clear' }).click();
  await page.waitForURL((url) => !url.searchParams.has('actor'));
  await page.locator('.rows .row').first().locator(`a[href^="${before}"]`).waitFor();
  t.is((await rowOnTop())?.replace(/\?.*/, ''), before);
  await page.reload();
  await page.locator(`.rows .story[href^="${before}"]`).waitFor();
  t.is((await rowOnTop())?.replace(/\?.*/, ''), before);
  await page.keyboard.press('l');
  await page.waitForURL((url) => !url.searchParams.has('top'));
  await page.locator('.story', { hasText: 'door-z' }).first().waitFor();
  t.is(await page.getByRole('status').filter({ hasText: 'paused' }).count(), 0);
  t.deepEqual(faults, []);
});

test.serial(
  '[C15] a part of the log is zoomed by mouse and keys, stands in the address, and f shows all',
  async (t) => {
    const { page, faults } = await openWindow(t, of(), '/stories');
    await page.locator('.story').first().waitFor();
    const box = await page.locator('.brush canvas').boundingBox();
    if (!box) throw new Error('there is nothing to draw over');
    await page.mouse.move(box.x, box.y + 8);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.5, box.y + 8, { steps: 4 });
    await page.mouse.up();
    await page.waitForURL(/to=\d+/);
    const to = Number(param(page, 'to'));
    await page.locator('.zoom-text', { hasText: `1 to ${to}` }).waitFor();
    const stories = await of().rig.askAll(`/api/stories?to=${to}&limit=200`);
    await page.locator(`.story[href*="${stories[0].id}"]`).first().waitFor();
    await page.getByRole('slider', { name: 'Zoom to' }).press('End');
    await page.waitForURL((url) => !url.searchParams.has('to'));
    await page.getByRole('slider', { name: 'Zoom from' }).press('ArrowRight');
    await page.waitForURL(/from=\d+/);
    t.true(Number(param(page, 'from')) > 1);
    await page.keyboard.press('g');
    await page.keyboard.press('a');
    await page.waitForURL((url) => url.pathname === '/actors' && url.searchParams.has('from'));
    await page.keyboard.press('f');
    await page.waitForURL((url) => !url.searchParams.has('from'));
    t.is(await page.locator('.zoom-text').count(), 0);
    t.deepEqual(faults, []);
  },
);

test.serial(
  '[C15] keys lead from a value to the records that changed it, to why, and to a comparison',
  async (t) => {
    const { rig, last } = of();
    const [opening] = await rig.askAll(`/api/records?event=OPEN&text=guest-17&at=${last}`);
    const asked = `/api/changes?actor=${encodeURIComponent(DOOR)}&path=by&limit=1`;
    const { seq: earlier } = (await rig.ask(`${asked}&before=${opening.seq}`)).changes[0];
    const { seq: later } = (await rig.ask(`${asked}&after=${opening.seq}`)).changes[0];
    const { page, context, faults } = await openWindow(t, of(), `/actors/${DOOR}?at=${opening.seq}`);
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.locator('.tree').first().waitFor();
    const isAt = (seq: number) => page.waitForURL((url) => url.searchParams.get('at') === String(seq));
    await page.keyboard.press('n');
    await said(page, /Choose a value/);
    await page.locator('.tree a.name', { hasText: /^by$/ }).press('Enter');
    await page.waitForURL(/value=by/);
    await page.keyboard.press('N');
    await isAt(earlier);
    await page.keyboard.press('n');
    await isAt(opening.seq);
    await page.keyboard.press('n');
    await isAt(later);
    await page.keyboard.press('N');
    await isAt(opening.seq);
    await page.locator('.who-changed a', { hasText: String(earlier) }).waitFor();

    await page.keyboard.press('w');
    await page.waitForURL((url) => url.pathname === `/records/${opening.seq}`);
    await page.locator('.guards li', { hasText: 'known' }).waitFor();
    const { records } = await rig.ask(`/api/stories/${opening.correlation}`);
    const effect = records.find((row: any) => row.cause === opening.seq);
    await page.goto(`${rig.url}/records/${effect.seq}?at=${effect.seq}`);
    await page.locator('.why li').first().waitFor();
    await page.keyboard.press('w');
    await isAt(opening.seq);
    await page.locator('h1', { hasText: String(opening.seq) }).waitFor();
    await page.keyboard.press('w');
    await said(page, /came from outside/);

    await page.keyboard.press('m');
    await said(page, /is marked/);
    t.is(param(page, 'mark'), String(opening.seq));
    await page.keyboard.press('j');
    await isAt(opening.seq + 1);
    await page.keyboard.press('c');
    await page.waitForURL(
      (url) => url.pathname === '/compare' && url.searchParams.get('mark') === String(opening.seq),
    );
    await page.locator('.card, .empty').first().waitFor();
    await page.keyboard.press('y');
    await said(page, /Copied/);
    const link = await page.evaluate('navigator.clipboard.readText()');
    t.true(
      String(link).startsWith(`${rig.url}/compare?`) && String(link).includes(`at=${opening.seq + 1}`),
      String(link),
    );
    await page.keyboard.press('Y');
    await said(page, new RegExp(`record ${opening.seq + 1}, \\d{4}-`));

    await page.keyboard.press('g');
    await page.keyboard.press('g');
    await isAt(1);
    await page.keyboard.press('G');
    await page.waitForURL((url) => Number(url.searchParams.get('at')) >= last);
    t.deepEqual(faults, []);
  },
);

test.serial(
  '[C15] the sheet of keys and the palette list the same, and visited moments are kept with the window',
  async (t) => {
    const { page, faults } = await openWindow(t, of(), `/records/20?at=20`);
    await page.locator('.why li').first().waitFor();
    await until('the record is in the notebook', async () =>
      String(await page.evaluate("sessionStorage.getItem('holdfast.visited')")).includes('Record 20'),
    );
    await page.goto(`${of().rig.url}/actors/${DOOR}?at=30`);
    await page.locator('.tree').first().waitFor();
    t.regex(await page.title(), /door-1, as of record 30/);
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    const sheet = await page.locator('.help dd').allInnerTexts();
    t.true(sheet.length > 20);
    await page.keyboard.press('Escape');
    await page.keyboard.press('Control+k');
    await page.locator('dialog input:focus').waitFor();
    for (const what of sheet) {
      await page.locator('dialog input').fill(what);
      await page.getByRole('option').filter({ hasText: what }).first().waitFor();
    }
    await page.locator('dialog input').fill('mark this mom');
    await page.getByRole('option', { name: /Mark this moment/ }).waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL(/mark=30/);
    await page.keyboard.press('v');
    await page.getByRole('dialog', { name: 'Visited moments' }).waitFor();
    await page.getByRole('link', { name: 'Record 20' }).click();
    await page.waitForURL((url) => url.pathname === '/records/20');
    t.deepEqual(faults, []);
  },
);

test.serial(
  '[C15] what-if takes several changes from records, and lights the first divergence with its guards',
  async (t) => {
    const { rig, last } = of();
    const [opening] = await rig.askAll(`/api/records?event=OPEN&text=guest-17&at=${last}`);
    const { page, faults } = await openWindow(t, of(), `/records/${opening.seq}?at=${opening.seq}`);
    await page.locator('.why li').first().waitFor();
    await page.keyboard.press('e');
    await page.waitForURL((url) => url.pathname === '/what-if');
    await page.getByText('No effect is carried out').waitFor();
    const event = page.locator('textarea').first();
    await event.waitFor();
    t.like(JSON.parse(await event.inputValue()), { type: 'OPEN', by: 'guest-17' });
    await event.fill('{"by": "stranger"}');
    await page.getByRole('button', { name: 'Insert after it' }).click();
    await page.locator('fieldset.insert textarea').fill('{"type": "KNOCK"}');
    await page.getByRole('button', { name: '+ drop a record' }).click();
    await page
      .locator('fieldset.drop input')
      .first()
      .fill(String(opening.seq + 1));
    await page.getByRole('button', { name: 'Run it again' }).click();
    const divergence = page.getByRole('region', { name: 'First divergence' });
    await divergence.waitFor();
    const text = await divergence.innerText();
    t.true(text.includes(`record ${opening.seq}`), text);
    t.regex(text, /would have refused it/);
    t.is(await divergence.locator('.guards .taken', { hasText: 'known' }).count(), 1, 'as it was');
    t.is(
      await divergence.locator('.guards .refused', { hasText: 'known' }).count(),
      1,
      'as it would have been',
    );
    await page.locator('tr.first-difference').waitFor();
    t.true((await page.locator('table').innerText()).includes('inserted'));
    await page.locator('fieldset.insert textarea').fill('{');
    await page.getByRole('button', { name: 'Run it again' }).click();
    await page.getByRole('alert').filter({ hasText: 'no JSON object' }).waitFor();
    t.deepEqual(faults, []);
  },
);
