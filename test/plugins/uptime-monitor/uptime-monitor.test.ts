import { chmodSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { z } from 'zod';
import { type AlertRaised, alertRaised } from '../../../src/core/contracts/alerts.ts';
import { runTrouble, type UptimeMonitor, UptimeMonitorToken } from '../../../src/core/contracts/uptime.ts';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import { definePlugin } from '../../../src/core/host/plugin/definition.ts';
import { createRuntime, type Runtime } from '../../../src/core/host/runtime/runtime.ts';
import { SqliteReader } from '../../../src/core/kernel/log/sqlite-reader.ts';
import { verifyLog } from '../../../src/core/kernel/replay/verify-log.ts';
import { uptime } from '../../../src/plugins/uptime/index.ts';
import { uptimeMonitor } from '../../../src/plugins/uptime-monitor/index.ts';
import { tempDir } from '../../support/temp.ts';
import { PATIENCE_MS } from '../../support/until.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

type Options = NonNullable<Parameters<typeof uptimeMonitor>[0]>;

const watchdog = {
  name: 'clickstack-watchdog',
  title: 'Watchdog',
  interval: 300,
  retries: 1,
  remindEvery: 3_600,
};

interface Rig {
  readonly runtime: Runtime;
  readonly clock: VirtualClock;
  readonly url: string;
  readonly alerts: AlertRaised[];
  readonly client: UptimeMonitor;
  readonly lines: string[];
  token(name?: string): string;
  push(query?: string, token?: string, init?: RequestInit): Promise<{ status: number; body: any }>;
  json(path: string): Promise<any>;
  /** Moves time in steps, so that what is decided becomes durable between them. */
  pass(seconds: number): Promise<void>;
  settled(): Promise<void>;
}

async function rig(
  t: ExecutionContext,
  {
    dir = tempDir(t),
    clock = new VirtualClock(),
    hasOwn = false,
    monitors = [watchdog],
    ...rest
  }: Options & {
    dir?: string;
    clock?: VirtualClock;
    /** With the monitors that the plugin lists unless configured. */
    hasOwn?: boolean;
  } = {},
): Promise<Rig & { dir: string }> {
  let client: UptimeMonitor | undefined;
  const probe = definePlugin({
    name: 'probe',
    options: z.strictObject({}),
    requires: [UptimeMonitorToken],
    start(services) {
      client = services.get(UptimeMonitorToken);
    },
    register() {},
  });
  const lines: string[] = [];
  const entries = [uptime(), uptimeMonitor({ port: 0, ...(!hasOwn && { monitors }), ...rest }), probe()];
  const { plugins } = resolveConfig({ plugins: entries }, { env: {} });
  const logger = createLogger({
    level: 'debug',
    destination: { write: (line: string) => void lines.push(line) },
  } as never);
  const runtime = createRuntime({ plugins, dataDir: dir, clock, logger });
  t.teardown(() => runtime.stop('test over'));
  await runtime.start();
  const { bus, log } = runtime.services;
  const alerts: AlertRaised[] = [];
  bus.subscribe(alertRaised, 'test', ({ payload }) => alerts.push(payload));
  const url = runtime.surfaces.uptime!.url;
  const token = (name = 'clickstack-watchdog') =>
    readFileSync(join(dir, 'secrets', 'push', name), 'utf8').trim();
  const settled = async () => {
    for (let round = 0; round < 3; round += 1) {
      await log.whenDurable(log.lastSeq());
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  return {
    dir,
    runtime,
    clock,
    url,
    alerts,
    lines,
    client: client!,
    token,
    settled,
    async push(query = 'status=up&msg=OK&ping=', given = token(), init = {}) {
      const answer = await fetch(`${url}/api/push/${given}?${query}`, init);
      return { status: answer.status, body: await answer.json().catch(() => undefined) };
    },
    json: async (path) => (await fetch(url + path)).json(),
    async pass(seconds) {
      clock.jump(seconds * 1_000);
      await settled();
      // What was armed by what fired, and is due by now.
      clock.jump(0);
      await settled();
    },
  };
}

test('[O16] a push is taken by any method, and each way to fail has its own msg behind the same 404', async (t) => {
  const { push, token, url, json, runtime, dir, lines, settled } = await rig(t);
  t.is(statSync(join(dir, 'secrets', 'push', 'clickstack-watchdog')).mode & 0o777, 0o600);
  t.regex(token(), /^[\w-]{32}$/, '24 random bytes, as long as a token of Uptime Kuma');
  for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
    t.deepEqual(await push(undefined, undefined, { method }), { status: 200, body: { ok: true } }, method);
  }
  const form = { method: 'POST', body: new URLSearchParams({ status: 'down' }) };
  t.deepEqual(await push('', undefined, form), { status: 200, body: { ok: true } }, 'a body says nothing');

  const refused = async (query: string, reason: string, msg: RegExp, given?: string) => {
    const { status, body } = await push(query, given);
    t.is(status, 404, query);
    t.like(body, { ok: false, reason });
    t.regex(body.msg, msg);
  };
  await refused(
    '',
    'unknown-token',
    /^Monitor not found or not active: no monitor has this push token/,
    'nope',
  );
  for (const ping of ['-1', '-0.5ms', '1e99', '999999999999999', 'Infinity']) {
    await refused(`status=up&ping=${ping}`, 'bad-value', /^Invalid ping value/);
  }
  t.deepEqual((await push('status=&msg=&ping=')).body, { ok: true }, 'an empty value is none');
  t.like(await push('status=down&probe=1'), {
    status: 200,
    body: { ok: true, msg: 'clickstack-watchdog would take a beat; this was none.' },
  });
  t.is((await json('/status/Clickstack-Watchdog.json')).monitors[0].state, 'up', 'a probe changes nothing');

  const control = runtime.services.actors;
  const ref = 'uptime-monitor.monitor/clickstack-watchdog';
  control.deliver(ref, { type: 'PAUSE', at: 1, by: 'ann' });
  await refused('status=up', 'paused', /^Monitor not found or not active: clickstack-watchdog is paused/);
  control.deliver(ref, { type: 'UNPAUSE', at: 1, by: 'ann' });

  // Whatever is not exactly `up` is DOWN, with a 200.
  t.deepEqual(await push('status=UP&msg=%3Cb%3E'), {
    status: 200,
    body: { ok: true, msg: 'clickstack-watchdog is DOWN now, for its status is not exactly up.' },
  });
  t.is((await json('/status/clickstack-watchdog.json')).monitors[0].state, 'down');
  await settled();
  t.false(lines.join('').includes(token()), 'no log line holds a token');
  t.is((await fetch(`${url}/status/none`)).status, 404);
});

test('[O16] values are read as Uptime Kuma reads them: pings by their leading number, a doubled status as not up', async (t) => {
  const { push, runtime, url, token } = await rig(t);
  const context = () =>
    runtime.services.actors.snapshot('uptime-monitor.monitor/clickstack-watchdog')!.context as any;
  for (const [query, ping] of [
    ['ping=1.5', 1.5],
    ['ping=12ms', 12],
    ['ping=1e3', 1_000],
    ['ping=7&ping=9', 7],
    ['ping=abc', undefined],
    ['ping=', undefined],
  ] as const) {
    t.deepEqual(await push(`status=up&${query}`), { status: 200, body: { ok: true } }, query);
    t.is(context().lastPing, ping, query);
  }
  t.deepEqual(await push('msg=a&msg=b'), { status: 200, body: { ok: true } });
  t.is(context().lastMsg, 'a,b');
  const { beats } = context();
  const page = await fetch(`${url}/api/push/${token()}/?status=up`);
  t.is(page.status, 200);
  t.regex(page.headers.get('content-type')!, /^text\/html/);
  t.is(context().beats, beats, 'that page takes no beat');
  t.is((await push('status=up&status=up')).body.ok, true);
  t.is(context().reported, 'it gives no reason', 'a status that is given twice is not exactly up');
});

test('[O16] badges have the texts of Uptime Kuma, of the period that they name, and N/A for what is not known', async (t) => {
  const { push, url, pass } = await rig(t, {
    monitors: [watchdog, { ...watchdog, name: 'other', slug: 'clickstack-watchdog', interval: 60 }],
  });
  const name = async (path: string) => {
    const svg = await (await fetch(url + path)).text();
    const label = /^<svg [^>]*role="img" aria-label="([^"]*)"/.exec(svg)?.[1];
    t.is(/<title>(.*)<\/title>/.exec(svg)?.[1], label, path);
    return label;
  };
  t.is(await name('/api/badge/1/status'), 'Status: Pending');
  t.is(await name('/api/badge/1/uptime'), 'N/A', 'nothing is known before the first beat');
  for (const ping of [10, 21]) {
    await push(`ping=${ping}`);
    await pass(60);
  }
  t.is(await name('/api/badge/1/status'), 'Status: Up');
  t.is(await name('/api/badge/clickstack-watchdog/uptime'), 'Uptime (24h): 100.0%');
  t.is(await name('/api/badge/1/uptime/720'), 'Uptime (720h): 100.0%');
  t.is(await name('/api/badge/1/uptime/30d'), 'Uptime (30d): 100.0%');
  t.is(await name('/api/badge/1/ping'), 'Avg. Ping (24h): 15ms');
  t.is(await name('/api/badge/1/ping/720'), 'Avg. Ping (720h): 15ms');
  t.is(await name('/api/badge/1/avg-response'), 'Avg. Response (24h): 15ms');
  t.is(await name('/api/badge/1/response'), 'Response: 21ms');
  t.is(await name('/api/badge/1/cert-exp'), 'No/Bad Cert', 'a push monitor meets no certificate');
  t.is(await name('/api/badge/2/ping'), 'N/A');
  t.is(await name('/api/badge/1/ping/731'), 'N/A', 'averages are kept for 720 hours');
  t.is(await name('/api/badge/none/status'), 'N/A', 'an image all the same');
  t.is(await name('/api/badge/0/uptime/24h'), 'N/A');
  t.is(await name('/api/badge/1/status?label=a%3Cb&upLabel=fine'), 'a&lt;b: fine');
  t.is(await name('/api/badge/1/response?labelPrefix=x+&suffix=+msec'), 'x Response: 21 msec');
  t.is(await name('/api/badge/1/uptime?labelPrefix=x+&labelSuffix=+hours'), 'x Uptime (24 hours): 100.0%');
  t.is(await name('/api/badge/1/uptime?label=mine&labelSuffix=+hours'), 'mine: 100.0%');
  t.is(await name('/api/badge/1/ping/720?labelSuffix='), 'Avg. Ping (720): 15ms');
  t.is(await name('/api/badge/1/avg-response?labelSuffix=%21'), 'Avg. Response (24h)!: 15ms');
  for (const path of ['uptime/0', 'uptime/soon', 'uptime/366d', 'nonsense']) {
    t.is((await fetch(`${url}/api/badge/1/${path}`)).status, 404, path);
  }
  t.is(await name('/api/status-page/clickstack-watchdog/badge'), 'Degraded', 'one of two has never beaten');
  await push('status=down');
  t.is(await name('/api/badge/1/status'), 'Status: Down');
  await pass(601);
  t.regex((await name('/api/badge/1/uptime'))!, /^Uptime \(24h\): \d\d\.\d\d%$/);
  t.is(await name('/api/status-page/clickstack-watchdog/badge'), 'Down');
  await pass(90_000);
  t.is(await name('/api/badge/1/ping'), 'N/A', 'no ping came within the last 24 hours');
  t.is(await name('/api/badge/1/ping/720'), 'Avg. Ping (720h): 15ms');
  t.is(await name('/api/badge/1/uptime'), 'Uptime (24h): 0.000%');
  t.not(await name('/api/badge/1/uptime/720'), 'Uptime (720h): 0.000%');
});

