import type { Browser, BrowserContext, Page } from 'playwright-core';
import type { Scope } from '../../support/scope.ts';
import { PATIENCE_MS } from '../../support/until.ts';
import type { ConsoleClient } from './console-rig.ts';

/** A window of the console, and what went wrong in its script. */
export interface Window {
  readonly page: Page;
  readonly context: BrowserContext;
  readonly faults: string[];
}

/** A window of somebody who is logged in. */
export async function openWindow(
  t: Pick<Scope, 'teardown'>,
  { rig, browser }: { readonly rig: ConsoleClient; readonly browser: Browser },
  path: string,
  options: Parameters<Browser['newContext']>[0] = {},
): Promise<Window> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  t.teardown(() => context.close());
  context.setDefaultTimeout(PATIENCE_MS);
  const [name = '', value = ''] = rig.cookie.split('=');
  await context.addCookies([{ name, value, url: rig.url }]);
  const page = await context.newPage();
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error' && !/Failed to load resource/.test(message.text()))
      faults.push(message.text());
  });
  await page.goto(rig.url + path);
  return { page, context, faults };
}

/** Waits until all that the page asks for is there. */
export async function settled(page: Page): Promise<void> {
  await page.locator('main > :not(.wait)').first().waitFor();
  await page.locator('.wait').first().waitFor({ state: 'detached' });
}
