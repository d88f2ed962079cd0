/** The image of deploy/, built without a container engine, and every job of deploy/ run in it. */
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import test, { type ExecutionContext } from 'ava';
import { resolveConfig } from '../../src/core/host/config/resolve.ts';
import { createLogger } from '../../src/core/host/logging/logger.ts';
import { createRuntime } from '../../src/core/host/runtime/runtime.ts';
import { readRuntimeFile } from '../../src/core/host/runtime/runtime-file.ts';
import { version } from '../../src/core/kernel/version.ts';
import { uptimeMonitor } from '../../src/plugins/uptime-monitor/index.ts';
import { fill, rest, startMemory } from '../plugins/memory-store/rig.ts';
import { Daemon } from '../plugins/router/remote/daemon.ts';
import { call, root } from '../support/cli.ts';
import { type ColumnarServer, startColumnarServer } from '../support/columnar-server.ts';
import { COMPILER_ENV } from '../support/compiler.ts';
import { RedisServer, until } from '../support/redis.ts';
import type { Scope } from '../support/scope.ts';
import { tempDir } from '../support/temp.ts';
import { webhook } from '../support/webhook.ts';
import { runPod } from './kubelet.ts';
import { containersOf, deploy, IMAGE, objectsOf, pinned, podOf } from './manifests.ts';
import { Tree } from './tree.ts';
import { deliver, installUnits, settingsOf, unitOf } from './units.ts';

const ends: (() => unknown)[] = [];
const scope: Scope = { teardown: (end) => void ends.push(end), log: () => {} };
/** What the engine is given of the checkout. */
let context: string;
let release: string;
let tree: Tree;
let database: ColumnarServer;

test.before(async () => {
  const obstacle = Tree.obstacle();
  if (obstacle !== undefined) throw new Error(obstacle);
  context = dockerContext(scope);
  await takeStep(context, 'RUN npm pack');
  release = join(context, `holdfast-${version}.tgz`);
  tree = await Tree.build(release, join(tempDir(scope), 'image'));
  database = await startColumnarServer();
  database.password = 'of-the-database';
});
test.after.always(async () => {
  await database?.close();
  for (const end of ends.toReversed()) await end();
});

/** The files that deploy/Dockerfile.dockerignore lets through. */
function dockerContext(t: Scope): string {
  const dir = tempDir(t);
  const [all, ...allowed] = readFileSync(join(deploy, 'Dockerfile.dockerignore'), 'utf8').trim().split('\n');
  if (all !== '**') throw new Error('it must begin with nothing');
  for (const line of allowed) {
    const [, name = ''] = /^!([\w.-]+)$/.exec(line) ?? [];
    cpSync(join(root, name), join(dir, name), { recursive: true });
  }
  // What `npm ci` would bring; there need not be a network here.
  symlinkSync(join(root, 'node_modules'), join(dir, 'node_modules'));
  return dir;
}

/** Runs the step of deploy/Dockerfile that begins so, with other places. */
async function takeStep(cwd: string, start: string, ...places: [string, string][]): Promise<void> {
  const step = readFileSync(join(deploy, 'Dockerfile'), 'utf8')
    .split('\n')
    .find((line) => line.startsWith(start));
  if (step === undefined) throw new Error(`deploy/Dockerfile has no step ${start}`);
  const here = places.reduce((text, [from, to]) => text.replace(from, to), step.slice('RUN '.length));
  await promisify(execFile)('sh', ['-c', here], { cwd, env: COMPILER_ENV });
}

const TOKEN = 'pushtokenpushtoken';