test('[O16] an uptime whose period reaches beyond the changes that are kept is not known', async (t) => {
  const { push, url, pass } = await rig(t);
  const uptime = async () =>
    /aria-label="([^"]*)"/.exec(await (await fetch(`${url}/api/badge/1/uptime`)).text())?.[1];
  for (let round = 0; round < 25; round += 1) {
    await push('status=up');
    await pass(1);
    await push('status=down');
    await pass(1);
  }
  t.is(await uptime(), 'N/A');
});

test('[O16] after a restart, pages and badges show the same beats, pings and uptime as before', async (t) => {
  const dir = tempDir(t);
  const clock = new VirtualClock();
  const first = await rig(t, { dir, clock });
  for (let beat = 0; beat < 30; beat += 1) {
    await first.push(`ping=${beat + 0.5}`);
    await first.pass(60);
  }
  await first.push('status=down&msg=broken');
  await first.settled();
  const { actors } = first.runtime.services;
  const monitor = 'uptime-monitor.monitor/clickstack-watchdog';
  actors.deliver(monitor, { type: 'PAUSE', at: clock.now(), by: 'ann' });
  for (const query of ['ping=7', 'status=down']) t.is((await first.push(query)).status, 404, 'it is paused');
  actors.deliver(monitor, { type: 'UNPAUSE', at: clock.now(), by: 'ann' });
  await first.push('ping=8');
  await first.push('status=down&msg=broken');
  await first.settled();
  const shown = async ({ json, url }: Rig) => ({
    beats: await json('/api/status-page/heartbeat/clickstack-watchdog'),
    page: (await json('/status/clickstack-watchdog.json')).monitors,
    badges: await Promise.all(
      ['status', 'uptime', 'uptime/720', 'ping', 'avg-response', 'response'].map(async (kind) =>
        (await fetch(`${url}/api/badge/1/${kind}`)).text(),
      ),
    ),
  });
  const before = await shown(first);
  t.is(before.beats.heartbeatList['1'].length, 34, '33 beats that were taken, and the state');
  t.like(before.beats.heartbeatList['1'][1], { status: 1, ping: 1.5 });
  await first.runtime.stop('restart');

  const second = await rig(t, { dir, clock });
  t.deepEqual(await shown(second), before);
  for (let beat = 0; beat < 80; beat += 1) await second.push(`ping=${beat}`);
  const { heartbeatList } = await second.json('/api/status-page/heartbeat/clickstack-watchdog');
  t.is(heartbeatList['1'].length, 100);
  t.like(heartbeatList['1'][0], { ping: 13.5 }, 'the newest hundred, of both');
  t.like(heartbeatList['1'][99], { ping: 79 });
  t.deepEqual(await second.json('/api/status-page/heartbeat/none'), { heartbeatList: {}, uptimeList: {} });
});

