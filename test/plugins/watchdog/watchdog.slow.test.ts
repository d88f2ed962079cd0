import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { z } from 'zod';
import {
  type ColumnarDatabase,
  ColumnarDatabaseToken,
} from '../../../src/core/contracts/columnar-database.ts';
import { type JobRun, jobRun } from '../../../src/core/contracts/jobs.ts';
import { type RunTrouble, runTrouble } from '../../../src/core/contracts/uptime.ts';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import { definePlugin } from '../../../src/core/host/plugin/definition.ts';
import { createRuntime } from '../../../src/core/host/runtime/runtime.ts';
import type { RunReport } from '../../../src/machines/watchdog/run.ts';
import { columnar } from '../../../src/plugins/columnar/index.ts';
import { uptime } from '../../../src/plugins/uptime/index.ts';
import { watchdogDue, watchdogReported } from '../../../src/plugins/watchdog/actor.ts';
import { watchdog } from '../../../src/plugins/watchdog/index.ts';
import { call, root, writeConfig } from '../../support/cli.ts';
import { tempDir } from '../../support/temp.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

type Handler = Parameters<typeof createServer>[1];

async function serve(t: ExecutionContext, handler: NonNullable<Handler>): Promise<string> {
  const server: Server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function withToken(dir: string): string {
  mkdirSync(join(dir, 'secrets', 'push'), { recursive: true, mode: 0o700 });
  writeFileSync(join(dir, 'secrets', 'push', 'clickstack-watchdog'), 'tok123\n', { mode: 0o600 });
  return dir;
}

/** Only `run` starts a run: one of the schedule, at each fifth minute of the clock, would add its own line and push. */
const UNSCHEDULED = '0 0 29 2 *';

interface Setup {
  readonly push: string;
  readonly database?: Parameters<typeof columnar>[0];
  readonly options?: Parameters<typeof watchdog>[0];
  readonly clock?: VirtualClock;
  readonly dataDir?: string;
}

/** A runtime with the watchdog; the real engine inside unless a server is named. */
async function rig(t: ExecutionContext, { push, database, options, clock, dataDir }: Setup) {
  let found: ColumnarDatabase | undefined;
  const probe = definePlugin({
    name: 'probe',
    options: z.strictObject({}),
    requires: [ColumnarDatabaseToken],
    start(services) {
      found = services.get(ColumnarDatabaseToken);
    },
    register() {},
  });
  const entries = [
    columnar(database),
    uptime({ url: push }),
    watchdog({ cron: UNSCHEDULED, ...options }),
    probe(),
  ];
  const { plugins } = resolveConfig({ plugins: entries }, { env: {} });
  const logger = createLogger({ level: 'silent' });
  const folder = dataDir ?? withToken(tempDir(t));
  const runtime = createRuntime({ plugins, dataDir: folder, logger, ...(clock && { clock }) });
  t.teardown(() => runtime.stop('test over'));
  await runtime.start();
  const { bus } = runtime.services;
  const troubles: RunTrouble[] = [];
  bus.subscribe(runTrouble, 'test', ({ payload }) => troubles.push(payload));
  return {
    runtime,
    troubles,
    database: found!,
    run: () =>
      new Promise<RunReport>((resolve) => {
        const end = bus.subscribe(watchdogReported, 'test', ({ payload }) => {
          end();
          resolve(payload);
        });
        bus.publish(watchdogDue, {});
      }),
  };
}

const row = (ageSeconds: number) => ({
  Timestamp: new Date(Date.now() - ageSeconds * 1_000).toISOString(),
  ServiceName: 'shop',
  Body: 'hello',
  ResourceAttributes: {},
});

test.serial(
  '[O6,O10,O12,O14] the embedded database: fresh, fed, stale and drifted are told apart, and each line is stored',
  async (t) => {
    const pushed: URL[] = [];
    const push = await serve(t, (request, response) => {
      pushed.push(new URL(request.url!, 'http://x'));
      response.end('{"ok":true}');
    });
    const { run, database, runtime, troubles } = await rig(t, { push, options: { signals: ['otel_logs'] } });
    const ends: JobRun[] = [];
    runtime.services.bus.subscribe(jobRun, 'ends', ({ payload }) => {
      if (payload.phase === 'ended') ends.push(payload);
    });

    const fresh = await run();
    t.deepEqual(fresh.lines, ['stale=0s drift=0', '{"ok":true}'], 'no producer yet is no fault');
    t.is(pushed[0]!.pathname, '/api/push/tok123');
    t.is(pushed[0]!.searchParams.get('msg'), 'stale=0s drift=0');
    t.regex(pushed[0]!.searchParams.get('ping')!, /^\d+$/);

    await database.insert('otel_logs', [row(400)]);
    const stale = await run();
    t.like(stale, { outcome: 'unhealthy', exitCode: 0 });
    t.regex(
      stale.lines[0]!,
      /^HEALTH CHECK FAILED: ingest: asked the age of the newest row of otel_logs, got 4\d\d s, more than 300 s \(required by `signals` of watchdog\(\)\), since 20/,
    );
    t.is(pushed.length, 1, 'no heartbeat');
    t.like(ends.at(-1), { outcome: 'succeeded' }, 'the run went well, and the stack is not well');
    t.like(troubles, [{ monitor: 'clickstack-watchdog', outcome: 'unhealthy', text: stale.lines[0] }]);
    t.like(runtime.health().watchdog, { ok: false });
    t.regex((runtime.health().watchdog as any).reason, /^no heartbeat: HEALTH CHECK FAILED/);
    t.regex(
      (runtime.health().watchdog as any).lastRun,
      /exit 0 \(says how the run went, not how the stack is\)/,
    );

    await database.insert('otel_logs', [row(7)]);
    const fed = await run();
    t.regex(fed.lines.join('\n'), /^stale=\d+s drift=0\n\{"ok":true\}$/);

    for (const sql of [
      'DROP TABLE otel_metrics_summary',
      'CREATE TABLE otel_metrics_summary (a UInt8) ENGINE = Log',
    ])
      await t.throwsAsync(
        database.query(sql),
        { code: 'HF_COLUMNAR_ANSWER' },
        'it is done, without an answer',
      );
    const drifted = await run();
    t.like(drifted, { outcome: 'unhealthy', exitCode: 0 });
    t.regex(
      drifted.lines[0]!,
      /^HEALTH CHECK FAILED: engine: .* 1 drifted: otel_metrics_summary Log, not MergeTree/,
    );

    await runtime.services.log.whenDurable(runtime.services.log.lastSeq());
    let stored: readonly { Body: string }[] = [];
    while (stored.length < 4) {
      stored = await database.query(
        "SELECT Body FROM otel_logs WHERE ServiceName = 'holdfast' ORDER BY Timestamp",
      );
    }
    t.deepEqual(
      stored.slice(0, 3).map(({ Body }) => Body),
      [fresh, stale, fed].map(({ lines }) => lines.join('\n')),
    );
  },
);

test.serial('[O10] a table that has had rows and lost all of them is no fresh installation', async (t) => {
  let pushes = 0;
  const push = await serve(t, (_, response) => {
    pushes += 1;
    response.end('{"ok":true}');
  });
  const { run, database } = await rig(t, { push, options: { signals: ['otel_logs'] } });
  await database.insert('otel_logs', [row(7)]);
  t.is((await run()).outcome, 'delivered');
  await t.throwsAsync(database.query('TRUNCATE TABLE otel_logs'), { code: 'HF_COLUMNAR_ANSWER' });
  for (const time of ['first', 'second']) {
    const lost = await run();
    t.regex(
      lost.lines[0]!,
      /^HEALTH CHECK FAILED: ingest: .* of otel_logs, got no row at all, though it has had some: they were deleted/,
      time,
    );
  }
  t.is(pushes, 1, 'no heartbeat for what is gone');
});

/** The engine has the real time, so that the run's clock cannot move by just the hour that is the longest gap. */
const STEP_MS = 3_000_000;
/** Of 50 minutes each: the first that are a day. */
const STEPS_OF_A_DAY = 29;

test.serial(
  '[O10] a trial of telemetry fails no run until its signal has come for a day, also over restarts',
  async (t) => {
    const pushed: string[] = [];
    const push = await serve(t, (request, response) => {
      pushed.push(request.url!);
      response.end('{"ok":true}');
    });
    const clock = new VirtualClock(Date.now());
    const dataDir = withToken(tempDir(t));
    let { run, database, runtime } = await rig(t, { push, clock, dataDir });
    const LOST =
      /^UNKNOWN: otel_logs: 4\d\d s, more than 300 s; not required until `signals` of watchdog\(\) names it/;
    const REQUIRED =
      /^HEALTH CHECK FAILED: ingest: .*otel_logs, got 4\d\d s, more than 300 s \(required since it came for a day, unless `signals` of watchdog\(\) names only others\)/;
    await database.insert('otel_logs', [row(400)]);
    const trial = await run();
    t.is(trial.outcome, 'delivered', trial.lines.join());
    t.deepEqual(trial.lines.slice(0, 2), ['stale=0s drift=0', '{"ok":true}']);
    t.regex(trial.lines[2]!, LOST);
    t.is(trial.lines.length, 3, 'nothing of the table that never had a row');
    t.is(pushed.length, 1);
    t.regex((runtime.health().watchdog as any).unknown, /^otel_logs: 4/);
    await runtime.stop('test');

    for (let step = 0; step <= STEPS_OF_A_DAY; step += 1) {
      if (step % 10 === 0) ({ run, database, runtime } = await rig(t, { push, clock, dataDir }));
      await database.query('TRUNCATE TABLE otel_logs').catch(() => {});
      await database.insert('otel_logs', [row(1)]);
      t.is((await run()).outcome, 'delivered');
      await database.query('TRUNCATE TABLE otel_logs').catch(() => {});
      await database.insert('otel_logs', [row(400)]);
      const { outcome, lines } = await run();
      const isDay = step === STEPS_OF_A_DAY;
      t.is(outcome, isDay ? 'unhealthy' : 'delivered', `${step}: ${lines.join()}`);
      t.regex(lines[isDay ? 0 : 2]!, isDay ? REQUIRED : LOST);
      if (step % 10 === 9) await runtime.stop('test');
      await clock.advance(STEP_MS);
    }
    t.is(pushed.length, 1 + 2 * STEPS_OF_A_DAY + 1, 'no heartbeat without a required signal');
  },
);

test.serial(
  '[O10] a signal that `signals` does not name is not watched, and none has to be named',
  async (t) => {
    const push = await serve(t, (_, response) => response.end('{"ok":true}'));
    const { run, database } = await rig(t, { push, options: { signals: [] } });
    await database.insert('otel_logs', [row(400)]);
    t.deepEqual((await run()).lines, ['stale=0s drift=0', '{"ok":true}']);
  },
);

test('[O10] unless configured it checks every 5 minutes, and 300 s are too old', (t) => {
  const { plugins } = resolveConfig({ plugins: [watchdog()] }, { env: {} });
  const logger = createLogger({ level: 'silent' });
  const { registrations } = createRuntime({ plugins, dataDir: tempDir(t), logger });
  const due = registrations.schedules.filter(({ topic }) => topic === watchdogDue);
  t.deepEqual(
    due.map(({ cron }) => cron),
    ['*/5 * * * *'],
  );
  t.is(plugins.find(({ definition }) => definition.name === 'watchdog')?.options.staleAfter, 300);
});

test.serial('[O10] a declared producer that never sent is a fault', async (t) => {
  const push = await serve(t, (_, response) => response.end('{"ok":true}'));
  const options = { producers: ['otel_logs' as const], signals: ['otel_metrics_gauge' as const] };
  const { run, database } = await rig(t, { push, options });
  t.regex(
    (await run()).lines[0]!,
    /ingest: asked the age of the newest row of otel_logs, got no row at all: no producer yet/,
  );
  await database.insert('otel_logs', [row(400)]);
  await database.insert('otel_logs', [{ ...row(1), ServiceName: 'holdfast-heartbeat' }]);
  t.regex(
    (await run()).lines[0]!,
    /got 4\d\d s, more than 300 s \(required by `producers` of watchdog\(\)\), since 20/,
    'a declared one is no trial, and our own heartbeat no producer',
  );
});

test.serial(
  '[O10,O11,O14] database down, result malformed, push broken: each in its words, and no heartbeat',
  async (t) => {
    let pushes = 0;
    const push = await serve(t, (_, response) => {
      pushes += 1;
      response.end('{"ok":true}');
    });
    const down = await rig(t, { push, database: { url: 'http://127.0.0.1:1' } });
    const unreachable = await down.run();
    t.like(unreachable, { outcome: 'unhealthy', exitCode: 0 });
    t.regex(unreachable.lines[0]!, /^HEALTH CHECK FAILED: database: asked SELECT 1 of \S+, got .*reached/);

    const garbage = await serve(t, (_, response) => response.end('<html>login</html>'));
    const malformed = await (await rig(t, { push, database: { url: garbage } })).run();
    t.is(malformed.outcome, 'unhealthy');
    t.regex(malformed.lines[0]!, /^HEALTH CHECK FAILED: result: asked SELECT 1/);

    const refusing = await serve(t, (_, response) =>
      response.writeHead(404).end('{"ok":false,"msg":"locked"}'),
    );
    const broken = await rig(t, { push: refusing });
    const undelivered = await broken.run();
    t.deepEqual(undelivered.lines, ['PUSH DELIVERY FAILED: HTTP 404: locked (wget exit status 8)']);
    t.is(undelivered.exitCode, 1);

    t.is(pushes, 0, 'silence is what says that it is not well');
  },
);

test.serial(
  '[O10,O11,O12] `watchdog run` without an instance asks the server, prints the lines and exits as the job does',
  async (t) => {
    const cwd = tempDir(t);
    const dataDir = withToken(join(cwd, 'data'));
    const config = (database: string, push: string) =>
      writeConfig(
        cwd,
        `export default defineConfig({ plugins: [columnar(${database}), uptime({ url: '${push}' }), watchdog()] });`,
        ['columnar', 'uptime', 'watchdog'].map(
          (name) => `import { ${name} } from '${root}src/plugins/${name}/index.ts';`,
        ),
      );
    const run = async (database: string, push: string, ...more: string[]) =>
      call(['watchdog', 'run', '--data-dir', dataDir, '--config', config(database, push), ...more], { cwd });

    const embedded = await run('', 'http://127.0.0.1:1');
    t.is(embedded.code, 0);
    t.regex(
      embedded.out,
      /^HEALTH CHECK FAILED: database: asked for a database, got none: no instance with an embedded one runs here/,
    );
    const down = await run(`{ url: 'http://127.0.0.1:1' }`, 'http://127.0.0.1:1', '--json');
    t.like(JSON.parse(down.out), { outcome: 'unhealthy', exitCode: 0, heartbeat: 'not sent' });
  },
);
