import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { z } from 'zod';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import { definePlugin, type PluginEntry } from '../../../src/core/host/plugin/definition.ts';
import { createRuntime, type Runtime } from '../../../src/core/host/runtime/runtime.ts';
import { version } from '../../../src/core/kernel/version.ts';
import { consolePlugin } from '../../../src/plugins/console/index.ts';
import { fakeDisk, startChild } from '../../support/disk.ts';
import { tempDir } from '../../support/temp.ts';
import { PATIENCE_MS } from '../../support/until.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const script = new URL('./runtime-child.ts', import.meta.url);

interface Started {
  readonly runtime: Runtime;
  readonly url: string;
  readonly lines: Record<string, unknown>[];
}

async function start(
  t: ExecutionContext,
  dataDir: string,
  others: PluginEntry[] = [],
  options: Parameters<typeof consolePlugin>[0] = {},
): Promise<Started> {
  const lines: Record<string, unknown>[] = [];
  const config = { plugins: [consolePlugin({ port: 0, ...options }), ...others] };
  const { plugins } = resolveConfig(config, { env: {} });
  const runtime = createRuntime({
    plugins,
    dataDir,
    clock: new VirtualClock(),
    logger: createLogger({ destination: { write: (line) => void lines.push(JSON.parse(line)) } }),
  });
  t.teardown(() => runtime.stop('test over'));
  await runtime.start();
  return { runtime, url: runtime.surfaces.console?.url ?? '', lines };
}

async function get(url: string): Promise<{ status: number; body: any }> {
  const response = await fetch(url);
  return { status: response.status, body: await response.json() };
}

const plugin = (name: string, register: Parameters<typeof definePlugin>[0]['register']) =>
  definePlugin({ name, options: z.strictObject({}), onFailure: 'continue', register })();

test('[C14] /healthz of a healthy runtime says who it is and how plugins and log are', async (t) => {
  const { runtime, url } = await start(t, tempDir(t));
  const { log } = runtime.services;
  await log.whenDurable(log.lastSeq());
  const { status, body } = await get(`${url}/healthz`);
  t.is(status, 200);
  const { clock, data, storage, ...own } = body;
  t.like(data, { state: 'unknown' }, 'nothing was checked yet');
  t.like(clock, { state: 'ok' });
  t.truthy(storage);
  t.deepEqual(own, {
    status: 'ok',
    pid: process.pid,
    startedAt: '2026-01-01T00:00:00.000Z',
    version,
    plugins: [{ name: 'console', state: 'started' }],
    log: { state: 'open', seq: 2, durableSeq: 2 },
  });
});

test('[R29] pid and start time of a run are in the log lines and in the event log', async (t) => {
  const { runtime, lines } = await start(t, tempDir(t));
  const run = { pid: process.pid, startedAt: Date.UTC(2026, 0, 1), version };
  t.like(
    lines.find(({ msg }) => msg === 'runtime.booted'),
    run,
  );
  const { log } = runtime.services;
  await log.whenDurable(log.lastSeq());
  const [, booted] = await Array.fromAsync(log.read({ actor: 'runtime.lifecycle/host' }));
  t.like(booted?.event, { type: 'BOOTED', ...run });
});

test('[R29] after a stop, the next run tells when and why', async (t) => {
  const dir = tempDir(t);
  const first = await start(t, dir);
  await first.runtime.stop('SIGTERM');
  const { url } = await start(t, dir);
  const { body } = await get(`${url}/healthz`);
  t.deepEqual(body.lastStop, {
    pid: process.pid,
    version,
    reason: 'SIGTERM',
    startedAt: '2026-01-01T00:00:00.000Z',
    stoppedAt: '2026-01-01T00:00:00.000Z',
  });
});