/** Our own monitor with the token that the Secret holds. */
async function startMonitor(t: ExecutionContext) {
  const dataDir = tempDir(t);
  const folder = join(dataDir, 'secrets', 'push');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(join(folder, 'clickstack-watchdog'), TOKEN, { mode: 0o600 });
  const { plugins } = resolveConfig({ plugins: [uptimeMonitor({ port: 0 })] }, { env: {} });
  const runtime = createRuntime({ plugins, dataDir, logger: createLogger({ level: 'silent' }) });
  t.teardown(() => runtime.stop('test over'));
  await runtime.start();
  const { url } = runtime.surfaces.uptime!;
  /** The beats that said up. */
  const beats = async () => {
    const answer = await fetch(`${url}/api/status-page/heartbeat/clickstack-watchdog`);
    const list = Object.values<any>(((await answer.json()) as any).heartbeatList).flat();
    return list.filter(({ status }) => status === 1);
  };
  return { url, beats };
}

/** Rows of producers that are not late. */
async function feed(): Promise<void> {
  await database.run(
    "INSERT INTO default.otel_logs (Timestamp, ServiceName, Body) VALUES (now64(9), 'a', 'b')",
  );
  await database.run(
    "INSERT INTO default.otel_metrics_gauge (TimeUnix, ServiceName, MetricName, Value) VALUES (now64(9), 'a', 'b', 1)",
  );
}

const secrets = {
  'clickstack-watchdog': { token: TOKEN, 'clickhouse-password': 'of-the-database' },
  'qdrant-api-key': { api_key: 'the-key-of-the-store' },
};

test.serial('[B11] the layout is an OCI image of this release: digests and sizes hold, user 65532', (t) => {
  const index = JSON.parse(readFileSync(join(tree.layout, 'index.json'), 'utf8'));
  t.is(index.manifests[0].digest, tree.digest);
  const manifest = JSON.parse(tree.blob(tree.digest).toString());
  for (const { digest, size } of [index.manifests[0], manifest.config, ...manifest.layers]) {
    const blob = tree.blob(digest);
    t.is(blob.length, size);
    t.is(`sha256:${createHash('sha256').update(blob).digest('hex')}`, digest);
  }
  const config = JSON.parse(tree.blob(manifest.config.digest).toString());
  const layer = gunzipSync(tree.blob(manifest.layers[0].digest));
  t.deepEqual(config.rootfs.diff_ids, [`sha256:${createHash('sha256').update(layer).digest('hex')}`]);
  t.is(config.os, 'linux');
  t.is(config.config.User, '65532:65532');
});

test.serial(
  'the packed release lists each package for use with its version, and says how to report a fault',
  (t) => {
    const packed = (name: string) =>
      execFileSync('tar', ['-xzOf', release, `package/${name}`], { encoding: 'utf8', maxBuffer: 1 << 24 });
    const { components, metadata, ...bill } = JSON.parse(packed('sbom.cdx.json'));
    t.is(bill.bomFormat, 'CycloneDX');
    t.is(metadata.component.purl, `pkg:npm/holdfast@${version}`);
    const listed = components.map(({ name, version }: Record<string, string>) => `${name}@${version}`);
    const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
    const used = Object.entries<any>(packages)
      .filter(([path, { dev }]) => path !== '' && !dev)
      .map(([path, { version }]) => `${path.split('node_modules/').at(-1)}@${version}`);
    t.deepEqual([...new Set(listed)].toSorted(), [...new Set(used)].toSorted());
    const { dependencies } = JSON.parse(packed('package.json'));
    t.true(Object.keys(dependencies).length > 20);
    for (const [name, version] of Object.entries(dependencies))
      t.true(listed.includes(`${name}@${version}`), name);
    t.regex(packed('SECURITY.md'), /private vulnerability reporting/);
  },
);

test.serial(
  '[B11] deploy/Dockerfile makes the same tree again, with nothing but the files that it lets through',
  async (t) => {
    await takeStep(context, 'RUN node ', ['/release.tgz', release], [' /rootfs', ' rootfs']);
    t.is(Tree.fingerprint(join(context, 'rootfs')), tree.fingerprint);
  },
);

