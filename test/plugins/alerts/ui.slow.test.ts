import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { alertsOptions } from '../../../src/plugins/alerts/options.ts';
import type { InUi } from '../../../src/plugins/alerts/rules/ui.ts';
import { uiAlertsCheck } from '../../../src/plugins/alerts/rules/ui-check.ts';
import { Hyperdx, type Tile } from '../../support/hyperdx.ts';
import type { Scope } from '../../support/scope.ts';
import { tempDir } from '../../support/temp.ts';
import { type Options, rig } from './rig.ts';

const TOKEN = 'token-canary-4711';

const chart = { displayType: 'line', sourceId: 's1', select: [{ aggFn: 'sum' }] };
const tilesOn = (...ids: string[]): Tile[] => ids.map((id) => ({ id, config: chart }));

/** The UI with one dashboard; the stand-in refuses what the real one would: no token, wrong paths, unknown tiles. */
async function standIn(
  t: Scope,
  { tiles = tilesOn('t1', 't2', 't3', 't4'), behind }: { tiles?: Tile[]; behind?: 'ui' | 'nothing' } = {},
) {
  return Hyperdx.start(t, {
    token: TOKEN,
    dashboards: { d1: tiles },
    webhooks: ['w1'],
    ...(behind && { behind }),
  });
}

function tokenFileOf(t: Scope): string {
  const tokenFile = join(tempDir(t), 'token');
  writeFileSync(tokenFile, `${TOKEN}\n`, { mode: 0o600 });
  return tokenFile;
}

test('[O17,O29] alerts of the UI are upserted by name, the second time nothing is written, and what it would reject is never sent', async (t) => {
  const ui = await standIn(t);
  const tokenFile = tokenFileOf(t);
  for (let each = 0; each < 5; each += 1) ui.alerts.push({ id: `x${each}`, name: `another ${each}` });
  ui.page = 2;
  const options: Options = {
    hyperdx: {
      url: ui.url,
      tokenFile,
      dashboardId: 'd1',
      webhookId: 'w1',
      tiles: {
        'nas-backup-failed': { id: 't1' },
        'nas-backup-missing': { id: 't2' },
        'nas-backup-stale': { id: 't3' },
        'watchdog-push-failing': { id: 't4' },
      },
    },
  };
  const alerts = await rig(t, options);
  const bootstrap = async () =>
    (await alerts.ask<{ ui: InUi[] }>('bootstrap')).ui.map(({ change }) => change);
  t.deepEqual(await bootstrap(), ['created', 'created', 'rejected', 'created']);
  t.deepEqual(ui.alerts[5], {
    id: 'a6',
    message: null,
    name: 'NAS backup snapshot FAILED',
    source: 'tile',
    dashboardId: 'd1',
    tileId: 't1',
    interval: '1d',
    threshold: 0,
    thresholdType: 'above_exclusive',
    channel: { type: 'webhook', webhookId: 'w1' },
    state: 'OK',
    teamId: 'team',
  });
  t.like(ui.alerts[6], { name: 'NAS backup telemetry MISSING (collector dark)', threshold: 1 });
  t.like(ui.alerts[6], { thresholdType: 'below', interval: '1h' });
  t.deepEqual(await bootstrap(), ['unchanged', 'unchanged', 'rejected', 'unchanged']);
  t.is(ui.written.length, 3);
  // Somebody changes one by hand, and adds words and a channel of their own.
  const extra = { type: 'email', emails: ['a@example.org'] };
  Object.assign(ui.alerts[5], { threshold: 7, message: 'look at the disk', channels: [{}, extra] });
  t.deepEqual(await bootstrap(), ['changed', 'unchanged', 'rejected', 'unchanged']);
  t.like(ui.alerts[5], { id: 'a6', threshold: 0, message: 'look at the disk' });
  t.deepEqual(ui.alerts[5].channels, [{ type: 'webhook', webhookId: 'w1' }, extra]);
  t.is(ui.alerts.length, 8);
  t.deepEqual(ui.alerts[0], { id: 'x0', name: 'another 0' });

  ui.alerts.push({ ...ui.alerts[5], id: 'twice' });
  const errors = [await t.throwsAsync(bootstrap, { message: /HF_ALERTS_UI/ })];
  t.regex(String(errors[0]), /more than one alert named "NAS backup snapshot FAILED"/);
  ui.sick = 503;
  errors.push(await t.throwsAsync(bootstrap, { message: /HF_ALERTS_UI/ }));
  t.regex(String(errors[1]), /it answered 503 to GET/);
  t.notRegex([...errors.map(String), ...alerts.lines].join('\n'), /canary/);
});

