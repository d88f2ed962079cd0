/** The shipped configuration of the router's host, started as its unit starts it, before everything that watches it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { resolveConfig } from '../../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../../src/core/host/logging/logger.ts';
import { createRuntime } from '../../../../src/core/host/runtime/runtime.ts';
import { readRuntimeFile } from '../../../../src/core/host/runtime/runtime-file.ts';
import { alerts, documentedRules } from '../../../../src/plugins/alerts/index.ts';
import { collector } from '../../../../src/plugins/collector/index.ts';
import { columnar } from '../../../../src/plugins/columnar/index.ts';
import { otlp } from '../../../../src/plugins/otlp/index.ts';
import { uptimeMonitor } from '../../../../src/plugins/uptime-monitor/index.ts';
import { settingsOf } from '../../../deploy/units.ts';
import { call, root, spawnHoldfast } from '../../../support/cli.ts';
import { RedisServer, until } from '../../../support/redis.ts';
import { tempDir } from '../../../support/temp.ts';
import { PATIENCE_MS } from '../../../support/until.ts';
import { type Webhook, webhook } from '../../../support/webhook.ts';
import { Daemon } from './daemon.ts';

const RULE = 'router-ula-reconcile';
/** As `OTEL_RESOURCE_ATTRIBUTES` of both units names them. */
const EDGE = { host: 'router-host', instance: 'ula-reconcile' } as const;

/** Monitor, collector with its tables, and the rule over the gauge, as they run elsewhere. */
async function startCentral(t: ExecutionContext, hook: Webhook) {
  const dataDir = tempDir(t);
  const rule = documentedRules.find(({ name }) => name === RULE)!;
  const { plugins } = resolveConfig(
    {
      plugins: [
        columnar(),
        collector(),
        otlp({ port: 0, grpcPort: 0, lingerMs: 0 }),
        uptimeMonitor({ port: 0, monitors: [{ name: 'router-ula', interval: 5 }] }),
        alerts({
          receivers: { hook: { url: hook.url, batchSeconds: 0 } },
          routes: [{ steps: [{ to: ['hook'] }] }],
          rules: [{ ...rule, window: '10s', every: '10s' }],
          signals: { [RULE]: { expect: 'required', ...EDGE } },
        }),
      ],
    },
    { env: {} },
  );
  const runtime = createRuntime({ plugins, dataDir, logger: createLogger({ level: 'silent' }) });
  t.teardown(() => runtime.stop('test over'));
  await runtime.start();
  const { actors } = runtime.services;
  const { url: monitor } = runtime.surfaces.uptime!;
  return {
    dataDir,
    monitor,
    collector: runtime.surfaces.otlpHttp!.url,
    secret: (name: string) => join(dataDir, 'secrets', name),
    /** Evaluates the rule again and again, until state and context match. */
    async rule(pattern: RegExp): Promise<string> {
      let seen = '';
      for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await delay(200)) {
        const { value, context } = actors.snapshot(`alerts.rule/${RULE}` as never) ?? {};
        seen = JSON.stringify({ value, context });
        if (pattern.test(seen)) return seen;
        actors.deliver(`alerts.rule/${RULE}` as never, { type: 'EVALUATE' });
      }
      throw new Error(`the rule never became ${pattern}: ${seen}`);
    },
    /** The state of the newest beat: 1 is up, 0 DOWN. */
    async beat(): Promise<number | undefined> {
      const answer = await fetch(`${monitor}/api/status-page/heartbeat/router-ula`);
      return Object.values<any>(((await answer.json()) as any).heartbeatList)
        .flat()
        .at(-1)?.status;
    },
  };
}

/** The unit's own variables, as systemd sets them, with those of its EnvironmentFile after them. */
function environmentOf(unit: string, file: Readonly<Record<string, string>>): Record<string, string> {
  const pairs = settingsOf(readFileSync(join(root, 'deploy', unit), 'utf8')).flatMap(([key, value]) =>
    key === 'Environment' ? [value.split(/=(.*)/s, 2) as [string, string]] : [],
  );
  return { ...Object.fromEntries(pairs), ...file };
}

