// What pages of others do to a console in a real browser: one that is logged in, and one page on another port of this
// machine (the same site, so that the cookie goes with its requests), one of another site, and one under a rebound name.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'ava';
import type { Browser, BrowserContext } from 'playwright-core';
import { startChromium } from '../../support/chromium.ts';
import { tempDir } from '../../support/temp.ts';
import { PATIENCE_MS } from '../../support/until.ts';
import { busyDoors, doors } from './busy-doors.ts';
import { ConsoleRig } from './console-rig.ts';

interface Shared {
  readonly rig: ConsoleRig;
  readonly browser: Browser;
  /** Pages of somebody else: on this machine, and of another site. */
  readonly others: readonly string[];
}
const shared: { of?: Shared } = {};
const ends: (() => unknown)[] = [];
const scope = { teardown: (end: () => unknown) => void ends.unshift(end), log: () => {} };

test.before(async () => {
  const rig = await ConsoleRig.start(scope, { dataDir: tempDir(scope), others: [doors()] });
  await busyDoors(rig);
  const stranger = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html').end('<!doctype html><title>stranger</title>');
  });
  scope.teardown(() => stranger.close());
  await new Promise<void>((resolve) => stranger.listen(0, '127.0.0.1', resolve));
  const { port } = stranger.address() as AddressInfo;
  const browser = await startChromium(scope, ['--host-resolver-rules=MAP *.example 127.0.0.1']);
  shared.of = { rig, browser, others: [`http://127.0.0.1:${port}`, `http://stranger.example:${port}`] };
});
test.after.always(async () => {
  for (const end of ends) await end();
});

const of = (): Shared => {
  if (!shared.of) throw new Error('the runtime did not start');
  return shared.of;
};

interface Scope {
  teardown(end: () => unknown): void;
}

async function windowOf(t: Scope): Promise<BrowserContext> {
  const context = await of().browser.newContext();
  t.teardown(() => context.close());
  context.setDefaultTimeout(PATIENCE_MS);
  return context;
}

/** A browser with the cookie of a session of its own. */
async function loggedIn(t: Scope): Promise<BrowserContext> {
  const { rig } = of();
  const context = await windowOf(t);
  await rig.login();
  const [name = '', value = ''] = rig.cookie.split('=');
  await context.addCookies([{ ...{ name, value, url: rig.url }, httpOnly: true, sameSite: 'Strict' }]);
  return context;
}

async function isLoggedIn(context: BrowserContext): Promise<boolean> {
  const page = await context.newPage();
  await page.goto(`${of().rig.url}/stories`);
  const { pathname } = new URL(page.url());
  await page.close();
  return pathname === '/stories';
}

/** Tries, in a page, everything that reads or sends without leaving it. @returns what came of it, by name */
const attacksOn = (target: string): string => `(async () => {
  const outcomes = {};
  const attempt = async (name, work) => {
    try { outcomes[name] = await work(); } catch (error) { outcomes[name] = error.name; }
  };
  for (const path of ['/api/log', '/api/records', '/api/openapi.json', '/', '/login']) {
    await attempt('reads ' + path, async () => (await fetch('${target}' + path, { credentials: 'include' })).status);
    await attempt('asks blindly for ' + path, async () =>
      (await fetch('${target}' + path, { credentials: 'include', mode: 'no-cors' })).status);
  }
  for (const path of ['/api/actions/knock', '/api/logout', '/api/what-if', '/api/login'])
    for (const type of ['application/json', 'text/plain'])
      await attempt('posts ' + type + ' to ' + path, async () => (await fetch('${target}' + path, {
        method: 'POST', credentials: 'include', mode: type === 'text/plain' ? 'no-cors' : 'cors',
        headers: { 'content-type': type }, body: '{"fields":{"door":"door-1"},"code":"a guess"}',
      })).status);
  navigator.sendBeacon('${target}/api/logout', '{}');
  const embedded = (tag, attributes) => new Promise((resolve) => {
    const element = Object.assign(document.createElement(tag), attributes);
    element.onload = () => resolve('loaded');
    element.onerror = () => resolve('refused');
    document.head.append(element);
  });
  await attempt('script', () => embedded('script', { src: '${target}/api/log' }));
  await attempt('own script', () => embedded('script', { src: '${target}/login.js' }));
  await attempt('style', () => embedded('link', { rel: 'stylesheet', href: '${target}/login.css' }));
  await attempt('picture', () => embedded('img', { src: '${target}/icon.svg' }));
  await attempt('follows', () => new Promise((resolve) => {
    const events = new EventSource('${target}/api/events', { withCredentials: true });
    events.onopen = () => resolve('opened');
    events.onerror = () => resolve('refused ' + events.close());
  }));
  return outcomes;
})()`;

