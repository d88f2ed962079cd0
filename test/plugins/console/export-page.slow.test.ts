// Exported pages in a real browser without a network: one browser for all tests, and a page for each log.
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { AxeBuilder } from '@axe-core/playwright';
import test, { type ExecutionContext } from 'ava';
import type { Browser, Page } from 'playwright-core';
import { stateName } from '../../../src/core/host/terminal.ts';
import { startChromium } from '../../support/chromium.ts';
import { root } from '../../support/cli.ts';
import { tempDir } from '../../support/temp.ts';
import { PATIENCE_MS, read } from '../../support/until.ts';
import { CANARY, denseLog, exportPage, HOSTILE, holdfast, hostileLog } from './incident-page.ts';

const LOG = join(root, 'test/fixtures/logs/0.2.0/transaction.jsonl.gz');
const ROUTER = 'router.config/default';

interface Shared {
  readonly browser: Browser;
  /** Pages: of a whole log, of a part of it, and of 5,000 records full of texts of strangers. */
  readonly whole: string;
  readonly part: string;
  readonly hostile: string;
  /** The strangers among them. */
  readonly strangers: string;
  /** Of a machine that somebody wrote. */
  readonly foreign: string;
}
const shared: { of?: Shared } = {};
const ends: (() => unknown)[] = [];
const scope = { teardown: (end: () => unknown) => void ends.unshift(end), log: () => {} };

test.before(async (t) => {
  t.timeout(PATIENCE_MS * 2);
  const made = async (source: string, flags?: readonly string[]) => {
    const { file, done } = await exportPage(scope, source, flags);
    t.is(done.code, 0, done.err);
    return file;
  };
  const strange = await hostileLog(scope, 5_000);
  shared.of = {
    browser: await startChromium(scope),
    whole: await made(LOG),
    part: await made(LOG, ['--from', '40', '--to', '90', '--actor', ROUTER]),
    hostile: await made(strange),
    strangers: await made(strange, ['--actor', 'stranger.thing', '--from', '4000']),
    foreign: await made(await denseLog(scope, 20, 50)),
  };
});
test.after.always(async () => {
  for (const end of ends) await end();
});

const of = (): Shared => {
  if (!shared.of) throw new Error('the pages were not exported');
  return shared.of;
};

interface Opened {
  readonly page: Page;
  /** Errors of scripts, refusals of the policy, and dialogs. */
  readonly faults: string[];
  /** What the page asked for. */
  readonly requests: string[];
  show(place: string): Promise<void>;
}

/** A window on an exported page, without a network. */
async function open(
  t: ExecutionContext,
  file: string,
  options: Parameters<Browser['newContext']>[0] = {},
): Promise<Opened> {
  const context = await of().browser.newContext({
    ...{ viewport: { width: 1280, height: 800 }, offline: true },
    ...options,
  });
  t.teardown(() => context.close());
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const [faults, requests]: [string[], string[]] = [[], []];
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') faults.push(message.text());
  });
  page.on('dialog', (dialog) => {
    faults.push(dialog.message());
    void dialog.dismiss();
  });
  page.on('request', (request) => requests.push(request.url()));
  await page.goto(`file://${file}`);
  await page.locator('main').waitFor();
  return {
    ...{ page, faults, requests },
    async show(place) {
      await page.goto(`file://${file}#${place}`);
      await settled(page);
    },
  };
}

/** Waits until all that the page asks for is there. */
async function settled(page: Page): Promise<void> {
  await page.locator('main > :not(.wait)').first().waitFor();
  await page.locator('.wait').first().waitFor({ state: 'detached' });
}

/** What the page has asked for beside itself; pictures in the page are no requests to anywhere. */
const elsewhere = (requests: readonly string[], file: string): string[] =>
  requests.filter((url) => !url.startsWith('data:') && url.split('#', 1)[0] !== `file://${file}`);

