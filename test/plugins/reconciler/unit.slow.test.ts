import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { jobRun } from '../../../src/core/contracts/jobs.ts';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import { createRuntime } from '../../../src/core/host/runtime/runtime.ts';
import { alerts, documentedRules } from '../../../src/plugins/alerts/index.ts';
import { collector } from '../../../src/plugins/collector/index.ts';
import { columnar } from '../../../src/plugins/columnar/index.ts';
import { jobs } from '../../../src/plugins/jobs/index.ts';
import { otlp } from '../../../src/plugins/otlp/index.ts';
import { reconciler } from '../../../src/plugins/reconciler/index.ts';
import { router } from '../../../src/plugins/router/index.ts';
import { telemetry } from '../../../src/plugins/telemetry/index.ts';
import { uptime } from '../../../src/plugins/uptime/index.ts';
import { uptimeMonitor } from '../../../src/plugins/uptime-monitor/index.ts';
import { type CallOptions, call, writeConfig } from '../../support/cli.ts';
import { tempDir } from '../../support/temp.ts';
import { PATIENCE_MS } from '../../support/until.ts';

interface Post {
  readonly title: string;
  readonly state: string;
  readonly text: string;
}

/** The reconciler with everything that watches it, and a receiver of alerts. */
async function watched(t: ExecutionContext, beatSeconds = 300, dataDir = tempDir(t)) {
  const posts: Post[] = [];
  const server = createServer(async (request, response) => {
    const body = JSON.parse(Buffer.concat(await request.toArray()).toString('utf8'));
    posts.push(...(Array.isArray(body) ? body : [body]));
    response.end('{}');
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  t.teardown(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  const rule = documentedRules.find(({ name }) => name === 'router-ula-reconcile')!;
  const push = documentedRules.find(({ name }) => name === 'watchdog-push-failing')!;
  const entries = [
    router({ port: 0 }),
    reconciler({ pushIdleMs: 1_000 }),
    columnar(),
    collector(),
    otlp({ port: 0, grpcPort: 0, lingerMs: 0 }),
    telemetry({ endpoint: 'own', metricsEveryMs: 200 }),
    uptime(),
    uptimeMonitor({
      port: 0,
      monitors: [{ name: 'router-ula', interval: beatSeconds }],
    }),
    alerts({
      receivers: { hook: { url } },
      routes: [{ steps: [{ to: ['hook'] }] }],
      rules: [{ ...rule, window: '10s', every: '10s', expect: 'required' }, push],
    }),
    jobs(),
  ];
  const { plugins } = resolveConfig({ plugins: entries }, { env: {} });
  const logger = createLogger({ level: 'silent' });
  const runtime = createRuntime({ plugins, dataDir, logger });
  t.teardown(() => runtime.stop('test over'));
  await runtime.start();
  const { actors } = runtime.services;
  const verdict = () => JSON.stringify(actors.snapshot('alerts.rule/router-ula-reconcile' as never)?.value);
  /** Looks until the rule says so. */
  const until = async (holds: () => boolean) => {
    const end = performance.now() + PATIENCE_MS;
    while (!holds()) {
      if (performance.now() > end) throw new Error(`it never came: ${holds}, the rule is ${verdict()}`);
      actors.deliver('alerts.rule/router-ula-reconcile' as never, { type: 'EVALUATE' });
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  };
  const holdfast = (argv: readonly string[], more: Partial<CallOptions> = {}) => {
    const body = 'export default defineConfig({ plugins: [router(), reconciler()] });';
    const imports = [
      `import { reconciler } from 'holdfast/plugins/reconciler';`,
      `import { router } from 'holdfast/plugins/router';`,
    ];
    const config = writeConfig(dataDir, body, imports);
    return call([...argv, '--data-dir', dataDir, '--config', config], { cwd: dataDir, ...more });
  };
  return { runtime, posts, verdict, until, holdfast, dataDir };
}

test('[R28,R33,O19] gauge, OTLP, table, rule, webhook: a reconciler that is stopped is down, and silence of both is dark', async (t) => {
  const { runtime, posts, until, verdict, holdfast, dataDir } = await watched(t, 3);
  await until(() => verdict() === '{"ok":"resting"}' && (runtime.health().alerts as any) !== undefined);

  // A failed run of our own goes the same way: gauge, OTLP, table, rule.
  const { actors, bus, clock } = runtime.services;
  const failed = { phase: 'ended', at: clock.now(), outcome: 'failed', cause: 'exit', text: 'x' } as const;
  for (const job of ['memory-snapshot', 'clickstack-watchdog']) bus.publish(jobRun, { ...failed, job });
  const pushRule = 'alerts.rule/watchdog-push-failing' as never;
  await until(() => {
    actors.deliver(pushRule, { type: 'EVALUATE' });
    return JSON.stringify(actors.snapshot(pushRule)?.value).includes('firing');
  });
  // The rule decides; the alert is raised by an effect, when that decision is durable.
  const said = () => JSON.stringify(actors.states('alerts.alert'));
  await until(() => /clickstack-watchdog-\d+/.test(said()));
  t.notRegex(said(), /memory-snapshot/);

  await until(() => (runtime.health().reconciler as any).whole === 5);
  let stopped: unknown;
  const { code, out, err } = await holdfast(['deploy', 'ula', '--check', '--wait', '1m'], {
    onOut: (text) => {
      if (text.includes('paused, until')) stopped = runtime.health().reconciler;
    },
  });
  t.is(code, 3, `the policy of no store was looked at: ${out}${err}`);
  t.like(stopped, { ok: false, whole: 5, of: 5 });
  t.deepEqual(
    out
      .split('\n')
      .filter((line) => /^(ok|fail|unknown|skipped) /.test(line))
      .map((line) => line.replace(/^(\w+) +(.+?) {2,}.*$/, '$1 $2')),
    [
      'unknown secrets-store policy',
      'ok monitor',
      'ok direct push route',
      'ok router-ula-reconciler',
      'ok otel-collector',
      'ok drill',
    ],
    out,
  );
  t.regex(
    out,
    /paused, until [\s\S]*router-ula-reconcile is firing \(router.ula_reconcile.up = 0\)[\s\S]*started/,
  );
  t.regex(out, /router-ula is DOWN[\s\S]*started[\s\S]*router-ula is up/);
  t.regex(out, /ok +drill +both alerts changed state and recovered/);
  await until(() => posts.some(({ state, title }) => state === 'resolved' && title.includes('NOT RUNNING')));
  t.regex(JSON.stringify(posts), /NOT RUNNING.*heartbeat of the same host arrives: the unit is down/);
  const states = posts.filter(({ title }) => title.includes('NOT RUNNING')).map(({ state }) => state);
  t.deepEqual(states, ['firing', 'resolved'], 'told once of each change');

  // A drill that is broken off leaves nothing stopped.
  const interrupt = new AbortController();
  const broken = await holdfast(['drill', 'ula'], {
    interrupted: interrupt.signal,
    onOut: (text) => void (text.includes('paused') && interrupt.abort('SIGINT')),
  });
  t.not(broken.code, 0);
  t.regex(broken.out, /paused, until [\s\S]*started/);
  t.is(runtime.services.actors.snapshot('reconciler.unit/ula-reconcile' as never)?.value, 'running');
  const usage = await holdfast(['deploy', 'ula']);
  t.regex(usage.err, /give --check/);
  await runtime.stop('the host goes dark');

  // The same folder, and nobody who sends telemetry.
  const dark = createRuntime({
    plugins: resolveConfig(
      {
        plugins: [
          columnar(),
          alerts({
            receivers: { hook: { url: 'http://127.0.0.1:9/' } },
            routes: [{ steps: [{ to: ['hook'] }] }],
            rules: [
              {
                ...documentedRules.find(({ name }) => name === 'router-ula-reconcile')!,
                window: '10s',
                every: '10s',
                expect: 'required',
              },
            ],
          }),
        ],
      },
      { env: {} },
    ).plugins,
    dataDir,
    logger: createLogger({ level: 'silent' }),
  });
  t.teardown(() => dark.stop('test over'));
  await dark.start();
  const told = () => JSON.stringify(dark.services.actors.states('alerts.alert'));
  const end = performance.now() + PATIENCE_MS;
  while (!told().includes('unknown whether') && performance.now() < end) {
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  t.regex(
    told(),
    /unknown whether the unit or the host is down: no heartbeat of this host outlives the process/,
  );
});