/** What the console has answered without an error, as its metrics count it: a browser hides from a test what it blocks. */
async function answered(): Promise<string[]> {
  const { text } = await of().rig.send('/metrics');
  return text
    .split('\n')
    .filter((line) => /^holdfast_http_requests_total\{surface="console".*status="[23]/.test(line));
}

/** Blindly means that neither content nor status can be seen. */
const EXPECTED = [/^reads .*: TypeError$/, /^asks blindly .*: (TypeError|0)$/, /^posts .*: (TypeError|0)$/];

test.serial(
  '[C15] a page of others reads nothing with the cookie, and what it sends changes nothing',
  async (t) => {
    const { rig, others } = of();
    const context = await loggedIn(t);
    await rig.durable();
    const before = (await rig.ask('/api/log')).last;
    const answeredBefore = await answered();
    for (const other of others) {
      const page = await context.newPage();
      await page.goto(other);
      const outcomes = Object.entries(await page.evaluate<Record<string, unknown>>(attacksOn(rig.url)));
      t.true(outcomes.length > 20);
      for (const [name, outcome] of outcomes) {
        const line = `${name}: ${outcome}`;
        t.true(/refused/.test(line) || EXPECTED.some((one) => one.test(line)), `${other} ${line}`);
      }
      for (const path of ['/api/actions/knock', '/api/logout', '/api/login']) {
        await page.goto(other);
        const [answer] = await Promise.all([
          page.waitForResponse((response) => response.url() === rig.url + path),
          page.evaluate(`(() => {
          const form = Object.assign(document.createElement('form'), {
            action: '${rig.url + path}', method: 'post', enctype: 'text/plain' });
          const input = Object.assign(document.createElement('input'), { name: '{"fields":{"x":"', value: '"}}' });
          form.append(input);
          document.body.append(form);
          form.submit();
        })()`),
        ]);
        t.is(answer.status(), 403, `${other} ${path}`);
        await page.waitForURL(rig.url + path);
      }
      await page.close();
    }
    // The login page and its files are for everybody; their policy keeps them from these pages.
    t.deepEqual(
      (await answered()).filter(
        (line) => !answeredBefore.includes(line) && !/route="\/(login|metrics)/.test(line),
      ),
      [],
    );
    t.true(await isLoggedIn(context), 'nobody was logged out');
    await rig.durable();
    const { records } = await rig.ask(`/api/records?actor=console.access&limit=50`);
    const made = records.filter(({ seq }: { seq: number }) => seq > before);
    t.deepEqual(
      made.map(({ event }: { event: string }) => event),
      [],
    );
  },
);

test.serial(
  '[C15] a page of others can frame no page of the console, and has no hold on a window with one',
  async (t) => {
    const { rig, others } = of();
    const context = await loggedIn(t);
    for (const other of others) {
      const page = await context.newPage();
      await page.goto(other);
      for (const path of ['/stories', '/login', '/api/log', '/metrics']) {
        const loaded = `new Promise((resolve) => {
        const frame = Object.assign(document.createElement('iframe'), { src: '${rig.url + path}' });
        frame.onload = () => resolve(frame.name);
        document.body.append(frame);
      })`;
        await page.evaluate(loaded);
        const urls = page.frames().map((frame) => frame.url());
        t.deepEqual(
          urls.filter((url) => url.startsWith(rig.url)),
          [],
          `${other} ${path}`,
        );
      }
      for (const path of ['/stories', '/api/log']) {
        const opened = context.waitForEvent('page');
        await page.evaluate(`void (window.opened = window.open('${rig.url + path}'))`);
        const own = await opened;
        await own.waitForURL(rig.url + path);
        t.is(await own.evaluate('window.opener'), null);
        t.true(await page.evaluate('window.opened.closed'), 'for the other page it is gone');
        await own.close();
      }
      await page.close();
    }
  },
);

test.serial(
  '[C15] a link on a page of others leads to the moment that it names, for who is logged in',
  async (t) => {
    const { rig, others } = of();
    const context = await loggedIn(t);
    const page = await context.newPage();
    for (const other of others) {
      await page.goto(other);
      await page.evaluate(`void (location.href = '${rig.url}/actors?at=7')`);
      await page.waitForURL(`${rig.url}/actors?at=7`);
      await page.locator('.badge.past').waitFor();
    }
    for (const next of [
      others[0],
      '//stranger.example',
      '\\\\stranger.example',
      'javascript:alert(1)',
      'data:,x',
      'http://[',
    ]) {
      await page.goto(`${rig.url}/login?next=${encodeURIComponent(next ?? '')}`);
      await page.waitForURL((url) => url.pathname !== '/login');
      t.is(new URL(page.url()).origin, rig.url, next);
    }
  },
);

test.serial(
  '[C15] a code in a link works once, in the window alone that it was opened in, and leaves no trace there',
  async (t) => {
    const { rig, others } = of();
    const [other = ''] = others;
    const code = await rig.code();
    const context = await windowOf(t);
    const page = await context.newPage();
    await page.goto(other);
    const posted = await page.evaluate(`fetch('${rig.url}/api/login', {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"code":"${code}"}',
  }).catch((error) => error.name)`);
    t.is(posted, 'TypeError', 'a page of others cannot use a code that it has');
    await page.evaluate(`void (location.href = '${rig.url}/login#${code}')`);
    await page.waitForURL((url) => url.origin === rig.url && url.pathname !== '/login');
    t.false(page.url().includes(code));
    t.is(await page.evaluate('document.referrer'), '');
    t.is(await page.evaluate('document.cookie'), '', 'no script reads the cookie');
    const [cookie] = await context.cookies(rig.url);
    t.like(cookie, { httpOnly: true, sameSite: 'Strict', path: '/', domain: '127.0.0.1', secure: false });
    await page.goBack();
    t.false(page.url().includes(code), 'nor is the code in the history');

    const late = await (await windowOf(t)).newPage();
    await late.goto(`${rig.url}/login#${code}`);
    await late.locator('#problem', { hasText: 'was used before' }).waitFor();
    t.is(late.url(), `${rig.url}/login`);
    t.deepEqual(await late.context().cookies(rig.url), []);
    await late.goto('about:blank');
    await late.goto(`${rig.url}/login#<img/src/onerror=alert(1)>`);
    await late.locator('#problem', { hasText: /\w/ }).waitFor();
    t.is(await late.locator('img').count(), 0);
  },
);

test.serial('[C15] under a name that somebody else made lead here the console answers nothing', async (t) => {
  const { rig } = of();
  const context = await loggedIn(t);
  const page = await context.newPage();
  const rebound = `http://rebound.example:${new URL(rig.url).port}`;
  for (const path of ['/', '/login', '/api/log', '/livez']) {
    const answer = await page.goto(rebound + path);
    t.is(answer?.status(), 421, path);
  }
  t.is(await page.evaluate(`fetch('/api/records').then(({ status }) => status)`), 421);
});