test('[O17,O29] a raw-SQL tile on a sum and a tile of no rule are refused beforehand', async (t) => {
  const ui = await standIn(t);
  const tokenFile = tokenFileOf(t);
  const base = { url: ui.url, tokenFile, dashboardId: 'd1', webhookId: 'w1' };
  const tiles = { 'nas-backup-missing': { id: 't2', query: 'sql' as const } };
  const alerts = await rig(t, { hyperdx: { ...base, tiles } });
  const [said] = (await alerts.ask<{ ui: InUi[] }>('bootstrap')).ui;
  t.is(said?.change, 'rejected');
  t.regex(said?.reason ?? '', /multi select or string select on metrics not supported/);
  t.is(ui.written.length, 0);
  t.regex(said?.reason ?? '', /NAS backup telemetry MISSING/);
  const { error } = alertsOptions.safeParse({ hyperdx: { ...base, tiles: { nobody: { id: 't' } } } });
  t.regex(String(error), /there is no rule nobody/);
});

test('[O29] doctor stack names each alert that the UI will refuse, and why', async (t) => {
  const base = { url: 'https://ui.example.org', tokenFile: '/run/token', dashboardId: 'd1', webhookId: 'w1' };
  const check = (tiles?: object, rules?: object[]) => {
    const options = alertsOptions.parse({
      ...(tiles && { hyperdx: { ...base, tiles } }),
      ...(rules && { rules }),
    });
    const { name, run } = uiAlertsCheck(options);
    t.is(name, 'stack.ui_alerts');
    return run({ dataDir: '/', signal: AbortSignal.timeout(1_000) });
  };
  t.like(await check(), {
    state: 'unknown',
    found: 'nothing to look at: no UI is configured, so no alert is sent to one',
  });
  t.like(await check({}), {
    state: 'unknown',
    found: 'nothing to look at: no tile is configured, so no alert is sent to the UI',
  });
  const good = { 'nas-backup-failed': { id: 't1' }, 'nas-backup-missing': { id: 't2' } };
  t.like(await check(good), { state: 'ok', found: 'none of the 2 is one that the UI is known to refuse' });
  const stale = await check({ ...good, 'nas-backup-stale': { id: 't3' } });
  t.is(stale?.state, 'warn');
  t.regex(stale?.found ?? '', /can't make "NAS backup STALE[^"]*": it computes no age of a last success/);
  const sql = await check({ ...good, 'nas-backup-missing': { id: 't2', query: 'sql' } });
  t.like(sql, { state: 'warn' });
  t.regex(
    sql?.found ?? '',
    /rejects "NAS backup telemetry MISSING[^"]*": multi select or string select on metrics/,
  );
  const odd = {
    name: 'odd',
    title: 'Odd',
    measure: { table: 'gauge', metric: 'm' },
    above: 1,
    window: '2h',
    every: '1h',
    onNoData: 'ok',
  };
  t.regex((await check({ odd: { id: 't9' } }, [odd]))?.found ?? '', /its interval 2h is none of/);
});

test('[O17] the API is found behind the UI, which strips /api, and where it is addressed directly', async (t) => {
  for (const [behind, path] of [
    ['ui', '/api/api/v2/alerts'],
    ['nothing', '/api/v2/alerts'],
  ] as const) {
    const ui = await standIn(t, { behind });
    const base = { url: ui.url, tokenFile: tokenFileOf(t), dashboardId: 'd1', webhookId: 'w1' };
    const alerts = await rig(t, { hyperdx: { ...base, tiles: { 'nas-backup-failed': { id: 't1' } } } });
    const { ui: done } = await alerts.ask<{ ui: InUi[] }>('bootstrap');
    t.deepEqual(done, [{ title: 'NAS backup snapshot FAILED', change: 'created' }]);
    t.true(ui.calls.includes(`POST ${path}`), ui.calls.join());
    t.is(ui.alerts.length, 1);
    // A wrong token is refused by its status, and not taken for a wrong path.
    const other = join(tempDir(t), 'token');
    writeFileSync(other, 'another', { mode: 0o600 });
    const wrong = await rig(t, {
      hyperdx: { ...base, tokenFile: other, tiles: { 'nas-backup-failed': { id: 't1' } } },
    });
    await t.throwsAsync(wrong.ask('bootstrap'), { message: /HF_ALERTS_UI.*401/s });
  }
  const elsewhere = await standIn(t, { behind: 'ui' });
  const hyperdx = {
    url: `${elsewhere.url}/page`,
    tokenFile: tokenFileOf(t),
    dashboardId: 'd1',
    webhookId: 'w1',
  };
  const lost = await rig(t, { hyperdx: { ...hyperdx, tiles: { 'nas-backup-failed': { id: 't1' } } } });
  await t.throwsAsync(lost.ask('bootstrap'), { message: /no API at \/api\/v2 or \/api\/api\/v2/ });
});

