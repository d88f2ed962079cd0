import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { z } from 'zod';
import { resolveConfig } from '../../src/core/host/config/resolve.ts';
import { createLogger } from '../../src/core/host/logging/logger.ts';
import { definePlugin, type PluginEntry } from '../../src/core/host/plugin/definition.ts';
import { createRuntime, type Runtime } from '../../src/core/host/runtime/runtime.ts';
import { lockDataDir } from '../../src/core/kernel/log/lock.ts';
import { builtinPlugins } from '../../src/main.ts';
import { consolePlugin } from '../../src/plugins/console/index.ts';
import { router } from '../../src/plugins/router/index.ts';
import { call } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';

const console = () => consolePlugin({ port: 0 });

async function run(t: ExecutionContext, dataDir: string, entries: readonly PluginEntry[]): Promise<Runtime> {
  const { plugins } = resolveConfig({ plugins: entries }, { env: {} });
  const runtime = createRuntime({ plugins, dataDir, logger: createLogger({ level: 'silent' }) });
  t.teardown(() => runtime.stop('test over'));
  await runtime.start();
  const { log } = runtime.services;
  await log.whenDurable(log.lastSeq());
  return runtime;
}

const status = (dir: string) => call(['status', '--data-dir', dir], { cwd: dir, builtinPlugins });
const statusJson = async (dir: string) => {
  const { code, out } = await call(['status', '--json', '--data-dir', dir], { cwd: dir, builtinPlugins });
  return { code, ...JSON.parse(out) };
};

test('[R29] status of a running instance tells pid, start, version, surfaces, plugins and log, and exits 0', async (t) => {
  const dir = tempDir(t);
  const runtime = await run(t, dir, [console()]);
  const { code, out } = await status(dir);
  t.is(code, 0);
  t.regex(out, /^Holdfast is running and healthy\.\n/);
  t.is(out.match(/^ +data {2,}/gm)?.length, 1, 'the folder; the check of its files has a name of its own');
  t.regex(out, /^ +data check {2,}/m);
  t.notRegex(out, /^ +boot/m, 'the ids of a run are no facts');
  t.regex(out, new RegExp(`pid +${process.pid}, version \\d`));
  t.regex(out, /since +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC, for \d/);
  t.regex(out, new RegExp(`console +${runtime.surfaces.console?.url}`));
  t.regex(out, /plugins +1 started/);
  t.regex(out, /log +newest record \d+, all durable/);
  t.like(await statusJson(dir), { code: 0, state: 'ok', running: true, pid: process.pid });
});

test('[R40] status shows the pending transaction: its id, who, its deadline and the seconds left', async (t) => {
  const dir = tempDir(t);
  const runtime = await run(t, dir, [console(), router({ port: 0 })]);
  const url = `${runtime.surfaces.router?.url}/v1/config`;
  const config = (await (await fetch(`${url}/active`)).json()) as object;
  const body = JSON.stringify({ ...config, transactionOp: 'append', transID: 'change-7' });
  const headers = { 'content-type': 'application/json', 'user-agent': 'tester' };
  t.is((await fetch(`${url}/set`, { method: 'POST', headers, body })).status, 200);

  const { code, out } = await status(dir);
  t.is(code, 0);
  const [, left] =
    out.match(/transaction +change-7 by 127\.0\.0\.1 tester is pending; reverts at .* UTC, (\d+) s left/) ??
    [];
  t.true(Number(left) > 60 && Number(left) <= 120, out);
  t.like(await statusJson(dir), { transaction: { transID: 'change-7', who: '127.0.0.1 tester' } });

  await runtime.stop('SIGTERM');
  const after = await status(dir);
  t.is(after.code, 1);
  t.regex(after.out, /transaction +change-7 by .* is pending; the next start reverts it at .* s left/);
  const narrow = await call(['status', '--data-dir', dir], {
    cwd: dir,
    builtinPlugins,
    interactive: true,
    columns: 80,
  });
  t.true(
    narrow.out.split('\n').every((line) => line.length <= 80),
    narrow.out,
  );
  t.like(await statusJson(dir), { state: 'stopped', running: false, transaction: { transID: 'change-7' } });
});

test('[R29] status tells how the last run ended, and exits 1', async (t) => {
  const dir = tempDir(t);
  const runtime = await run(t, dir, [console()]);
  await runtime.stop('SIGTERM');
  const { code, out } = await status(dir);
  t.is(code, 1);
  t.regex(out, /^Holdfast is not running here\./);
  t.regex(out, new RegExp(`last stop +SIGTERM at .* ago \\(pid ${process.pid}, started .* UTC\\)`));
  t.like(await statusJson(dir), {
    code: 1,
    state: 'stopped',
    lastStop: { reason: 'SIGTERM', pid: process.pid },
  });
});

test('status of a folder where nothing ever ran says so, and makes nothing there', async (t) => {
  const dir = tempDir(t);
  const { code, out } = await call(['status', '--data-dir', join(dir, 'none')], { cwd: dir, builtinPlugins });
  t.is(code, 1);
  t.regex(out, /never run on this folder/);
  t.is((await status(dir)).code, 1);
});

test('[C14] a degraded instance names the plugin that failed, and status exits 1', async (t) => {
  const dir = tempDir(t);
  const lame = definePlugin({
    name: 'lame',
    options: z.strictObject({}),
    onFailure: 'continue',
    start() {
      throw new Error('it has no legs');
    },
    register() {},
  });
  await run(t, dir, [console(), lame()]);
  const { code, out } = await status(dir);
  t.is(code, 1);
  t.regex(out, /degraded/);
  t.regex(out, /lame failed: .*it has no legs/);
});

test('[C14] a folder that is taken, with nobody to ask, is told apart from one where nothing runs', async (t) => {
  const dir = tempDir(t);
  t.teardown(lockDataDir(dir));
  t.like(await statusJson(dir), { code: 1, state: 'starting', running: true });

  const content = { pid: 4711, startedAt: new Date().toISOString(), version: '0.0.0' };
  const runtimeFile = join(dir, 'runtime.json');
  writeFileSync(
    runtimeFile,
    JSON.stringify({ ...content, surfaces: { console: { url: 'http://127.0.0.1:1' } } }),
  );
  t.like(await statusJson(dir), { code: 1, state: 'unreachable', pid: 4711 });
  t.regex((await status(dir)).out, /cannot be read.*healthz does not answer \(/s);

  writeFileSync(runtimeFile, JSON.stringify({ ...content, surfaces: {} }));
  t.regex((await status(dir)).out, /no plugin serves a health page/);
});

test('[C14] an answer of another process on the port is not taken for the instance', async (t) => {
  const other = tempDir(t);
  const runtime = await run(t, other, [console()]);
  const dir = tempDir(t);
  t.teardown(lockDataDir(dir));
  const surfaces = { console: { url: runtime.surfaces.console?.url ?? '' } };
  const content = { pid: process.pid + 1, startedAt: new Date().toISOString(), version: '0.0.0', surfaces };
  writeFileSync(join(dir, 'runtime.json'), JSON.stringify(content));
  const { code, out } = await status(dir);
  t.is(code, 1);
  t.regex(out, /answered by another process/);
});
