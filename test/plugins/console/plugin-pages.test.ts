// What the console promises to pages of plugins: one that waits or throws is alone with that.
import test from 'ava';
import { z } from 'zod';
import { type ConsolePage, consolePages } from '../../../src/core/contracts/console.ts';
import { definePlugin } from '../../../src/core/host/plugin/definition.ts';
import { ColumnarError } from '../../../src/plugins/columnar/errors.ts';
import { boundedSections } from '../../../src/plugins/console/api/sections.ts';
import { CANARY } from './busy-doors.ts';
import { ConsoleRig } from './console-rig.ts';

const waiting = { pages: 0, left: 0 };

const page = (name: string, more: Partial<ConsolePage> = {}): ConsolePage => ({
  name,
  title: name,
  data: () => [{ kind: 'text', text: `the fold of ${name}` }],
  ...more,
});

const lamps = definePlugin({
  name: 'lamps',
  options: z.strictObject({}),
  register(context) {
    context.contribute(consolePages, page('lamp'));
    context.contribute(consolePages, () => page('lamp', { data: () => [{ kind: 'text', text: 'it runs' }] }));
    context.contribute(
      consolePages,
      page('waits', {
        isListed: false,
        isCostly: true,
        data: ({ signal }) =>
          new Promise((_, reject) => {
            waiting.pages += 1;
            signal.addEventListener('abort', () => {
              waiting.left += 1;
              reject(signal.reason);
            });
          }),
      }),
    );
    context.contribute(
      consolePages,
      page('coded', {
        data: () => {
          throw new ColumnarError('HF_COLUMNAR_BUSY', { reason: 'it is a test' });
        },
      }),
    );
    context.contribute(
      consolePages,
      page('faulty', { data: () => Promise.reject(new TypeError('x is not a function at /srv/secret')) }),
    );
    context.contribute(
      consolePages,
      page('odd', {
        data: ({ time }) => [
          {
            kind: 'chart',
            series: [
              {
                name: 'n',
                points: [
                  [time, Number.NaN],
                  [time, 1],
                  [Number.NaN, 2],
                ],
              },
            ],
          },
          {
            kind: 'bars',
            bars: [
              { name: 'a', value: Number.POSITIVE_INFINITY },
              { name: 'b', value: 2 },
            ],
          },
        ],
      }),
    );
  },
});

const stopped = definePlugin({
  name: 'stopped',
  options: z.strictObject({}),
  onFailure: 'continue',
  start() {
    throw new Error('it cannot start');
  },
  register(context) {
    context.contribute(consolePages, page('ledger'));
    context.contribute(consolePages, () => page('ledger', { title: 'never' }));
  },
});

test('[C15] a page that waits, throws or counts wrongly is alone with that, and a fold needs no running plugin', async (t) => {
  const rig = await ConsoleRig.start(t, { others: [lamps(), stopped()] });
  await rig.login();
  const { pages } = await rig.ask('/api/pages');
  t.deepEqual(
    pages.map(({ name, isListed, isCostly }: any) => [name, isListed, isCostly]),
    [
      ['lamp', true, false],
      ['waits', false, true],
      ['coded', true, false],
      ['faulty', true, false],
      ['odd', true, false],
      ['ledger', true, false],
    ],
  );
  const text = async (name: string) => (await rig.ask(`/api/pages/${name}`)).sections[0].text;
  t.is(await text('lamp'), 'it runs', 'what the running plugin made takes the place of the fold');
  t.is(await text('ledger'), 'the fold of ledger', 'its plugin does not run');

  const coded = await rig.send('/api/pages/coded');
  t.is(coded.status, 503);
  t.is(coded.body.error.code, 'HF_COLUMNAR_BUSY');
  t.truthy(coded.body.error.action);
  const faulty = await rig.send('/api/pages/faulty');
  t.is(faulty.status, 500);
  t.regex(faulty.body.error.code, /^HF_/);
  t.notRegex(faulty.text, /secret|TypeError/, 'an error without a code is in the journal alone');

  const [chart, bars] = (await rig.ask('/api/pages/odd')).sections;
  t.is(chart.series[0].points.length, 1);
  t.deepEqual(bars.bars, [{ name: 'b', value: 2 }]);

  const gone = new AbortController();
  const asked = Array.from({ length: 3 }, () =>
    fetch(`${rig.url}/api/pages/waits`, { headers: { cookie: rig.cookie }, signal: gone.signal }).catch(
      () => {},
    ),
  );
  await t.notThrowsAsync(async () => {
    while (waiting.pages < 3) await rig.ask('/api/log');
    await rig.ask('/api/overview');
  }, 'questions about the log go on');
  gone.abort();
  await Promise.all(asked);
  while (waiting.left < 3) await rig.ask('/api/log');
  t.is(waiting.left, 3, 'who left is not worked for');
});

test('[C15] a long section comes whole, as far as a page may be long, and redacted', async (t) => {
  const rows = Array.from({ length: 1_200 }, (_, index) => ({ cells: { index, password: CANARY } }));
  const spans = Array.from({ length: 130 }, (_, index) => ({
    ...{ id: String(index), name: 'step', by: 'test', start: index, duration: 1 },
    facts: { note: `authorization: Bearer ${CANARY}` },
  }));
  const columns = [{ name: 'index', title: 'Index' }];
  const found = await boundedSections(
    [
      { kind: 'table', title: 'Long', columns, rows },
      { kind: 'waterfall', spans },
      { kind: 'table', title: 'Empty', columns, rows: [] },
    ],
    new AbortController().signal,
  );
  const [long, waterfall, empty] = found;
  t.deepEqual(long?.kind === 'table' && long.rows.map(({ cells }) => cells.index), [...Array(1_000).keys()]);
  t.deepEqual(waterfall?.kind === 'waterfall' && waterfall.spans.map(({ start }) => start), [
    ...Array(130).keys(),
  ]);
  t.deepEqual(empty, { kind: 'table', title: 'Empty', columns, rows: [] });
  t.false(JSON.stringify(found).includes(CANARY));
});