const PAGES = [
  '/now',
  '/now?at=40',
  '/stories',
  '/actors',
  `/actors/${encodeURIComponent(ROUTER)}?at=60`,
  '/records/60',
  '/compare?mark=10&at=60',
  '/what-if?drop=46',
  '/area/legs',
  '/area/alerts',
  '/area/routes',
];

for (const colorScheme of ['light', 'dark'] as const) {
  test.serial(
    `[C15] every page of an exported incident is readable for everybody, without a network, in ${colorScheme}`,
    async (t) => {
      t.timeout(PATIENCE_MS * 2);
      const { whole } = of();
      const { page, faults, requests, show } = await open(t, whole, { colorScheme });
      await page.locator('.exported summary').click();
      for (const place of PAGES) {
        await show(place);
        t.is(await page.locator('main .problem, main .empty h1').count(), 0, place);
        const { violations } = await new AxeBuilder({ page }).setLegacyMode().analyze();
        t.deepEqual(
          violations.map(
            ({ id, nodes }) => `${place} ${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' | ')}`,
          ),
          [],
        );
      }
      t.deepEqual(faults, []);
      t.deepEqual(elsewhere(requests, whole), []);
    },
  );
}

test.serial('[C15] an exported incident shows the actors of any record as `replay at` does', async (t) => {
  t.timeout(PATIENCE_MS * 2);
  const { page, faults, show } = await open(t, of().whole);
  for (const seq of [1, 7, 19, 33, 46, 47, 60, 78, 95, 96, 110, 117]) {
    const { out } = await holdfast(t, ['replay', 'at', String(seq), LOG, '--json']);
    const { actors } = JSON.parse(out) as { actors: { ref: string; value: never }[] };
    await show(`/actors?at=${seq}`);
    const wanted = actors.map(({ ref, value }) => [ref, stateName(value)]);
    // What was shown before stays until the answer is there.
    const shown = await read(
      `the actors at ${seq}`,
      () =>
        page
          .locator('main .line')
          .evaluateAll((rows) =>
            rows.map((row) => ['.actor', '.state'].map((part) => row.querySelector(part)?.textContent)),
          ),
      (rows) => isDeepStrictEqual(rows, wanted),
    );
    t.deepEqual(shown, wanted);
  }
  t.deepEqual(faults, []);
});

test.serial('[C15] an exported incident explains a record as `replay explain` does', async (t) => {
  const { page, show } = await open(t, of().whole);
  for (const seq of [12, 60, 95]) {
    const { out } = await holdfast(t, ['replay', 'explain', String(seq), LOG, '--json']);
    const steps = JSON.parse(out) as { text: string }[];
    await show(`/records/${seq}`);
    await page.locator('h1', { hasText: `Record ${seq}` }).waitFor();
    const told = await page.locator('.why li').allInnerTexts();
    t.is(told.length, steps.length);
    for (const [index, { text }] of steps.entries())
      t.true(told[index]?.startsWith(text), `${told[index]} / ${text}`);
  }
});

test.serial('[C15] what-if in an exported incident decides as `replay what-if` does', async (t) => {
  const { page, faults, show } = await open(t, of().whole);
  for (const dropped of [46, 60]) {
    const { out } = await holdfast(t, ['replay', 'what-if', LOG, '--drop', String(dropped), '--json']);
    const { records, differences, untrusted } = JSON.parse(out) as {
      records: number;
      differences: { seq: number; actor: string }[];
      untrusted: { seq: number }[];
    };
    await show('/now');
    await show(`/what-if?drop=${dropped}`);
    await page.getByRole('button', { name: 'Run it again' }).click();
    const outcome = page.locator('section.card', { hasText: 'would have been different' });
    await outcome.waitFor();
    t.regex(await outcome.innerText(), new RegExp(`\\b${records} records decided again`));
    const rows = await outcome.locator('tbody th').allInnerTexts();
    t.deepEqual(
      rows.map((row) => row.split(' ').slice(0, 2)),
      differences.map(({ seq, actor }) => [String(seq), actor]),
    );
    t.is(await outcome.locator('ul.linked li').count(), untrusted.length);
  }
  t.deepEqual(faults, []);
});

