import type { Browser, BrowserContext, Page } from 'playwright-core';
import type { Scope } from '../../test/support/scope.ts';
import type { Instance } from './started.ts';

/** What runs in each page before its own script: counts what is asked for, and notes long tasks and frames. */
const PROBE = `
  const probe = { asked: 0, settledAt: 0, longest: 0, frames: [] };
  globalThis.probe = probe;
  const plain = fetch;
  globalThis.fetch = async (...args) => {
    probe.asked += 1;
    try {
      return await plain(...args);
    } finally {
      probe.asked -= 1;
      // The script reads the answer, and draws it with the next frame.
      setTimeout(() => requestAnimationFrame(() => { probe.settledAt = performance.now(); }), 0);
    }
  };
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) probe.longest = Math.max(probe.longest, duration);
  }).observe({ type: 'longtask' });
  probe.until = (test) => new Promise((resolve) => {
    const look = () => (test() ? requestAnimationFrame(() => resolve(performance.now())) : requestAnimationFrame(look));
    look();
  });
  probe.settled = async () => {
    const began = performance.now();
    const isQuiet = () => performance.now() - Math.max(began, probe.settledAt) > 150;
    // What is known already is drawn with the next frame.
    const drawn = await new Promise((resolve) => requestAnimationFrame(resolve));
    await probe.until(() => probe.asked === 0 && !document.querySelector('.wait') && isQuiet());
    return Math.max(drawn, probe.settledAt);
  };
`;

/** A window of somebody who is logged in, with nothing in its cache. */
export async function openWindow(
  scope: Scope,
  browser: Browser,
  instance: Instance,
): Promise<{ context: BrowserContext; page: Page }> {
  const client = await instance.client(scope);
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const [name = '', value = ''] = client.cookie.split('=');
  await context.addCookies([{ name, value, url: instance.url }]);
  await context.addInitScript(PROBE);
  return { context, page: await context.newPage() };
}

/** @returns milliseconds from the begin of the navigation until the first story stands in the page */
export async function firstPaint(page: Page, url: string): Promise<number> {
  await page.goto(url, { waitUntil: 'commit' });
  return page.evaluate<number>("probe.until(() => document.querySelector('.story'))");
}

/**
 * Points at a place of the time bar, 0 to 1.
 *
 * @returns milliseconds until the page shows that moment and waits for nothing any more; null where it showed that before
 */
export function jump(page: Page, place: number): Promise<number | null> {
  return page.evaluate<number | null>(`(async () => {
    const bar = document.querySelector('.timebar canvas');
    const box = bar.getBoundingClientRect();
    const began = performance.now();
    const before = location.search;
    const at = { bubbles: true, clientX: box.left + ${place} * box.width, clientY: box.top + 5, button: 0, pointerId: 1 };
    bar.dispatchEvent(new PointerEvent('pointerdown', at));
    bar.dispatchEvent(new PointerEvent('pointerup', at));
    if (location.search === before) return null;
    return (await probe.settled()) - began;
  })()`);
}

/** The same by a key. */
export function press(page: Page, key: string): Promise<number> {
  return page.evaluate<number>(`(async () => {
    const began = performance.now();
    document.body.dispatchEvent(new KeyboardEvent('keydown', { key: '${key}', bubbles: true }));
    return (await probe.settled()) - began;
  })()`);
}

/** Pans the lanes of the open story by a drag, for some seconds. @returns frames a second, and the longest one */
export function pan(page: Page, seconds: number): Promise<{ perSecond: number; longestMs: number }> {
  return page.evaluate(`(async () => {
    const canvas = document.querySelector('.lanes canvas');
    const box = canvas.getBoundingClientRect();
    const send = (type, x) => canvas.dispatchEvent(new PointerEvent(type, {
      bubbles: true, clientX: box.left + x, clientY: box.top + 60, button: 0, pointerId: 1,
    }));
    const frames = [];
    canvas.setPointerCapture = () => {};
    const middle = box.width / 2;
    send('pointerdown', middle);
    const began = performance.now();
    for (let now = began; now - began < ${seconds * 1_000}; ) {
      send('pointermove', middle + 300 * Math.sin((now - began) / 300));
      const next = await new Promise((resolve) => requestAnimationFrame(() => resolve(performance.now())));
      frames.push(next - now);
      now = next;
    }
    send('pointerup', middle);
    return { perSecond: frames.length / ((performance.now() - began) / 1_000), longestMs: Math.max(...frames) };
  })()`);
}