test.serial('[B11] deploy/Dockerfile ends in the same tree, user, variables and entry point', async (t) => {
  const lines = readFileSync(join(deploy, 'Dockerfile'), 'utf8').split('\n');
  const last = lines.slice(lines.lastIndexOf('FROM scratch'));
  const value = (word: string) => last.find((line) => line.startsWith(`${word} `))?.slice(word.length + 1);
  const { User, Env, Entrypoint, WorkingDir } = tree.config;
  t.is(value('USER'), User);
  t.deepEqual(value('ENV')?.split(' '), Env);
  t.deepEqual(JSON.parse(value('ENTRYPOINT') ?? ''), Entrypoint);
  t.is(value('WORKDIR'), WorkingDir);
  t.is(value('COPY'), '--from=assemble /rootfs /');
  const { devDependencies, files } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  for (const name of files)
    t.true(existsSync(join(tree.path, 'opt/holdfast', name)), `${name} is let through`);
  t.true(lines.includes(`ARG NODE=${devDependencies.node}-bookworm-slim`), 'the Node of the tests');
});

test.serial('[B11] it holds no shell, no client and no package manager: nothing can be installed', (t) => {
  for (const folder of ['/bin', '/usr', '/sbin']) t.false(existsSync(join(tree.path, folder)), folder);
  t.deepEqual(tree.files('/opt/holdfast/node_modules/.bin'), ['node']);
  for (const name of ['npm', 'chdb', 'typescript', 'ava', '@biomejs/biome'])
    t.false(existsSync(join(tree.path, 'opt/holdfast/node_modules', name)), name);
});

test.serial('[B11] every path that a manifest names is in the image, or is mounted', async (t) => {
  for (const [name, job] of Object.entries(await pinned(tempDir(t)))) {
    for (const { command = [], args, env = [], volumeMounts } of containersOf(job)) {
      const places = volumeMounts.map(({ mountPath }: { mountPath: string }) => mountPath);
      const words: string[] = [...command, ...args, ...env.map(({ value }: { value: string }) => value)];
      const paths = words.filter((word) => word.startsWith('/'));
      t.true(paths.length > 0);
      for (const path of paths) {
        const mounted = places.some((place: string) => `${path}/`.startsWith(`${place}/`));
        t.true(
          mounted || lstatSync(join(tree.path, path), { throwIfNoEntry: false })?.isFile(),
          `${name}: ${path}`,
        );
      }
    }
  }
  for (const path of tree.config.Entrypoint) t.true(existsSync(join(tree.path, path)), path);
});

test.serial(
  '[O10,O12] the watchdog CronJob says what is wrong, and sends its heartbeat when nothing is',
  async (t) => {
    const monitor = await startMonitor(t);
    const job = (await pinned(tempDir(t)))['watchdog.cronjob.yaml']!;
    const services = { 'http://clickstack-clickhouse:8123': database.url, 'http://uptime:3001': monitor.url };
    const watch = async (held = secrets) =>
      (await runPod(t, tree, podOf(job), { secrets: held, services }))[0]!;

    const empty = await watch();
    t.regex(empty.out, /^HEALTH CHECK FAILED: ingest: /, empty.err);
    t.is(empty.code, 0);
    t.deepEqual(await monitor.beats(), []);

    await database.run(
      "INSERT INTO default.otel_logs (Timestamp, ServiceName, Body) VALUES (now64(9), 'a', 'b')",
    );
    await database.run(
      "INSERT INTO default.otel_metrics_gauge (TimeUnix, ServiceName, MetricName, Value) VALUES (now64(9), 'a', 'b', 1)",
    );
    const well = await watch();
    t.regex(well.out, /^stale=\d+s drift=0\n\{"ok":true\}\n$/, well.err);
    t.is(well.code, 0);
    t.is((await monitor.beats()).length, 1);

    const other = { ...secrets['clickstack-watchdog'], 'clickhouse-password': 'not-that' };
    const locked = await watch({ ...secrets, 'clickstack-watchdog': other });
    t.regex(locked.out, /^HEALTH CHECK FAILED: database: /, 'the password of the Secret is what counts');
    const stranger = { ...secrets['clickstack-watchdog'], token: 'another-token-of-none' };
    const refused = await watch({ ...secrets, 'clickstack-watchdog': stranger });
    t.regex(refused.out, /^PUSH DELIVERY FAILED: HTTP 404: /m);
    t.is(refused.code, 1);
    t.is((await monitor.beats()).length, 1);
    for (const { out, err } of [empty, well, locked, refused])
      t.notRegex(out + err, /pushtoken|of-the-database|of-none/);
  },
);