test.serial(
  '[C15] a part says what it is and what it leaves out, and is checked where it is opened',
  async (t) => {
    const { page, show } = await open(t, of().part);
    const said = page.locator('.exported');
    t.regex(
      await said.locator('summary').innerText(),
      /records \d+ to \d+ of 1 to 117; without sealed configs/,
    );
    await said.locator('summary').click();
    await said.getByText('Each record was checked against the hash of the record before.').waitFor();
    const text = await said.innerText();
    for (const part of ['live facts', 'actions', 'what was before', 'what came after', `all but ${ROUTER}`])
      t.true(text.includes(part), part);
    t.regex(text, /Head \d+:[0-9a-f]{64}/);
    t.false(text.includes(root) || text.includes('/tmp/'), 'no folder of whoever exported it');
    await show(`/actors/${encodeURIComponent(ROUTER)}?at=60`);
    await page.locator('.node.active').first().waitFor();
    const { out } = await holdfast(t, ['replay', 'at', '60', LOG, '--actor', ROUTER, '--json']);
    const { actors } = JSON.parse(out) as { actors: { value: never }[] };
    t.is(await page.locator('h1 .state').innerText(), stateName(actors[0]?.value ?? ''));
    const whole = await open(t, of().whole);
    const head = await whole.page.locator('.exported .head').textContent();
    const verified = await holdfast(t, ['log', 'verify', LOG]);
    t.true(verified.out.includes(`Head: ${head}`), `${head}: ${verified.out}`);
  },
);

test.serial(
  '[C15] the place in an exported page is its address: links, the time bar and the way back',
  async (t) => {
    const { page, faults, show } = await open(t, of().whole);
    await show('/actors?at=60');
    await page.locator('main .line', { hasText: ROUTER }).locator('.actor').click();
    await page.locator('h1 .state').waitFor();
    t.is(new URL(page.url()).hash, `#/actors/router.config/default?at=60`);
    await page.getByRole('slider', { name: 'Moment' }).press('ArrowLeft');
    await page.waitForURL((url) => url.hash.endsWith('?at=59'));
    await page.getByRole('slider', { name: 'Moment' }).press('Home');
    await page.waitForURL((url) => url.hash.endsWith('?at=1'));
    await page.goBack();
    await page.locator('main .line').first().waitFor();
    await page.keyboard.press('Tab');
    await page.locator('.skip').press('Enter');
    await page.locator('main:focus').waitFor();
    t.is(new URL(page.url()).hash, '#/actors?at=60', 'the way to the page is no other place');
    t.deepEqual(faults, []);
  },
);

test.serial(
  '[C15,C9] texts of strangers stay text in an exported page, and a secret is not in it',
  async (t) => {
    t.timeout(PATIENCE_MS * 2);
    const { hostile, strangers } = of();
    const contentOf = (file: string): string => {
      const html = readFileSync(file, 'utf8');
      t.is(html.match(/<script/g)?.length, 1, 'nothing of the log is markup');
      const data = /<template id="log">([^<]*)<\/template>/.exec(html)?.[1] ?? '';
      return gunzipSync(Buffer.from(data, 'base64')).toString();
    };
    const content = contentOf(hostile);
    t.is(content.split('\n').filter((line) => line.includes('"record":')).length, 5_000);
    t.false(contentOf(strangers).includes(CANARY), 'nor where the names of actors are listed');
    t.false(content.includes(CANARY));
    const { page, faults, requests, show } = await open(t, hostile);
    for (const place of [
      '/now',
      '/stories',
      '/actors',
      `/actors/${encodeURIComponent(`stranger.thing/${HOSTILE[0]}`)}`,
      '/records/3',
      '/records/500',
      '/records/4998',
      '/compare?mark=10&at=5000',
      `/stories?text=${encodeURIComponent(HOSTILE[1] ?? '')}`,
    ]) {
      await show(place);
      t.is(await page.locator('img, svg[onload]').count(), 0, place);
    }
    await show('/records/500');
    t.true((await page.locator('main').innerText()).includes('[redacted]'));
    await page.locator('.exported summary').click();
    await page.getByText('Of 5,000 records all were checked but 10, in which a text was redacted.').waitFor();
    t.notRegex(await page.title(), /^[1-5]$/);
    t.deepEqual(faults, []);
    t.deepEqual(elsewhere(requests, hostile), []);
  },
);