test('[R29] after a kill -9, the next run says that the one before was killed, and its pid', async (t) => {
  const dir = tempDir(t);
  const child = startChild(t, script, [dir]);
  await child.line(/^ready/);
  await child.kill('SIGKILL');
  const { url, lines } = await start(t, dir);
  const { status, body } = await get(`${url}/healthz`);
  t.is(status, 200);
  t.like(body.lastStop, { reason: 'killed', pid: child.process.pid, stoppedAt: undefined });
  t.like(lines.find(({ msg }) => msg === 'runtime.booted')?.lastStop as object, { reason: 'killed' });
});

test('[R29] a real restart shows as another pid and another start time', async (t) => {
  const dir = tempDir(t);
  const seen: { pid: number; startedAt: string }[] = [];
  for (let run = 0; run < 2; run += 1) {
    const child = startChild(t, script, [dir]);
    const url = (await child.line(/^ready/)).split(' ')[1];
    const { body } = await get(`${url}/healthz`);
    t.is(body.pid, child.process.pid);
    seen.push(body);
    child.say('stop SIGTERM');
    await new Promise((resolve) => child.process.once('close', resolve));
  }
  t.not(seen[0]?.pid, seen[1]?.pid);
  t.not(seen[0]?.startedAt, seen[1]?.startedAt);
});

test('[C12] a plugin that failed makes it degraded, with the reason, while the rest is ready', async (t) => {
  const broken = definePlugin({
    name: 'broken',
    options: z.strictObject({}),
    onFailure: 'continue',
    start() {
      throw new Error('the modem says password=hunter2');
    },
    register() {},
  })();
  const { url } = await start(t, tempDir(t), [broken]);
  const { status, body } = await get(`${url}/healthz`);
  t.is(status, 200, 'no probe restarts it for that');
  t.is(body.status, 'degraded');
  const entry = body.plugins.find(({ name }: { name: string }) => name === 'broken');
  t.is(entry.state, 'failed');
  t.regex(entry.reason, /the modem says password=\[redacted]/);
  t.is((await get(`${url}/readyz`)).status, 200);
  t.is((await get(`${url}/livez`)).status, 200);
});

test('[C14] while the disk is full it is failing and not ready, yet alive; with space again it is well', async (t) => {
  const dir = tempDir(t);
  const disk = fakeDisk(dir);
  const child = startChild(t, script, [join(dir, 'data')], disk.env);
  const url = (await child.line(/^ready/)).split(' ')[1];
  t.is((await get(`${url}/healthz`)).body.status, 'ok');
  disk.fill();
  child.say('send a');
  const failing = await until(
    () => get(`${url}/healthz`),
    ({ body }) => body.status === 'failing',
  );
  t.is(failing.status, 503);
  t.is(failing.body.log.state, 'frozen');
  t.true(failing.body.log.durableSeq < failing.body.log.seq);
  t.regex(failing.body.log.reason, /full/);
  const ready = await get(`${url}/readyz`);
  t.is(ready.status, 503);
  t.false(ready.body.ready);
  t.regex(ready.body.reasons[0], /^the log is frozen: .*full/);
  t.is((await get(`${url}/livez`)).status, 200);
  disk.free();
  const well = await until(
    () => get(`${url}/healthz`),
    ({ body }) => body.status === 'ok',
  );
  t.is(well.body.log.durableSeq, well.body.log.seq);
});

test('[C14] it is not ready while a fact says so, with its redacted reason, and well in all else', async (t) => {
  let ready = false;
  const fact = () => ({ ready, reason: 'behind password=hunter2' });
  const { url } = await start(t, tempDir(t), [plugin('other', (context) => context.health('other', fact))]);
  const { status, body } = await get(`${url}/readyz`);
  t.is(status, 503);
  t.deepEqual(body, { ready: false, reasons: ['other: behind password=[redacted]'] });
  t.is((await get(`${url}/healthz`)).body.status, 'ok');
  ready = true;
  t.is((await get(`${url}/readyz`)).status, 200);
});

