/** `holdfast deploy ula --check`: every step in its order, and each failing by itself when its part is broken (R33). */
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { delimiter, join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import type { PluginEntry } from '../../../src/core/host/plugin/definition.ts';
import { createRuntime } from '../../../src/core/host/runtime/runtime.ts';
import { alerts, documentedRules } from '../../../src/plugins/alerts/index.ts';
import { collector } from '../../../src/plugins/collector/index.ts';
import { columnar } from '../../../src/plugins/columnar/index.ts';
import { consolePlugin } from '../../../src/plugins/console/index.ts';
import { otlp } from '../../../src/plugins/otlp/index.ts';
import { reconciler } from '../../../src/plugins/reconciler/index.ts';
import { exampleLegs } from '../../../src/plugins/reconciler/options.ts';
import { routerRemote } from '../../../src/plugins/router/index.ts';
import { secretsKv } from '../../../src/plugins/secrets/index.ts';
import { telemetry } from '../../../src/plugins/telemetry/index.ts';
import { uptime } from '../../../src/plugins/uptime/index.ts';
import { uptimeMonitor } from '../../../src/plugins/uptime-monitor/index.ts';
import { call, writeConfig } from '../../support/cli.ts';
import { KvStandIn } from '../../support/kv-server.ts';
import { RedisServer, until } from '../../support/redis.ts';
import { tempDir } from '../../support/temp.ts';
import { Daemon } from '../router/remote/daemon.ts';

const RULE = 'router-ula-reconcile';
const STEPS = [
  'secrets-store policy',
  'monitor',
  'direct push route',
  'router-ula-reconciler',
  'otel-collector',
  'drill',
] as const;
type States = readonly ('ok' | 'fail' | 'unknown' | 'skipped')[];

async function start(t: ExecutionContext, dataDir: string, plugins: readonly PluginEntry[]) {
  const resolved = resolveConfig({ plugins: [...plugins] }, { env: {} });
  const logger = createLogger({ level: 'silent' });
  const runtime = createRuntime({ plugins: resolved.plugins, dataDir, logger });
  t.teardown(() => runtime.stop('test over'));
  await runtime.start();
  return runtime;
}

/** The way to the monitor: it passes everything on, unless told otherwise. */
async function frontOf(t: ExecutionContext, monitor: () => string) {
  const front = {
    url: '',
    push: undefined as ((response: ServerResponse) => unknown) | undefined,
    page: undefined as ((response: ServerResponse) => unknown) | undefined,
  };
  const server = createServer(async (request, response) => {
    const own = request.url?.startsWith('/api/push/') ? front.push : front.page;
    if (own) return void own(response);
    const answer = await fetch(`${monitor()}${request.url}`);
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text());
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  front.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return front;
}

const json = (status: number, body: unknown) => (response: ServerResponse) =>
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));