test.serial(
  '[O23] the push by hand needs no client but the image: pod A shows status, headers and body',
  async (t) => {
    const monitor = await startMonitor(t);
    const services = { 'http://uptime:3001': monitor.url };
    const flags = ['--image', IMAGE, '--url', 'http://uptime:3001'];
    const config = join(deploy, 'watchdog.config.ts');
    const argv = ['push', 'doctor', '--manifests', ...flags, '--config', config, '--data-dir', tempDir(t)];
    const { out: text } = await call(argv, { cwd: tempDir(t) });
    const [parity] = objectsOf(text);
    const [end] = await runPod(t, tree, parity!.spec, { secrets, services });
    t.regex(end!.out, /^1\. parity: one push to http:\S+ \(a probe; [^)]+\): HTTP 200\n/, end!.err);
    t.regex(
      end!.out,
      /content-type: application\/json[\s\S]*2\. body, as it came:\n +\{"ok":true,"msg":"\S+ would take a beat/,
    );
    t.deepEqual(await monitor.beats(), [], 'it hides no sick stack');
    const paused = {
      'clickstack-watchdog': { ...secrets['clickstack-watchdog'], token: 'another-token-of-none' },
    };
    const [refused] = await runPod(t, tree, parity!.spec, { secrets: paused, services });
    t.is(refused!.code, 1);
    t.regex(refused!.out, /HTTP 404[\s\S]*"ok":false,"msg":/);
    t.notRegex(end!.out + refused!.out, /pushtoken|another-token/);
  },
);

test.serial('[B11] the snapshot CronJob takes a snapshot, with a key and without, and prunes', async (t) => {
  const keyFile = join(tempDir(t), 'key');
  writeFileSync(keyFile, secrets['qdrant-api-key'].api_key, { mode: 0o600 });
  const job = (await pinned(tempDir(t)))['memory-snapshot.yaml']!;
  for (const { store, held } of [
    { store: { auth: 'token' as const, tokenFile: keyFile }, held: secrets },
    { store: {}, held: {} },
  ]) {
    // Of the snapshots only the job's: after half a minute the plugin would make up for one that it misses.
    const memory = await startMemory(t, { store, memory: { missed: 'report' } });
    const headers = { 'api-key': secrets['qdrant-api-key'].api_key, 'content-type': 'application/json' };
    const body = JSON.stringify({ vectors: { size: 4, distance: 'Cosine' } });
    await fetch(`${memory.url}/collections/memory`, { method: 'PUT', headers, body });
    const services = { 'http://qdrant.agent-memory.svc:6333': memory.url };
    const [snapshot, prune] = await runPod(t, tree, podOf(job), { secrets: held, services });
    t.regex(snapshot!.out, /^memory-\d+-[\d-]+\.snapshot /, snapshot!.err);
    t.regex(prune!.out, /Nothing is beyond the retention/, prune!.err);
    const listed = await fetch(`${memory.url}/collections/memory/snapshots`, { headers });
    t.is(((await listed.json()) as any).result.length, 1);
  }
});