/** What a unit has Node do before it names the program. */
function nodeOptionsOf(unit: string): string[] {
  const [, command = ''] =
    settingsOf(readFileSync(join(root, 'deploy', unit), 'utf8')).find(([key]) => key === 'ExecStart') ?? [];
  const [, ...words] = command.split(' ');
  return words.slice(
    0,
    words.findIndex((word) => !word.startsWith('--')),
  );
}

/** As a secrets agent writes one: whole or not at all, mode 0600. */
function deliver(folder: string, name: string, secret: string | Buffer): void {
  const draft = join(folder, `.${name}.new`);
  writeFileSync(draft, secret, { mode: 0o600 });
  renameSync(draft, join(folder, name));
}

test('[R27,R28,R33,R38] the shipped configuration alone beats, sends its gauge and alerts, with secrets that an agent rewrites; after kill -9 the alert says unit down', async (t) => {
  const daemon = await Daemon.start(t);
  const redis = await RedisServer.start(t);
  const publisher = redis.client(t);
  daemon.publish = (channel, payload) => publisher.publish(channel, payload);
  const [hook, ownHook] = [await webhook(t), await webhook(t)];
  const central = await startCentral(t, hook);

  // As installed: outside of the checkout, with a folder that an agent writes into.
  const etc = tempDir(t);
  const config = join(etc, 'ula-reconcile.config.ts');
  cpSync(join(root, 'deploy/ula-reconcile.config.ts'), config);
  const secrets = join(etc, 'ula-reconcile');
  mkdirSync(secrets, { mode: 0o700 });
  deliver(secrets, 'ingest-key', readFileSync(central.secret('otel_ingest_api_key')));
  const attributes = `host.name=${EDGE.host},service.instance.id=${EDGE.instance}`;
  const dataDir = tempDir(t);
  const { child, err } = spawnHoldfast(t, ['start', '--config', config, '--data-dir', dataDir], {
    cwd: etc,
    nodeOptions: nodeOptionsOf('ula-reconcile.service'),
    env: environmentOf('ula-reconcile.service', {
      HOLDFAST_ROUTER_URL: daemon.url,
      HOLDFAST_REDIS_URL: redis.url,
      HOLDFAST_ROUTER_CHANNEL_PREFIX: 'firerouter.',
      HOLDFAST_UPTIME_URL: central.monitor,
      HOLDFAST_ALERTS_CLUSTER_INFRA_URL: ownHook.url,
      HOLDFAST_SECRETS_DIR: secrets,
      HOLDFAST_CONSOLE_PORT: '0',
      OTEL_EXPORTER_OTLP_ENDPOINT: central.collector,
      OTEL_RESOURCE_ATTRIBUTES: attributes,
      OTEL_METRIC_EXPORT_INTERVAL: '200',
    }),
  });
  let page = '';
  await until('it listens', () => {
    if (child.exitCode !== null) throw new Error(err());
    page = readRuntimeFile(dataDir)?.surfaces.console?.url ?? '';
    return page !== '';
  });
  const health = async (): Promise<any> => (await fetch(`${page}/healthz`)).json();
  // Each event of the router is followed by a beat, so the monitor need not wait for the idle one.
  const events = every(t, 500, () => publisher.publish('firerouter.iface_change_applied', ''));

  const adopt = ['router', 'adopt', '--yes', '--data-dir', dataDir, '--config', config];
  t.is((await call(adopt, { cwd: etc, env: { HOLDFAST_ROUTER_URL: daemon.url } })).code, 0);
  await until('there is no token yet, and it says so', async () =>
    /no beat arrives[\s\S]*push-token/.test(JSON.stringify((await health()).reconcilerPush)),
  );
  t.not(await central.beat(), 1);
  deliver(secrets, 'push-token', readFileSync(central.secret('push/router-ula')));
  await until('a beat arrives', async () => (await central.beat()) === 1);
  deliver(secrets, 'push-token', 'a-token-of-nobody');
  await until('the rewritten token is the one in use', async () =>
    /HTTP 404|Monitor/.test(JSON.stringify((await health()).reconcilerPush)),
  );
  deliver(secrets, 'push-token', readFileSync(central.secret('push/router-ula')));
  await until('beats arrive again', async () => (await health()).reconcilerPush.ok !== false);

  await central.rule(/^\{"value":\{"ok":"resting"\}.*"value":1\b/);

  events.pause();
  await daemon.appSaves((saved) => {
    delete saved.interface.vlan['eth1.40'];
  });
  await until('the webhook is told of the leg that vanished', () => ownHook.received.length > 0);
  t.like(ownHook.json()[0], { state: 'firing', where: EDGE });
  t.regex(ownHook.received[0]!.body, /Lab/);

  events.resume();
  await until('the monitor is up', async () => (await central.beat()) === 1);
  child.kill('SIGKILL');
  const folders = { credentials: tempDir(t), own: tempDir(t) };
  cpSync(central.secret('otel_ingest_api_key'), join(folders.credentials, 'ingest-key'));
  every(t, 2_000, () => heartbeat(central.collector, attributes, folders));
  await until('the monitor is DOWN', async () => (await central.beat()) === 0);
  const fired = await central.rule(/^\{"value":\{"firing".*the unit is down/);
  t.notRegex(fired, /dark/);
  await until('the alert is sent', () => hook.received.some(({ body }) => /NOT RUNNING/.test(body)));
});

const MOST_RESIDENT_MB = 110;

test('[R38] the unit of the router host holds less than 110 MB of memory when it is idle', async (t) => {
  const daemon = await Daemon.start(t);
  const redis = await RedisServer.start(t);
  const config = join(root, 'deploy/ula-reconcile.config.ts');
  const dataDir = tempDir(t);
  const env = environmentOf('ula-reconcile.service', {
    CACHE_DIRECTORY: tempDir(t),
    HOLDFAST_ROUTER_URL: daemon.url,
    HOLDFAST_REDIS_URL: redis.url,
    HOLDFAST_UPTIME_URL: daemon.url,
    HOLDFAST_SECRETS_DIR: tempDir(t),
    HOLDFAST_CONSOLE_PORT: '0',
    OTEL_EXPORTER_OTLP_ENDPOINT: daemon.url,
  });
  const start = async () => {
    const spawned = spawnHoldfast(t, ['start', '--config', config, '--data-dir', dataDir], {
      cwd: dataDir,
      nodeOptions: nodeOptionsOf('ula-reconcile.service'),
      env,
    });
    await spawned.see(/Holdfast is ready/);
    return spawned;
  };
  const first = await start(); // compiles, which a later start need not
  first.child.kill('SIGTERM');
  t.is((await first.ended).code, 0);
  const { child, err } = await start();
  while (!/data\.checked/.test(err())) await delay(100); // the check of the data folder begins 5 s after the start
  await delay(5_000); // it has sent what it sends at first
  t.is(child.exitCode, null);
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
  const resident = Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
  t.log(`${resident.toFixed(1)} MB`);
  t.true(resident < MOST_RESIDENT_MB, `${resident.toFixed(1)} MB`);
});

/** Does something again and again until the test ends. @returns pauses it, and goes on */
function every(t: ExecutionContext, ms: number, run: () => unknown) {
  let timer = setInterval(run, ms);
  const pause = () => clearInterval(timer);
  t.teardown(pause);
  return {
    pause,
    resume() {
      timer = setInterval(run, ms);
    },
  };
}

/** What the timer of the heartbeat starts, as systemd starts it. */
async function heartbeat(
  endpoint: string,
  attributes: string,
  { credentials, own }: { readonly credentials: string; readonly own: string },
): Promise<void> {
  const [exec = ''] = settingsOf(
    readFileSync(join(root, 'deploy/holdfast-heartbeat.service'), 'utf8'),
  ).flatMap(([key, value]) => (key === 'ExecStart' ? [value] : []));
  const [, ...argv] = exec
    .replaceAll('/opt/holdfast/', root)
    .replaceAll(`\${RUNTIME_DIRECTORY}`, own)
    .split(' ');
  const child = spawn(process.execPath, argv, {
    stdio: 'ignore',
    env: {
      PATH: process.env.PATH,
      ...environmentOf('holdfast-heartbeat.service', {
        OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
        OTEL_RESOURCE_ATTRIBUTES: attributes,
      }),
      CREDENTIALS_DIRECTORY: credentials,
      RUNTIME_DIRECTORY: own,
    },
  });
  await once(child, 'exit');
}