/** A reconciler at the edge, and elsewhere all that watches it. */
async function rig(t: ExecutionContext) {
  const daemon = await Daemon.start(t);
  const redis = await RedisServer.start(t);
  const kv = await KvStandIn.open(t);
  const centralDir = tempDir(t);
  const rule = documentedRules.find(({ name }) => name === RULE)!;
  const central = await start(t, centralDir, [
    columnar(),
    collector(),
    otlp({ port: 0, grpcPort: 0, lingerMs: 0 }),
    uptimeMonitor({ port: 0, monitors: [{ name: 'router-ula', interval: 3 }] }),
    alerts({
      rules: [{ ...rule, window: '10s', every: '10s' }],
      signals: { [RULE]: { expect: 'required', host: 'edge', instance: 'ula' } },
    }),
    consolePlugin({ port: 0 }),
  ]);
  const { actors } = central.services;
  const looks = setInterval(() => actors.deliver(`alerts.rule/${RULE}` as never, { type: 'EVALUATE' }), 300);
  t.teardown(() => clearInterval(looks));
  const front = await frontOf(t, () => central.surfaces.uptime!.url);

  const edgeDir = tempDir(t);
  const secrets = join(edgeDir, 'of-the-agent');
  mkdirSync(secrets, { mode: 0o700 });
  const file = (name: string) => join(secrets, name);
  const give = (name: string, text: string) => writeFileSync(file(name), text, { mode: 0o600 });
  const token = readFileSync(join(centralDir, 'secrets/push/router-ula'), 'utf8').trim();
  const key = readFileSync(join(centralDir, 'secrets/otel_ingest_api_key'), 'utf8').trim();
  give('push-token', token);
  give('ingest-key', key);
  give('store-token', kv.token);
  kv.put('uptime/router-ula', { token });
  process.env.OTEL_RESOURCE_ATTRIBUTES = 'host.name=edge,service.instance.id=ula';
  t.teardown(() => delete process.env.OTEL_RESOURCE_ATTRIBUTES);
  const router = { url: daemon.url, redisUrl: redis.url, channelPrefix: 'firerouter.' };
  const edge = () =>
    start(t, edgeDir, [
      routerRemote(router),
      reconciler({ legs: exampleLegs, adopted: true, pushIdleMs: 1_000 }),
      secretsKv({ url: kv.url, tokenFile: file('store-token') }),
      uptime({
        url: front.url,
        monitors: { 'router-ula': { tokenFile: file('push-token'), storedAs: 'uptime/router-ula#token' } },
      }),
      telemetry({
        endpoint: central.surfaces.otlpHttp!.url,
        tokenFile: file('ingest-key'),
        metricsEveryMs: 200,
      }),
    ]);
  const config = writeConfig(
    edgeDir,
    `export default defineConfig({ plugins: [routerRemote(${JSON.stringify(router)}), reconciler(${JSON.stringify({ legs: exampleLegs })})] });`,
    [
      `import { reconciler } from 'holdfast/plugins/reconciler';`,
      `import { routerRemote } from 'holdfast/plugins/router';`,
    ],
  );
  const holdfast = (...argv: string[]) =>
    call([...argv, '--data-dir', edgeDir, '--config', config], { cwd: edgeDir });
  const alertsAt = central.surfaces.console!.url;
  const check = async (...flags: string[]) => {
    const { code, out, err } = await holdfast(
      ...['deploy', 'ula', '--check', '--json', '--wait', '10s', '--alerts', alertsAt],
      ...flags,
    );
    const { steps = [], timeline = [] } = out === '' ? {} : JSON.parse(out);
    return { code, err, steps: steps as any[], timeline: timeline as { what: string }[] };
  };
  const recovered = async () => {
    await until('a beat is shown', async () => {
      const page = await (await fetch(`${front.url}/api/status-page/heartbeat/router-ula`)).json();
      return Object.values<any>((page as any).heartbeatList ?? {})[0]?.at(-1)?.status === 1;
    });
  };
  return { daemon, redis, kv, front, give, file, token, key, edge, holdfast, check, alertsAt, recovered };
}

const states = (steps: readonly any[]) => steps.map(({ state }) => state);

