import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import { createRuntime } from '../../../src/core/host/runtime/runtime.ts';
import type { RunReport } from '../../../src/machines/watchdog/run.ts';
import { columnar } from '../../../src/plugins/columnar/index.ts';
import { uptime } from '../../../src/plugins/uptime/index.ts';
import { runActor, watchdogReported, watchdogRequested } from '../../../src/plugins/watchdog/actor.ts';
import { watchdog } from '../../../src/plugins/watchdog/index.ts';
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
    lines: ['DEADLINE EXCEEDED: the run did not end within 3 s'],
  });
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
});
