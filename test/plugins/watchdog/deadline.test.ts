import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { type JobRun, jobRun } from '../../../src/core/contracts/jobs.ts';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import { createRuntime } from '../../../src/core/host/runtime/runtime.ts';
import type { RunReport } from '../../../src/machines/watchdog/run.ts';
import { columnar } from '../../../src/plugins/columnar/index.ts';
import { uptime } from '../../../src/plugins/uptime/index.ts';
import { runActor, watchdogReported, watchdogRequested } from '../../../src/plugins/watchdog/actor.ts';
import { watchdog } from '../../../src/plugins/watchdog/index.ts';
import { words } from '../../../src/plugins/watchdog/words.ts';
import { call, root, writeConfig } from '../../support/cli.ts';
import { tempDir } from '../../support/temp.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

/** A server that takes requests and never answers, and a promise of the first one. */
async function silentServer(t: ExecutionContext) {
  const asked = Promise.withResolvers<void>();
  const server = createServer(() => asked.resolve());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked: asked.promise };
}

test('[O13] a database that does not answer: the run ends at the deadline that was given, and so does all its work', async (t) => {
  const { url, asked } = await silentServer(t);
  const dataDir = tempDir(t);
  mkdirSync(join(dataDir, 'secrets', 'push'), { recursive: true, mode: 0o700 });
  writeFileSync(join(dataDir, 'secrets', 'push', 'clickstack-watchdog'), 'tok123\n', { mode: 0o600 });
  const entries = [columnar({ url }), uptime({ url }), watchdog({ cron: '0 0 29 2 *' })];
  const { plugins } = resolveConfig({ plugins: entries }, { env: {} });
  const clock = new VirtualClock();
  const runtime = createRuntime({ plugins, dataDir, clock, logger: createLogger({ level: 'silent' }) });
  t.teardown(async () => {
    const stopped = runtime.stop('test over');
    await clock.advance(60_000);
    await stopped;
  });
  await runtime.start();
  const { bus, actors, log } = runtime.services;
  const runs: JobRun[] = [];
  bus.subscribe(jobRun, 'test', ({ payload }) => runs.push(payload));
  const line = 'DEADLINE EXCEEDED: the run did not end within 3 s';
  const report = Promise.withResolvers<RunReport>();
  bus.subscribe(watchdogReported, 'test', ({ payload }) => report.resolve(payload));
  bus.publish(watchdogRequested, { deadlineMs: 3_000, remainingMs: 2_500 });
  await asked;
  await log.whenDurable(log.lastSeq());
  clock.jump(2_499);
  await log.whenDurable(log.lastSeq());
  t.deepEqual(actors.get(runActor, 'clickstack-watchdog')?.value, { running: 'checking' });
  clock.jump(1);
  t.like(await report.promise, {
    outcome: 'killed',
    exitCode: 124,
    lines: [line],
  });
  t.like(runs.at(-1), { phase: 'ended', outcome: 'failed', cause: 'deadline', text: line });
  t.like(runtime.health().watchdog, { ok: false, reason: `no heartbeat: ${line}` });
  // The line is not stored either, because the database does not answer; nothing waits for that any longer than a second.
  await clock.advance(1_000);
  const open = () =>
    [...actors.states()].flatMap(({ ref, effects }) =>
      ref.startsWith('watchdog.run/') ? Object.values(effects).map(({ type }) => type) : [],
    );
  for (let round = 0; round < 100 && open().length > 0; round += 1) {
    await log.whenDurable(log.lastSeq());
    await clock.advance(0);
  }
  t.deepEqual(open(), [], 'no work of the run is under way, and none is left for the next start');
  const told = (await Array.fromAsync(log.read()))
    .filter(({ actor }) => actor.startsWith('watchdog.run/'))
    .map((record) => words['watchdog.run']?.(record));
  t.is(told.filter((text) => text === 'checks the stack').length, 1);
  t.is(told.filter((text) => text === line).length, 1);
});

test('[O13] a run for which no time is left is ended at once, and one of more time than a job has is refused', async (t) => {
  const cwd = tempDir(t);
  writeConfig(
    cwd,
    "export default defineConfig({ plugins: [uptime({ url: 'http://127.0.0.1:1' }), watchdog()] });",
    [
      `import { uptime } from '${root}src/plugins/uptime/index.ts';`,
      `import { watchdog } from '${root}src/plugins/watchdog/index.ts';`,
    ],
  );
  const run = (deadline: string) => call(['watchdog', 'run', '--deadline', deadline], { cwd });
  for (const wrong of ['0', '121', '1.5', 'x', '1e2']) {
    const { code, err } = await run(wrong);
    t.is(code, 2, wrong);
    t.regex(err, /--deadline must be 1 to 120 seconds/);
  }
  for (const fine of ['20', '120']) t.regex((await run(fine)).out, /^HEALTH CHECK FAILED: database: /, fine);
  const limits = watchdogRequested.schema;
  t.true(limits.safeParse({ deadlineMs: 1_000, remainingMs: 0 }).success);
  t.false(limits.safeParse({ deadlineMs: 120_001, remainingMs: 0 }).success);
});

/** A command line whose configuration has the watchdog alone. */
function besideInstance(t: ExecutionContext, dataDir: string, ...flags: string[]) {
  const cwd = tempDir(t);
  writeConfig(cwd, 'export default defineConfig({ plugins: [watchdog()] });', [
    `import { watchdog } from '${root}src/plugins/watchdog/index.ts';`,
  ]);
  return call(['watchdog', 'run', '--data-dir', dataDir, ...flags], { cwd });
}

test('[O13] beside an instance that is busy with a longer run the command ends soon after its own deadline, and says that it does not know how that run ends', async (t) => {
  const { url, asked } = await silentServer(t);
  const dataDir = tempDir(t);
  const entries = [columnar({ url }), watchdog({ cron: '0 0 29 2 *' })];
  const { plugins } = resolveConfig({ plugins: entries }, { env: {} });
  const clock = new VirtualClock();
  const runtime = createRuntime({ plugins, dataDir, clock, logger: createLogger({ level: 'silent' }) });
  t.teardown(async () => {
    const stopped = runtime.stop('test over');
    await clock.advance(60_000);
    await stopped;
  });
  await runtime.start();
  runtime.services.bus.publish(watchdogRequested, { deadlineMs: 30_000, remainingMs: 30_000 });
  await asked;
  const { code, out } = await besideInstance(t, dataDir, '--deadline', '1');
  t.is(
    out,
    'DEADLINE EXCEEDED: the run did not end within 1 s; how it ends is not known here, see the event log\n',
  );
  t.is(code, 124);
});

test('[O13] an instance without a watchdog is told as that, and not as a run that did not end', async (t) => {
  const dataDir = tempDir(t);
  const runtime = createRuntime({ plugins: [], dataDir, logger: createLogger({ level: 'silent' }) });
  t.teardown(() => runtime.stop('test over'));
  await runtime.start();
  const { code, out, err } = await besideInstance(t, dataDir);
  t.regex(err, /it runs no watchdog/);
  t.is(out, '');
  t.is(code, 1);
});

test('[O10] rows may be called too old after 1 s to a day', (t) => {
  const withLimit = (staleAfter: number) =>
    resolveConfig({ plugins: [watchdog({ staleAfter })] }, { env: {} });
  for (const fine of [1, 86_400]) t.notThrows(() => withLimit(fine));
  for (const wrong of [0, 86_401]) t.throws(() => withLimit(wrong), { message: /staleAfter/ });
});