test.serial('[B11] a snapshot that fails ends the job before anything is deleted', async (t) => {
  const job = (await pinned(tempDir(t)))['memory-snapshot.yaml']!;
  const memory = await startMemory(t);
  await fill(memory.url, 3);
  await rest(memory.url, 'DELETE', '/collections/memory');
  const services = { 'http://qdrant.agent-memory.svc:6333': memory.url };
  const ended = await runPod(t, tree, podOf(job), { secrets: {}, services });
  t.is(ended.length, 1, 'the container that prunes was not started');
  t.is(ended[0]!.code, 1);
  t.regex(ended[0]!.err, /^HF_MEMORY/);
});

const UNITS = readdirSync(deploy).filter((name) => /\.(service|timer)$/.test(name));

test.serial('[O10,O18,R38] systemd understands every unit, and finds its programs in the tree', (t) => {
  t.true(UNITS.length >= 5);
  installUnits(tree.path, UNITS);
  const analyze = (...args: string[]) => {
    const { status, stdout, stderr, error } = spawnSync('systemd-analyze', args, { encoding: 'utf8' });
    if (error) throw new Error('systemd-analyze is needed: apt-get install systemd');
    return { status, said: stderr.trim(), stdout };
  };
  const verify = ['verify', `--root=${tree.path}`, '--recursive-errors=no'];
  t.like(analyze(...verify, ...UNITS), { status: 0, said: '' });
  for (const name of UNITS) {
    const text = readFileSync(join(deploy, name), 'utf8');
    const unit = join(tree.path, 'etc/systemd/system', name);
    writeFileSync(
      unit,
      text.replace('/opt/holdfast/', '/opt/absent/').replace(/^OnCalendar=.*/m, 'OnCalendar=often'),
    );
    const { said } = analyze(...verify, name);
    t.regex(said, /is not executable|Failed to parse calendar/, `${name} with a fault is not passed`);
    if (!name.endsWith('.service')) continue;
    const security = analyze('security', '--offline=true', '--threshold=50', join(deploy, name));
    t.is(security.status, 0, security.stdout.trim().split('\n').at(-1));
    // systemd looks for the program only, not for the script that Node is given.
    const [command = ''] = settingsOf(text).flatMap(([key, value]) => (key === 'ExecStart' ? [value] : []));
    const [node = '', script = ''] = command.split(' ').filter((word) => !word.startsWith('--'));
    for (const path of [node, script]) t.true(existsSync(join(tree.path, path)), `${name}: ${path}`);
  }
  const users = join(deploy, 'ula-reconcile.sysusers.conf');
  const made = spawnSync('systemd-sysusers', ['--dry-run', users], { encoding: 'utf8' });
  t.is(made.status, 0);
  t.regex(made.stdout + made.stderr, /^Creating user 'ula-reconcile' /m, made.stderr);
  const hardened = analyze(
    'security',
    '--offline=true',
    '--threshold=20',
    join(deploy, 'ula-reconcile.service'),
  );
  t.is(hardened.status, 0, hardened.stdout.trim().split('\n').at(-1));
});

const legs = join(deploy, 'ula-reconcile.config.ts');