test.serial(
  '[R33] every step looks in the documented order, and each fails by itself when its part is broken',
  async (t) => {
    const { daemon, kv, front, give, file, token, key, edge, holdfast, check, recovered } = await rig(t);
    await edge();
    await recovered();
    const whole = await check();
    t.deepEqual(
      whole.steps.map(({ step }) => step),
      [...STEPS],
    );
    t.deepEqual(
      states(whole.steps),
      STEPS.map(() => 'ok'),
      JSON.stringify(whole.steps, null, 1),
    );
    t.is(whole.code, 0, whole.err);
    t.regex(whole.timeline.map(({ what }) => what).join('\n'), /^paused, until [\s\S]*started/);

    /** As the app saves it; the reconciler adds the address again. */
    const saveWithoutAddress = async () => {
      await daemon.appSaves((config) => {
        delete config.interface.vlan['eth1.10'].ipv6;
      });
      await until('it is added again', () => daemon.leg('eth1.10').ipv6 !== undefined);
    };
    const refusal = json(404, { ok: false, msg: 'Monitor not found or not active.' });
    const table: {
      part: string;
      broken: () => unknown;
      repaired: () => unknown;
      flags?: string[];
      expected: States;
      found: RegExp;
    }[] = [
      {
        part: 'the policy gives no right',
        broken: () => kv.rights.clear(),
        repaired: () => kv.rights.add('read'),
        expected: ['fail', 'ok', 'ok', 'ok', 'ok', 'unknown'],
        found: /allows deny on uptime\/router-ula, and not read/,
      },
      {
        part: 'the agent did not write the new token',
        broken: () => kv.put('uptime/router-ula', { token: 'a-newer-token' }),
        repaired: () => kv.put('uptime/router-ula', { token }),
        expected: ['fail', 'ok', 'ok', 'ok', 'ok', 'unknown'],
        found: /another token than the store/,
      },
      {
        part: 'the store is sealed',
        broken: () => kv.failures.push(...Array.from({ length: 20 }, () => 503)),
        repaired: () => kv.failures.splice(0),
        flags: ['--skip-drill'],
        expected: ['unknown', 'ok', 'ok', 'ok', 'ok', 'skipped'],
        found: /the policy was not looked at: .*sealed/,
      },
      {
        part: 'there is no token',
        broken: () => rmSync(file('push-token')),
        repaired: () => give('push-token', token),
        expected: ['fail', 'unknown', 'unknown', 'ok', 'ok', 'unknown'],
        found: /push-token/,
      },
      {
        part: 'there is no monitor',
        broken: () => Object.assign(front, { push: refusal, page: json(200, { heartbeatList: {} }) }),
        repaired: () => Object.assign(front, { push: undefined, page: undefined }),
        expected: ['ok', 'fail', 'unknown', 'ok', 'ok', 'unknown'],
        found: /no monitor is on the status page/,
      },
      {
        part: 'the monitor knows another token',
        broken: () => Object.assign(front, { push: refusal }),
        repaired: () => Object.assign(front, { push: undefined }),
        expected: ['ok', 'fail', 'unknown', 'ok', 'ok', 'unknown'],
        found: /it refuses the beat: HTTP 404: Monitor not found/,
      },
      {
        part: 'an access proxy redirects the push',
        broken: () =>
          Object.assign(front, {
            push: (response: ServerResponse) => response.writeHead(302, { location: '/login' }).end(),
          }),
        repaired: () => Object.assign(front, { push: undefined }),
        expected: ['ok', 'unknown', 'fail', 'ok', 'ok', 'unknown'],
        found: /redirected, as by an access proxy/,
      },
      {
        part: 'the router does not answer',
        broken: () => daemon.stop(),
        repaired: () => daemon.listen(),
        expected: ['ok', 'ok', 'ok', 'fail', 'ok', 'unknown'],
        found: /config can't be read/,
      },
      {
        part: 'the kernel refused an address',
        broken: async () => {
          daemon.kernelFails = true;
          await saveWithoutAddress();
        },
        repaired: async () => {
          daemon.kernelFails = false;
          await saveWithoutAddress();
        },
        expected: ['ok', 'ok', 'ok', 'fail', 'ok', 'unknown'],
        found: /^4 of 5 legs have their address; Main \(eth1\.10\) has it in the config and not on the link$/,
      },
      {
        part: 'the router does not serve the state of its links',
        broken: () => Object.assign(daemon, { servesInterfaces: false }),
        repaired: () => Object.assign(daemon, { servesInterfaces: true }),
        flags: ['--skip-drill'],
        expected: ['ok', 'ok', 'ok', 'unknown', 'ok', 'skipped'],
        found:
          /^5 of 5 legs have their address in the config; what their links have is unknown: Main \(eth1\.10\): the router does not serve/,
      },
      {
        part: 'the reconciler is stopped',
        broken: () => holdfast('router', 'pause', '--for', '5m'),
        repaired: () => holdfast('router', 'resume'),
        expected: ['ok', 'unknown', 'unknown', 'fail', 'unknown', 'unknown'],
        found: /stopped it/,
      },
      {
        part: 'the collector knows another key',
        broken: () => give('ingest-key', 'not-that-key'),
        repaired: () => give('ingest-key', key),
        expected: ['ok', 'ok', 'ok', 'ok', 'fail', 'unknown'],
        found: /the collector does not take the gauge/,
      },
      {
        part: 'the rule cannot be read',
        broken: () => {},
        repaired: () => {},
        flags: ['--alerts', 'http://127.0.0.1:9'],
        expected: ['ok', 'ok', 'ok', 'ok', 'unknown', 'unknown'],
        found: /the collector took the gauge; http:\/\/127.0.0.1:9 gives no usable answer/,
      },
      {
        part: 'the monitor never goes DOWN',
        broken: () =>
          Object.assign(front, { page: json(200, { heartbeatList: { 1: [{ status: 1, time: '' }] } }) }),
        repaired: () => Object.assign(front, { page: undefined }),
        expected: ['ok', 'ok', 'ok', 'ok', 'ok', 'fail'],
        found: /stopped, and not both alerts changed state: router-ula is up/,
      },
    ];
    for (const { part, broken, repaired, flags = [], expected, found } of table) {
      await broken();
      const { code, steps, err } = await check(...flags);
      await repaired();
      t.deepEqual(states(steps), [...expected], `${part}: ${JSON.stringify(steps, null, 1)}${err}`);
      const named = steps.find(({ state }) => state === (expected.includes('fail') ? 'fail' : 'unknown'));
      t.regex(named?.found, found, part);
      t.truthy(named?.remedy, part);
      t.is(code, expected.includes('fail') ? 1 : 3, part);
      await recovered();
    }
  },
);