/** Tiles with which an alert would not be the rule's, and what is said of each. */
const unfit: [what: string, tile: Tile | undefined, reason: RegExp, query?: 'sql'][] = [
  ['is not there', undefined, /There is no tile t1 on dashboard d1/],
  ['is grouped', { id: 't1', config: { ...chart, groupBy: 'ServiceName' } }, /t1 is grouped by ServiceName/],
  [
    'is grouped, by the older API',
    { id: 't1', series: [{ type: 'time', groupBy: ['host'] }] },
    /t1 is grouped by host/,
  ],
  [
    'is a table',
    { id: 't1', config: { ...chart, displayType: 'table' } },
    /shows table: an alert needs a line/,
  ],
  ['has no kind', { id: 't1', config: {} }, /shows nothing known/],
  [
    'is raw SQL unexpectedly',
    { id: 't1', config: { ...chart, configType: 'sql' } },
    /t1 is raw SQL, and the option/,
  ],
  ['is built, not SQL', { id: 't1', config: chart }, /made by the query builder/, 'sql'],
];
for (const [what, tile, reason, query] of unfit) {
  test(`[O17,O29] no alert goes on a tile that ${what}`, async (t) => {
    const ui = await standIn(t, { tiles: [...(tile ? [tile] : []), ...tilesOn('t2')] });
    const base = { url: ui.url, tokenFile: tokenFileOf(t), dashboardId: 'd1', webhookId: 'w1' };
    const id = { id: 't1', ...(query && { query }) };
    const tiles = { 'nas-backup-failed': id, 'nas-backup-missing': { id: 't2' } };
    const alerts = await rig(t, { hyperdx: { ...base, tiles } });
    const [first, second] = (await alerts.ask<{ ui: InUi[] }>('bootstrap')).ui;
    t.is(first?.change, 'rejected');
    t.regex(first?.reason ?? '', reason);
    t.is(second?.change, 'created');
    t.is(ui.alerts.length, 1);
  });
}

test('[O17] of a raw-SQL tile it is said that nobody could see whether it is grouped', async (t) => {
  const ui = await standIn(t, { tiles: [{ id: 't1', config: { ...chart, configType: 'sql' } }] });
  const base = { url: ui.url, tokenFile: tokenFileOf(t), dashboardId: 'd1', webhookId: 'w1' };
  const alerts = await rig(t, {
    hyperdx: { ...base, tiles: { 'nas-backup-failed': { id: 't1', query: 'sql' } } },
  });
  const [done] = (await alerts.ask<{ ui: InUi[] }>('bootstrap')).ui;
  t.is(done?.change, 'created');
  t.regex(done?.reason ?? '', /not checked whether the tile is un-grouped/);
});

test('[O17] an unknown dashboard or webhook, and an alert that the UI changes when saving it, are errors', async (t) => {
  const tiles = { 'nas-backup-failed': { id: 't1' } };
  const failing = async (more: object, message: RegExp, ui: Hyperdx) => {
    const base = { url: ui.url, tokenFile: tokenFileOf(t), dashboardId: 'd1', webhookId: 'w1' };
    const alerts = await rig(t, { hyperdx: { ...base, tiles, ...more } });
    await t.throwsAsync(alerts.ask('bootstrap'), { message });
  };
  await failing({ dashboardId: 'd2' }, /404 to GET \/dashboards\/d2/, await standIn(t));
  await failing({ webhookId: 'w2' }, /400 to POST \/alerts: .*Webhook not found/, await standIn(t));
  const forgetful = await standIn(t);
  forgetful.alter = (alert) => ({ ...alert, threshold: 5 });
  await failing({}, /did not keep "NAS backup snapshot FAILED" as it was sent/, forgetful);
});