test.serial(
  '[R27,R38] the unit of the reconciler heals a leg beside a daemon, and beats with the token that an agent rewrites for its user',
  async (t) => {
    const daemon = await Daemon.start(t);
    const redis = await RedisServer.start(t);
    const publisher = redis.client(t);
    daemon.publish = (channel, payload) => publisher.publish(channel, payload);
    const receiver = await webhook(t);
    receiver.behave((answer) => answer.setHeader('content-type', 'application/json').end('{"ok":true}'));
    const unit = unitOf(t, 'ula-reconcile.service', {
      etc: { 'ula-reconcile.config.ts': readFileSync(legs, 'utf8') },
      agent: { folder: 'ula-reconcile', secrets: { 'push-token': 'the-first-token' } },
      env: {
        HOLDFAST_UPTIME_URL: new URL(receiver.url).origin,
        HOLDFAST_ROUTER_URL: daemon.url,
        HOLDFAST_REDIS_URL: redis.url,
        HOLDFAST_ROUTER_CHANNEL_PREFIX: 'firerouter.',
        HOLDFAST_CONSOLE_PORT: '0',
      },
    });
    const child = tree.start(t, unit.container);
    const ended = once(child, 'exit');
    const health = async (): Promise<any> => {
      const console = readRuntimeFile(unit.state)?.surfaces.console?.url;
      return console === undefined ? undefined : (await fetch(`${console}/healthz`)).json();
    };
    await until('it hears the router and its legs are whole', async () => {
      const seen = await health();
      return seen?.router?.events.subscribed && seen.reconciler.whole === 5;
    });
    const adopt = ['router', 'adopt', '--yes', '--data-dir', unit.state, '--config', legs];
    const adopted = await call(adopt, { cwd: unit.state, env: { HOLDFAST_ROUTER_URL: daemon.url } });
    t.is(adopted.code, 0, adopted.err);
    await daemon.appSaves((saved) => {
      delete saved.interface.vlan['eth1.10'].ipv6;
    });
    await until('Main has its address', () => daemon.leg('eth1.10').ipv6 !== undefined);
    const beats = (token: string) =>
      receiver.received.some(({ path }) => path.startsWith(`/api/push/${token}?status=up&`));
    await until('a beat', () => beats('the-first-token'));
    deliver(unit.secrets, 'push-token', 'the-second-token');
    await publisher.publish('firerouter.iface_change_applied', '');
    await until('a beat with the new token', () => beats('the-second-token'));
    child.kill('SIGTERM');
    t.deepEqual(await ended, [0, null]);
  },
);

test.serial(
  '[O10,O12] the unit of the watchdog sends its heartbeat, with credentials as systemd gives them',
  async (t) => {
    const monitor = await startMonitor(t);
    const unit = unitOf(t, 'watchdog.service', {
      etc: { 'watchdog.config.ts': readFileSync(join(deploy, 'watchdog.config.ts'), 'utf8') },
      env: { HOLDFAST_CLICKHOUSE_URL: database.url, HOLDFAST_UPTIME_URL: monitor.url },
      credentials: { 'push-token': TOKEN, 'clickhouse-password': 'of-the-database' },
    });
    await feed();
    const { out, err, code } = await tree.run(unit.container);
    t.regex(out, /^stale=\d+s drift=0\n\{"ok":true\}\n$/, err);
    t.is(code, 0);
    t.is((await monitor.beats()).length, 1);
  },
);

test.serial(
  '[O18] the unit of the freshness check tells the webhook of a stale backup, and fails',
  async (t) => {
    const receiver = await webhook(t);
    const unit = unitOf(t, 'backup-freshness.service', {
      etc: {},
      env: { BACKUP_SUCCESS_FILE: '/etc/holdfast/none' },
      credentials: { 'webhook-url': receiver.url },
    });
    const { out, err, code } = await tree.run(unit.container);
    t.is(receiver.received.length, 1, err);
    t.regex(out, /^stale: No success of none is known: there is no such file\.\nnotified http/, err);
    t.is(code, 1);
  },
);

test.serial(
  '[R28] the unit of the heartbeat sends one sample with the key and the host, and no process of ours is there',
  async (t) => {
    const receiver = await webhook(t);
    const unit = unitOf(t, 'holdfast-heartbeat.service', {
      etc: {},
      env: {
        OTEL_EXPORTER_OTLP_ENDPOINT: new URL(receiver.url).origin,
        OTEL_RESOURCE_ATTRIBUTES: 'host.name=edge',
      },
      credentials: { 'ingest-key': 'key-of-the-collector' },
    });
    const { out, err, code } = await tree.run(unit.container);
    t.is(code, 0, err);
    t.regex(out, /has the heartbeat of edge$/m);
    const [post] = receiver.received;
    t.like(post, { path: '/v1/metrics' });
    t.is(post!.headers.authorization, 'key-of-the-collector');
    t.regex(post!.body, /"host\.name","value":\{"stringValue":"edge"/);
  },
);