test.serial(
  '[R33] the drill stops and starts the unit of systemd, and a timer starts it if the command is killed',
  async (t) => {
    const { edge, holdfast, alertsAt, recovered } = await rig(t);
    let runtime = await edge();
    const calls: string[] = [];
    const systemd = createServer(async (request, response) => {
      const words = decodeURIComponent(request.url ?? '').slice(1);
      calls.push(words);
      if (words === 'systemctl stop ula-reconcile.service') await runtime.stop('systemctl');
      if (words === 'systemctl start ula-reconcile.service') runtime = await edge();
      response.end();
    });
    await new Promise<void>((done) => systemd.listen(0, '127.0.0.1', done));
    t.teardown(() => systemd.close());
    const bin = tempDir(t);
    const { port } = systemd.address() as AddressInfo;
    for (const name of ['systemctl', 'systemd-run']) {
      const words = `[${JSON.stringify(name)}, ...process.argv.slice(2)].join(' ')`;
      const script = `#!${process.execPath}\nfetch('http://127.0.0.1:${port}/' + encodeURIComponent(${words}));\n`;
      writeFileSync(join(bin, name), script);
      chmodSync(join(bin, name), 0o755);
    }
    const { PATH } = process.env;
    process.env.PATH = `${bin}${delimiter}${PATH}`;
    t.teardown(() => Object.assign(process.env, { PATH }));

    const unit = ['--unit', 'ula-reconcile.service', '--wait', '20s'];
    const own = await holdfast('drill', 'ula', ...unit);
    t.regex(
      own.out,
      /^unknown drill +not begun: the rule is evaluated by the unit that would be stopped/,
      own.err,
    );
    t.is(own.code, 3);
    t.deepEqual(calls, [], 'nothing was stopped');

    await recovered();
    const { code, out, err } = await holdfast('drill', 'ula', ...unit, '--alerts', alertsAt);
    t.is(code, 0, `${out}${err}`);
    t.regex(
      out,
      /ula-reconcile.service stopped, until [\s\S]*router-ula is DOWN[\s\S]*started[\s\S]*router-ula is up/,
    );
    const guard = `holdfast-drill-${process.pid}`;
    t.deepEqual(calls, [
      `systemd-run --quiet --unit=${guard} --on-active=80s systemctl start ula-reconcile.service`,
      'systemctl stop ula-reconcile.service',
      'systemctl start ula-reconcile.service',
      `systemctl stop ${guard}.timer`,
    ]);
  },
);