test.serial(
  '[C15] nothing is tried out on machines that are no part of the product, and the page says so',
  async (t) => {
    const { page, show } = await open(t, of().foreign);
    t.regex(await page.locator('.exported summary').innerText(), /foreign machines/);
    await show('/what-if?drop=3');
    await page.getByRole('button', { name: 'Run it again' }).click();
    await page.getByText('Nothing can be tried out on stranger.thing').first().waitFor();
  },
);

test.serial('[C15] a page of 5,000 records has at most 3 MB and is there in a moment', async (t) => {
  const { hostile, browser } = of();
  const bytes = statSync(hostile).size;
  t.true(bytes <= 3_000_000, `${bytes} bytes`);
  const context = await browser.newContext({ offline: true });
  t.teardown(() => context.close());
  const page = await context.newPage();
  const began = performance.now();
  await page.goto(`file://${hostile}#/stories`);
  await page.locator('.story').first().waitFor();
  t.log(`${bytes} bytes, shown after ${Math.round(performance.now() - began)} ms`);
});

test.serial('[C15] a page that was changed says so, and another script in it does not run', async (t) => {
  const html = readFileSync(of().whole, 'utf8');
  const file = join(tempDir(t), 'changed.html');
  writeFileSync(
    file,
    html.replace('<div id="app">', '<script>document.title = "changed"</script><div id="app">'),
  );
  const { page, faults } = await open(t, file);
  t.not(await page.title(), 'changed');
  t.true(faults.some((fault) => fault.includes('Content Security Policy')));
});

test.serial('[C15] a large page is announced, and one that no browser opens well is refused', async (t) => {
  t.timeout(PATIENCE_MS * 2);
  const dense = await denseLog(t, 160, 40_000);
  const { file, done } = await exportPage(t, dense);
  t.is(done.code, 1, done.err);
  t.regex(done.err, /HF_CONSOLE_PAGE_SIZE[\s\S]*--from and --to/);
  t.throws(() => statSync(file));
  const smaller = await exportPage(t, dense, ['--to', '90']);
  t.is(smaller.done.code, 0, smaller.done.err);
  t.regex(smaller.done.err, /which a browser opens slowly: export a shorter range/);
  t.true(statSync(smaller.file).size > 5_000_000);
});

test.serial(
  '[C15,C6] a page and a file are written together; wrong use is refused before anything is',
  async (t) => {
    const dir = tempDir(t);
    const [out, html] = [join(dir, 'a.jsonl'), join(dir, 'a.html')];
    const { code, out: said } = await holdfast(t, [
      'log',
      'export',
      LOG,
      '--out',
      out,
      '--html',
      html,
      '--json',
    ]);
    t.is(code, 0);
    const answer = JSON.parse(said);
    t.is(answer.file, out);
    t.deepEqual(answer.page, { file: html, bytes: statSync(html).size });
    t.is(answer.header.range.to, 117);
    t.is(statSync(html).mode & 0o777, 0o600);
    const alone = await holdfast(t, ['log', 'export', LOG, '--html', html, '--json']);
    t.like(JSON.parse(alone.out), { file: html, bytes: statSync(html).size, header: { range: { from: 1 } } });
    for (const flags of [[], ['--html', ''], ['--out', out, '--html', out]]) {
      const refused = await holdfast(t, ['log', 'export', LOG, ...flags]);
      t.is(refused.code, 2);
      t.regex(refused.err, /HF_CLI_USAGE/);
    }
  },
);