test('[O16] unless configured: the watchdog is DOWN after 600 s, the reconciler after 300 s, on the port of Uptime Kuma', async (t) => {
  const { push, pass, json, token } = await rig(t, { hasOwn: true });
  const names = ['clickstack-watchdog', 'router-ula'];
  const states = () =>
    Promise.all(names.map(async (name) => (await json(`/status/${name}.json`)).monitors[0].state));
  for (const name of names) t.deepEqual((await push('status=up', token(name))).body, { ok: true });
  await pass(299);
  t.deepEqual(await states(), ['up', 'up']);
  await pass(2);
  await pass(1);
  t.deepEqual(await states(), ['up', 'down']);
  await pass(29);
  t.deepEqual(await states(), ['late', 'down']);
  await pass(268);
  t.deepEqual(await states(), ['late', 'down']);
  await pass(3);
  t.deepEqual(await states(), ['down', 'down']);
  const [plugin] = resolveConfig({ plugins: [uptimeMonitor()] }, { env: {} }).plugins;
  t.is(plugin?.options.port, 3001);
});

test('[O16] a title has 1 to 100 characters, and another one is refused by its name', (t) => {
  const titled = (title: string) =>
    resolveConfig({ plugins: [uptimeMonitor({ monitors: [{ name: 'm', title }] })] }, { env: {} });
  t.notThrows(() => titled('t'.repeat(100)));
  for (const title of ['', 't'.repeat(101)]) t.throws(() => titled(title), { message: /title/ });
});

