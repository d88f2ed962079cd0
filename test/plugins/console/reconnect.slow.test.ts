import test from 'ava';
import { startChromium } from '../../support/chromium.ts';
import { tempDir } from '../../support/temp.ts';
import { doors } from './busy-doors.ts';
import { ConsoleRig } from './console-rig.ts';
import { openWindow } from './windows.ts';

test('[C15] an open page says since when it knows nothing new, and goes on after a restart and a new login', async (t) => {
  t.timeout(300_000);
  const dataDir = tempDir(t);
  const first = await ConsoleRig.start(t, { dataDir, others: [doors()] });
  await first.login();
  first.runtime.services.actors.deliver('test.door/front', { type: 'OPEN', by: 'ann' });
  await first.durable();
  const browser = await startChromium(t);
  const { page, context, faults } = await openWindow(t, { rig: first, browser }, '/actors/test.door/front');
  await page.locator('.badge.live').waitFor();
  await page.locator('.tree', { hasText: 'ann' }).waitFor();

  await first.runtime.stop('a restart');
  await page.locator('.badge.lost').waitFor();
  const alert = page.getByRole('alert').filter({ hasText: 'last known at' });
  await alert.waitFor();
  t.regex(await alert.innerText(), /does not answer.*last known at .*\d\d:\d\d:\d\d/s);
  t.true((await page.locator('.tree').first().innerText()).includes('ann'), 'what was known is still there');
  t.is(await page.locator('.wait').count(), 0);

  const port = Number(new URL(first.url).port);
  const second = await ConsoleRig.start(t, { dataDir, others: [doors()], options: { port } });
  await page.locator('.badge.ended').waitFor();
  const link = page.getByRole('link', { name: 'Log in again' });
  t.is(await link.getAttribute('href'), `/login?next=${encodeURIComponent('/actors/test.door/front')}`);
  const other = await context.newPage();
  await other.goto(`${second.url}/login#${await second.code()}`);
  await other.waitForURL((url) => url.pathname !== '/login');
  await page.locator('.badge.live').waitFor();
  await alert.waitFor({ state: 'detached' });
  second.runtime.services.actors.deliver('test.door/front', { type: 'OPEN', by: 'bob' });
  await page.locator('.tree', { hasText: 'bob' }).waitFor();
  t.is(new URL(page.url()).pathname, '/actors/test.door/front');

  // A page that does not know its answer yet says so, and one without an answer what to do.
  await page.goto(`${second.url}/actors/test.door/nobody`);
  await page.getByRole('alert').filter({ hasText: 'HF_CONSOLE_MISSING' }).waitFor();
  await page.goto(`${second.url}/stories?text=nothing+has+this`);
  await page.locator('.empty', { hasText: 'No story' }).waitFor();
  t.deepEqual(faults, []);
});
