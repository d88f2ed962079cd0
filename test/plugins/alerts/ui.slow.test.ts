import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import test from 'ava';
import { alertsOptions } from '../../../src/plugins/alerts/options.ts';
import type { InUi } from '../../../src/plugins/alerts/rules/ui.ts';
import { uiAlertsCheck } from '../../../src/plugins/alerts/rules/ui-check.ts';
import type { Scope } from '../../support/scope.ts';
import { tempDir } from '../../support/temp.ts';
import { type Options, rig } from './rig.ts';

const TOKEN = 'token-canary-4711';

/** Alerts of a UI: a list in pages, creation, and an update that replaces. */
async function standIn(t: Scope) {
  const alerts: any[] = [];
  const seen: { method: string; path: string; body?: any }[] = [];
  let page = 1_000;
  let sick: number | undefined;
  const server = createServer(async (asked, answer) => {
    const text = (await Array.fromAsync(asked.setEncoding('utf8'))).join('');
    const url = new URL(asked.url ?? '', 'http://ui');
    const { method = '' } = asked;
    const reply = (status: number, body: unknown) =>
      answer.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    seen.push({ method, path: url.pathname, ...(text !== '' && { body: JSON.parse(text) }) });
    if (asked.headers.authorization !== `Bearer ${TOKEN}`) return reply(401, { message: 'no' });
    if (sick) return reply(sick, { message: `sick, ${asked.headers.authorization}` });
    if (method === 'GET') {
      const from = Number(url.searchParams.get('offset') ?? 0);
      return reply(200, { data: alerts.slice(from, from + page), meta: { total: alerts.length } });
    }
    const body = JSON.parse(text);
    if (method === 'POST') {
      const made = { id: `a${alerts.length + 1}`, message: null, ...body };
      alerts.push(made);
      return reply(200, { data: made });
    }
    const at = alerts.findIndex(({ id }) => url.pathname.endsWith(`/${id}`));
    alerts[at] = { id: alerts[at].id, ...body };
    return reply(200, { data: alerts[at] });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    alerts,
    seen,
    writes: () => seen.filter(({ method }) => method !== 'GET').length,
    pages: (size: number) => {
      page = size;
    },
    fail: (status?: number) => {
      sick = status;
    },
  };
}

test('[O17,O29] alerts of the UI are upserted by name, the second time nothing is written, and what it would reject is never sent', async (t) => {
  const ui = await standIn(t);
  const dir = tempDir(t);
  const tokenFile = join(dir, 'token');
  writeFileSync(tokenFile, `${TOKEN}\n`, { mode: 0o600 });
  for (let each = 0; each < 5; each += 1) ui.alerts.push({ id: `x${each}`, name: `another ${each}` });
  ui.pages(2);
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
  });
  t.like(ui.alerts[6], { name: 'NAS backup telemetry MISSING (collector dark)', threshold: 1 });
  t.like(ui.alerts[6], { thresholdType: 'below', interval: '1h' });
  t.deepEqual(await bootstrap(), ['unchanged', 'unchanged', 'rejected', 'unchanged']);
  t.is(ui.writes(), 3);
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
  ui.fail(503);
  errors.push(await t.throwsAsync(bootstrap, { message: /HF_ALERTS_UI/ }));
  t.regex(String(errors[1]), /it answered 503 to GET/);
  t.notRegex([...errors.map(String), ...alerts.lines].join('\n'), /canary/);
});

test('[O17,O29] a raw-SQL tile on a sum and a tile of no rule are refused beforehand', async (t) => {
  const ui = await standIn(t);
  const dir = tempDir(t);
  const tokenFile = join(dir, 'token');
  writeFileSync(tokenFile, TOKEN, { mode: 0o600 });
  const base = { url: ui.url, tokenFile, dashboardId: 'd1', webhookId: 'w1' };
  const tiles = { 'nas-backup-missing': { id: 't2', query: 'sql' as const } };
  const alerts = await rig(t, { hyperdx: { ...base, tiles } });
  const [said] = (await alerts.ask<{ ui: InUi[] }>('bootstrap')).ui;
  t.is(said?.change, 'rejected');
  t.regex(said?.reason ?? '', /multi select or string select on metrics not supported/);
  t.is(ui.writes(), 0);
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
  t.like(await check(), { state: 'ok', found: 'no UI is configured, so no alert is sent to one' });
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