test('[O16] silence is DOWN after 600 s, told once with what the last run came to, and a beat resolves it', async (t) => {
  const { push, pass, alerts, runtime, json, clock, dir } = await rig(t);
  await push('status=up&msg=stale%3D4s+drift%3D0&ping=7');
  await pass(299);
  await push('status=up&msg=stale%3D5s+drift%3D0&ping=7');
  const text = 'HEALTH CHECK FAILED: database: nothing listens there';
  runtime.services.bus.publish(runTrouble, {
    monitor: 'clickstack-watchdog',
    at: clock.now(),
    outcome: 'unhealthy',
    text,
  });
  await pass(599);
  t.deepEqual(alerts, []);
  t.is((await json('/status/clickstack-watchdog.json')).monitors[0].state, 'late');
  await pass(1);
  t.is(alerts.length, 1);
  t.like(alerts[0], { name: 'uptime-monitor.down', severity: 'critical', labels: { state: 'firing' } });
  t.regex(
    alerts[0]!.text,
    /^Watchdog is DOWN: no beat for 10 min; its last run was made, and found: HEALTH CHECK FAILED: database: nothing listens there; the last good beat said: stale=5s drift=0\.$/,
  );
  t.regex(JSON.stringify(runtime.health()['uptime-monitor']), /Watchdog is DOWN: no beat for 10 min/);
  await pass(3_600);
  t.like(alerts[1], { labels: { state: 'firing', reminder: '1' } });
  await push();
  await pass(0);
  t.like(alerts[2], { severity: 'info', text: 'Watchdog beats again.', labels: { state: 'resolved' } });
  t.is(alerts.length, 3);
  await runtime.stop('done');
  const reader = new SqliteReader(dir);
  const definitions = new Map(runtime.registrations.actors.map((actor) => [actor.type, actor]));
  t.is(verifyLog(reader, definitions).divergence, undefined);
  reader.close();
});