test('[R40] a fact that a plugin contributes is shown under its name', async (t) => {
  let pending: { transID: string; secondsLeft: number } | undefined = { transID: 't1', secondsLeft: 90 };
  const other = plugin('other', (context) => context.health('transaction', () => pending));
  const { url } = await start(t, tempDir(t), [other]);
  const { status, body } = await get(`${url}/healthz`);
  t.is(status, 200);
  t.deepEqual(body.transaction, { transID: 't1', secondsLeft: 90 });
  pending = undefined;
  t.false('transaction' in (await get(`${url}/healthz`)).body);
});

test('[R32] a contributed fact is redacted, cannot pose as the status, and may fail alone', async (t) => {
  const other = plugin('other', (context) => {
    context.health('leak', () => ({ psk: 'hunter2', note: 'Bearer hunter2hunter2' }));
    context.health('status', () => 'fine');
    context.health('broken', () => {
      throw new Error('no');
    });
  });
  const { url } = await start(t, tempDir(t), [other]);
  const { status, body } = await get(`${url}/healthz`);
  t.is(status, 200);
  t.is(body.status, 'ok');
  t.deepEqual(body.leak, { psk: '[redacted]', note: 'Bearer [redacted]' });
  t.truthy(body.broken.error);
});

test('[C14] /metrics tells of records, commits, mailbox, effects, event loop and memory', async (t) => {
  const { runtime, url } = await start(t, tempDir(t));
  const { log } = runtime.services;
  await log.whenDurable(log.lastSeq());
  const response = await fetch(`${url}/metrics`);
  t.is(response.status, 200);
  t.regex(response.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/);
  const text = await response.text();
  for (const name of [
    'log_records_total [1-9]',
    'log_commit_seconds_count [1-9]',
    'mailbox_depth 0',
    'event_loop_lag_seconds ',
    'process_resident_memory_bytes [1-9]',
    'process_cpu_seconds_total\\{mode="user"\\} ',
    'build_info\\{',
  ]) {
    t.regex(text, new RegExp(`^holdfast_${name}`, 'm'));
  }
  t.regex(text, /^# TYPE holdfast_effects_total counter$/m);
});

test('[C9] the newest checkpoint is a record of the lifecycle actor', async (t) => {
  const dir = tempDir(t);
  const first = await start(t, dir);
  await first.runtime.stop('SIGTERM');
  const { runtime } = await start(t, dir);
  const context = runtime.services.actors.snapshot('runtime.lifecycle/host')?.context as any;
  t.true(context.checkpoint.seq > 0);
  t.regex(context.checkpoint.digest, /^\w+$/);
});

test('[C14] the root is a page that links to the rest', async (t) => {
  const { url } = await start(t, tempDir(t));
  const response = await fetch(url);
  t.regex(response.headers.get('content-type') ?? '', /^text\/html/);
  const page = await response.text();
  for (const [, path] of page.matchAll(/href="([^"]+)"/g)) t.is((await fetch(url + path)).status, 200);
});

test('[C14] beyond loopback the console asks for the token in its file, read at each request', async (t) => {
  const dir = tempDir(t);
  const tokenFile = join(dir, 'token');
  writeFileSync(tokenFile, 'first\n', { mode: 0o600 });
  const { url } = await start(t, dir, [], { host: '0.0.0.0', insecure: true, tokenFile });
  const status = async (token: string) =>
    (await fetch(`${url}/healthz`, { headers: { authorization: `Bearer ${token}` } })).status;
  t.is((await fetch(`${url}/healthz`)).status, 401);
  t.is(await status('first'), 200);
  writeFileSync(tokenFile, 'second\n');
  t.is(await status('first'), 401);
  t.is(await status('second'), 200);
});

async function until<T>(read: () => Promise<T>, done: (value: T) => boolean): Promise<T> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const value = await read();
    if (done(value)) return value;
    if (performance.now() > deadline) throw new Error(`still ${JSON.stringify(value)}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
