import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { request } from 'undici';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import { createRuntime } from '../../../src/core/host/runtime/runtime.ts';
import type { WatchdogContext } from '../../../src/machines/watchdog/run.ts';
import { columnar } from '../../../src/plugins/columnar/index.ts';
import { consolePlugin } from '../../../src/plugins/console/index.ts';
import { jobs } from '../../../src/plugins/jobs/index.ts';
import { uptime } from '../../../src/plugins/uptime/index.ts';
import { monitorActor } from '../../../src/plugins/uptime-monitor/actor.ts';
import { uptimeMonitor } from '../../../src/plugins/uptime-monitor/index.ts';
import { watchdogDue } from '../../../src/plugins/watchdog/actor.ts';
import { watchdog } from '../../../src/plugins/watchdog/index.ts';
import { call } from '../../support/cli.ts';
import { tempDir } from '../../support/temp.ts';
import { PATIENCE_MS } from '../../support/until.ts';

interface Script {
  readonly database?: string;
  readonly push?: string;
  /** Whether the process ends while the run is under way. */
  readonly killed?: boolean;
}

/** What somebody reads who has nothing but the status page and `holdfast status`. */
interface Read {
  readonly page: string;
  readonly status: string;
}

async function play(t: ExecutionContext, { database, push, killed = false }: Script): Promise<Read> {
  const entries = [
    columnar(database === undefined ? {} : { url: database }),
    uptime(push === undefined ? {} : { url: push }),
    uptimeMonitor({
      port: 0,
      monitors: [{ name: 'clickstack-watchdog', interval: push || database ? 1 : 300 }],
    }),
    // A run of the schedule, at each fifth minute of the clock, would take the place of the scripted one.
    watchdog({ signals: ['otel_logs'], cron: '0 0 29 2 *' }),
    jobs(),
    consolePlugin({ port: 0 }),
  ];
  const dataDir = tempDir(t);
  if (push !== undefined) {
    mkdirSync(join(dataDir, 'secrets', 'push'), { recursive: true, mode: 0o700 });
    writeFileSync(join(dataDir, 'secrets', 'push', 'clickstack-watchdog'), 'tok123\n', { mode: 0o600 });
  }
  const { plugins } = resolveConfig({ plugins: entries }, { env: {} });
  const start = async () => {
    const runtime = createRuntime({ plugins, dataDir, logger: createLogger({ level: 'silent' }) });
    t.teardown(() => runtime.stop('test over'));
    await runtime.start();
    return runtime;
  };
  let runtime = await start();
  const state = () => runtime.services.actors.snapshot('watchdog.run/clickstack-watchdog' as never);
  runtime.services.bus.publish(watchdogDue, {});
  if (killed) {
    // The process ends while the database still owes its answer.
    await until(() => JSON.stringify(state()?.value) === '{"running":"checking"}');
    await runtime.stop('killed');
    runtime = await start();
  }
  await until(() => (state()?.context as unknown as WatchdogContext | undefined)?.last !== undefined);
  const isDown = () => runtime.health()['uptime-monitor'] as { down?: number } | undefined;
  if (push !== undefined || database !== undefined) {
    await until(() => isDown()?.down === 1);
    await until(
      () => runtime.services.actors.get(monitorActor, 'clickstack-watchdog')?.context.trouble !== undefined,
    );
  }
  const { body } = await request(`${runtime.surfaces.uptime?.url}/status/clickstack-watchdog`);
  const page = (await body.text()).replace(/<style[\s\S]*?<\/style>|<[^>]+>/g, ' ').replace(/\s+/g, ' ');
  const { out } = await call(['status', '--data-dir', dataDir], { cwd: dataDir });
  await runtime.stop('read');
  return { page, status: out };
}

async function until(holds: () => boolean): Promise<void> {
  const end = performance.now() + PATIENCE_MS;
  while (!holds()) {
    if (performance.now() > end) throw new Error(`it never came: ${holds}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

async function serve(t: ExecutionContext, answer: (end: (status: number, body: string) => void) => void) {
  const server = createServer((_, response) =>
    answer((status, body) => response.writeHead(status, { 'content-type': 'application/json' }).end(body)),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('[O10,O11,O12,O13,O14] four scripted runs are told apart by the status page alone and by holdfast status alone', async (t) => {
  const silent = await serve(t, () => {});
  const broken = await serve(t, (end) => end(404, '{"ok":false,"msg":"SQLITE_BUSY"}'));
  const scripts: Record<string, Script> = {
    fine: {},
    database: { database: 'http://127.0.0.1:9' },
    push: { push: broken },
    killed: { database: silent, killed: true },
  };
  const read: Record<string, Read> = {};
  for (const [name, script] of Object.entries(scripts)) read[name] = await play(t, script);
  const telling = {
    fine: /\bAll 1 up\b|a heartbeat was sent at/,
    database: /HEALTH CHECK FAILED: database/,
    push: /PUSH DELIVERY FAILED: HTTP 404: SQLITE_BUSY/,
    killed: /RUN KILLED: the process ended while it ran/,
  };
  for (const [name, { page, status }] of Object.entries(read)) {
    for (const [kind, words] of Object.entries(telling)) {
      t.is(words.test(page), name === kind, `${kind} on the page of ${name}: ${page}`);
      t.is(words.test(status), name === kind, `${kind} in the status of ${name}: ${status}`);
    }
    if (name === 'fine') continue;
    t.regex(page, /1 of 1 down/, 'silence is never health');
    t.regex(page, /Last 24 hours: (?:not known|0\.00 % up)/, 'nor is it counted as such');
    t.regex(status, /^Holdfast is running, but degraded/);
  }
});