test('[O16] a token that is replaced counts at once, the old one no more, and a file that cannot be used ends nothing', async (t) => {
  const { push, token, dir, lines } = await rig(t);
  const old = token();
  const file = join(dir, 'secrets', 'push', 'clickstack-watchdog');
  const until = async (given: string, status: number) => {
    for (const end = performance.now() + PATIENCE_MS; performance.now() < end; ) {
      if ((await push('status=up', given)).status === status) return;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    t.fail(`never answered ${status}`);
  };
  writeFileSync(`${file}.new`, 'anothertoken\n', { mode: 0o600 });
  renameSync(`${file}.new`, file);
  await until('anothertoken', 200);
  t.is((await push('status=up', old)).status, 404);
  chmodSync(file, 0o644);
  while (!lines.join('').includes('uptime-monitor.token_not_read'))
    await new Promise((done) => setTimeout(done, 10));
  t.is((await push('status=up', 'anothertoken')).status, 200);
  rmSync(file);
  await until('anothertoken', 404);
  t.is((await push('status=up', token())).status, 200, 'one that is gone is made anew');
});

test('[O16] the client of this process pushes to the embedded monitor by the same way', async (t) => {
  const { client, runtime } = await rig(t);
  // Its deadline is on the clock of the runtime, which stands still here.
  t.deepEqual(await client.push('clickstack-watchdog', { status: 'up', msg: 'hello', ping: 3 }), {
    kind: 'delivered',
    status: 200,
    body: '{"ok":true}',
  });
  t.like(runtime.services.actors.snapshot('uptime-monitor.monitor/clickstack-watchdog')!.context, {
    lastMsg: 'hello',
    lastPing: 3,
  });
  runtime.services.actors.deliver('uptime-monitor.monitor/clickstack-watchdog', {
    type: 'PAUSE',
    at: 1,
    by: 'ann',
  });
  t.like(await client.push('clickstack-watchdog', { status: 'up', msg: 'x' }), {
    kind: 'refused',
    status: 404,
    msg: 'Monitor not found or not active: clickstack-watchdog is paused.',
  });
});

test('[O16] in every state: after a restart of our own, however long, nobody is called DOWN for it, and what was told is not told again', async (t) => {
  const dir = tempDir(t);
  const clock = new VirtualClock();
  const monitors = ['waiting', 'up', 'late', 'down', 'acked', 'paused'].map((name) => ({
    ...watchdog,
    name,
    title: name,
  }));
  const first = await rig(t, { dir, clock, monitors });
  const act = (name: string, event: { type: string; [field: string]: unknown }) =>
    first.runtime.services.actors.deliver(`uptime-monitor.monitor/${name}`, {
      at: clock.now(),
      by: 'ann',
      ...event,
    });
  const tokenOfWaiting = first.token('waiting');
  for (const name of ['late', 'down', 'acked']) await first.push('', first.token(name));
  await first.pass(350);
  for (const name of ['waiting', 'up', 'late']) await first.push('', first.token(name));
  await first.pass(251); // down and acked are
  await first.push('', first.token('up'));
  await first.pass(60); // late is late
  act('waiting', { type: 'PAUSE' });
  act('waiting', { type: 'UNPAUSE' });
  act('acked', { type: 'ACK', forMs: 86_400_000 });
  act('paused', { type: 'PAUSE' });
  await first.settled();
  t.deepEqual(first.alerts.map(({ labels }) => labels.monitor).sort(), ['acked', 'down', 'paused', 'paused']);
  const states = (runtime: Runtime) =>
    Object.fromEntries(
      monitors.map(({ name }) => [
        name,
        JSON.stringify(runtime.services.actors.snapshot(`uptime-monitor.monitor/${name}`)!.value),
      ]),
    );
  const before = states(first.runtime);
  t.deepEqual(before, {
    waiting: '"waiting"',
    up: '"up"',
    late: '"late"',
    down: '{"down":"notified"}',
    acked: '{"down":"acknowledged"}',
    paused: '"paused"',
  });
  await first.runtime.stop('restart');

  clock.jump(30 * 60_000); // shorter than the spacing of reminders
  const second = await rig(t, { dir, clock, monitors });
  await second.pass(0);
  t.deepEqual(states(second.runtime), before);
  t.deepEqual(second.alerts, []);
  t.is(second.token('waiting'), tokenOfWaiting, 'tokens stay');
  await second.pass(299);
  for (const name of ['waiting', 'up', 'late']) await second.push('', second.token(name));
  await second.pass(250);
  t.deepEqual(second.alerts, [], 'whoever beats within its interval is never DOWN');
  await second.pass(400);
  t.deepEqual(second.alerts.map(({ labels }) => labels.monitor).sort(), ['late', 'up', 'waiting']);
});

test('[O16] a clock that jumps, forward or back, calls nobody DOWN and hides no silence', async (t) => {
  const clock = new VirtualClock();
  const { push, pass, alerts } = await rig(t, { clock });
  const calls = () => alerts.filter(({ name }) => name !== 'clock.jumped');
  await push();
  clock.set(86_400_000);
  await pass(1);
  t.deepEqual(calls(), []);
  await push();
  clock.set(-2 * 86_400_000);
  await pass(250);
  await push();
  await pass(300);
  await pass(299);
  t.deepEqual(calls(), []);
  await pass(1);
  t.is(calls().length, 1);
  t.true(alerts.length > 1, 'the jumps themselves are said');
});

test('[O16] status pages and badges escape everything, run nothing, and tell others no reasons', async (t) => {
  const nasty = { ...watchdog, title: `<img src=x onerror="alert(1)">&'` };
  const { push, url, pass, json } = await rig(t, {
    monitors: [nasty, { ...watchdog, name: 'other', slug: 'clickstack-watchdog' }],
  });
  await push(`status=up&msg=${encodeURIComponent('<script>alert("x")</script>\u001b[2J')}`);
  const page = await fetch(`${url}/status/clickstack-watchdog`);
  const html = await page.text();
  t.false(/<script|<img|onerror="/.test(html));
  t.false(html.includes('\u001b'));
  t.regex(html, /&lt;script&gt;/);
  t.regex(page.headers.get('content-security-policy')!, /^default-src 'none'; style-src 'sha256-/);
  t.regex(html, /<html lang="en">[\s\S]*role="img" aria-label="Last 24 hours/);
  t.regex(html, /prefers-color-scheme:dark/);
  for (const kind of ['status', 'uptime', 'ping']) {
    const badge = await fetch(`${url}/api/badge/clickstack-watchdog/${kind}`);
    t.is(badge.headers.get('content-type'), 'image/svg+xml; charset=utf-8');
    t.notRegex(await badge.text(), /<img/);
  }
  t.like(await json('/api/status-page/CLICKSTACK-watchdog'), {
    config: { slug: 'clickstack-watchdog' },
    publicGroupList: [
      {
        monitorList: [
          { id: 1, type: 'push' },
          { id: 2, name: 'Watchdog' },
        ],
      },
    ],
  });
  const beats = await json('/api/status-page/heartbeat/clickstack-watchdog');
  t.like(beats.heartbeatList['1'][0], { status: 1, msg: '', ping: null });
  t.is(beats.uptimeList['1_24'], 0, 'nothing is known of the first moment');
  await pass(601);
  const fallen = await (await fetch(`${url}/status/clickstack-watchdog`)).text();
  t.regex(fallen, /2 of 2 down/);
  t.regex(fallen, /<meta http-equiv="refresh" content="60">/, 'a page that is left open does not stay green');
  const views = (await json('/status/clickstack-watchdog.json')).monitors;
  t.is(views[1].uptime24h, 0, 'what never beat was never up');
  t.regex(await (await fetch(url)).text(), /2 of 2 down/);
  await push();
  for (let beat = 0; beat < 60; beat += 1) {
    await pass(301);
    await push();
  }
  const [{ changes }] = (await json('/status/clickstack-watchdog.json')).monitors;
  t.deepEqual(
    changes.map(({ to }: { to: string }) => to),
    ['up', 'late', 'down', 'up'],
    'a sender that is always a little late crowds no outage out',
  );

  const open = await rig(t, { host: '127.0.0.1', details: false });
  await open.push('status=down&msg=secret-host');
  t.notRegex(await (await fetch(`${open.url}/status/clickstack-watchdog`)).text(), /secret-host/);
  t.notRegex(JSON.stringify(await open.json('/status/clickstack-watchdog.json')), /secret-host/);
});
