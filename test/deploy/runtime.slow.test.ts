/** The unit of the whole runtime, and its drop-in for the machine's own network. */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import test from 'ava';
import { Client } from 'undici';
import { readRuntimeFile } from '../../src/core/host/runtime/runtime-file.ts';
import { root } from '../support/cli.ts';
import { until } from '../support/redis.ts';
import { tempDir } from '../support/temp.ts';
import { testInNamespace } from '../support/test-in-namespace.ts';
import { startOnHost } from './host.ts';
import { deploy } from './manifests.ts';
import { unitOf } from './units.ts';

const deployed = (name: string) => readFileSync(join(deploy, name), 'utf8');
const unit = deployed('holdfast.service');
const dropIn = deployed('holdfast-kernel.conf');
const PORTS = ['ROUTER', 'GATEWAY', 'MEMORY', 'OTLP_HTTP', 'OTLP_GRPC', 'UPTIME', 'CONSOLE'];

test('deploy/holdfast.config.ts lists what plugins.config.ts lists', (t) => {
  const calls = (source: string) =>
    source
      .slice(source.indexOf('export default'))
      .replaceAll(/'\.\/src\/plugins\/([\w-]+)\/index\.ts'/g, "'holdfast/plugins/$1'")
      .split('\n')
      .filter((line) => !line.trim().startsWith('//'));
  const names = (source: string) => [...source.matchAll(/^import \{ (.*) \} from/gm)].map(([, list]) => list);
  const shipped = deployed('holdfast.config.ts');
  const own = readFileSync(join(root, 'plugins.config.ts'), 'utf8');
  t.deepEqual(calls(shipped), calls(own));
  t.deepEqual(names(shipped), names(own));
});

test('systemd understands the unit of the runtime, and rates its exposure below 2, also with the drop-in', (t) => {
  const tree = tempDir(t);
  const units = join(tree, 'etc/systemd/system');
  mkdirSync(join(tree, 'opt/holdfast/node_modules/.bin'), { recursive: true });
  mkdirSync(join(units, 'holdfast.service.d'), { recursive: true });
  writeFileSync(join(tree, 'opt/holdfast/node_modules/.bin/node'), '', { mode: 0o755 });
  writeFileSync(join(units, 'holdfast.service'), unit);
  const analyze = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync('systemd-analyze', args, { encoding: 'utf8' });
    return { status, said: stderr.trim(), last: stdout.trim().split('\n').at(-1) };
  };
  const verify = () =>
    analyze('verify', `--root=${tree}`, '--recursive-errors=no', join(units, 'holdfast.service'));
  const security = (threshold: number) =>
    analyze('security', '--offline=true', `--root=${tree}`, `--threshold=${threshold}`, 'holdfast.service');
  t.like(verify(), { status: 0, said: '' });
  t.is(security(19).status, 0, security(19).last);
  t.not(security(5).status, 0, 'the threshold is looked at');
  writeFileSync(join(units, 'holdfast.service.d/kernel.conf'), dropIn);
  t.like(verify(), { status: 0, said: '' });
  t.is(security(19).status, 0, security(19).last);
  writeFileSync(join(units, 'holdfast.service.d/kernel.conf'), '[Service]\nProtectSystem=perhaps\n');
  t.not(verify().said, '', 'a fault is seen');
});

test('[C14] the unit starts the whole runtime as its own user, without capabilities, on a read-only system', async (t) => {
  t.timeout(400_000);
  const { container, state } = unitOf(t, 'holdfast.service', {
    etc: { 'holdfast.config.ts': deployed('holdfast.config.ts') },
    env: Object.fromEntries(PORTS.map((name) => [`HOLDFAST_${name}_PORT`, '0'])),
  });
  const child = startOnHost(t, container, { units: [unit] });
  const [out, err] = [text(child.stdout!), text(child.stderr!)];
  const ended = once(child, 'exit');
  const gone = ended.then(async () => {
    throw new Error(`it ended: ${await out}${await err}`);
  });
  await Promise.race([
    gone,
    until('it is ready', () => readRuntimeFile(state)?.surfaces.console !== undefined),
  ]);
  const { surfaces } = readRuntimeFile(state)!;
  t.deepEqual(Object.keys(surfaces).toSorted(), [
    'console',
    'gateway',
    'memory',
    'otlpGrpc',
    'otlpHttp',
    'router',
    'uptime',
  ]);
  t.is((await fetch(`${surfaces.console!.url}/readyz`)).status, 200);
  t.is((await fetch(`${surfaces.router!.url}/v1/config/active`)).status, 200);
  t.is((await fetch(`${surfaces.gateway!.url}/web_search/mcp`, { method: 'POST' })).status, 401);
  const health: any = await (await fetch(`${surfaces.console!.url}/healthz`)).json();
  t.deepEqual(
    Object.entries<any>(health.plugins).filter(([, { state }]) => state !== 'started' && state !== 'ready'),
    [],
  );
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
  t.regex(status, /^Uid:\t65532\t65532\t65532\t65532$/m);
  t.regex(status, /^CapBnd:\t0+$/m);
  t.regex(status, /^NoNewPrivs:\t1$/m);
  child.kill('SIGTERM');
  gone.catch(() => {});
  t.deepEqual(await ended, [0, null], await err);
});

/** What the kernel driver does, each once, with the programs that it starts. */
const CHANGES = `
ip link add hf0 type dummy 2>/dev/null || ip link add hf0 type veth peer name hf1 || echo no link
echo 1 2>/dev/null > /proc/sys/net/ipv6/conf/lo/disable_ipv6 || echo no sysctl
nft add table inet holdfast 2>/dev/null || echo no table
perl -e 'use Socket; socket(S, AF_INET6, SOCK_RAW, 58) or print "no raw socket\\n"; socket(U, AF_INET, SOCK_DGRAM, 0);
  bind(U, sockaddr_in(67, INADDR_ANY)) or print "no port 67\\n"'
cat /proc/sys/kernel/core_pattern > /dev/null; echo 2>/dev/null x > /opt/holdfast/x || echo read-only
`;

testInNamespace('only the drop-in lets the runtime change the network, and nothing else', async (t) => {
  t.timeout(180_000);
  const change = async (units: string[]) => {
    const { container } = unitOf(t, 'holdfast.service', { etc: {}, env: {} });
    const network = 'ip link set lo up; sysctl -q -w net.ipv4.ip_unprivileged_port_start=1024';
    const child = startOnHost(t, { ...container, argv: ['/bin/sh', '-c', CHANGES] }, { units, network });
    const lines = (await text(child.stdout!)).trim().split('\n');
    return lines;
  };
  t.deepEqual(await change([unit]), [
    'no link',
    'no sysctl',
    'no table',
    'no raw socket',
    'no port 67',
    'read-only',
  ]);
  t.deepEqual(await change([unit, dropIn]), ['read-only']);
});

test('what the drop-in mounts leaves only the tunables of the network writable', (t) => {
  t.regex(unit, /^ProtectKernelTunables=yes$/m);
  t.regex(dropIn, /^ReadWritePaths=\/proc\/sys\/net$/m);
  t.notRegex(dropIn, /^ProtectKernelTunables/m);
  // As systemd mounts them: the folder that is read-only, and in it the one that is not.
  const mounts = `mount --make-rprivate / && mount --bind /proc/sys /proc/sys &&
    mount --bind /proc/sys/net /proc/sys/net && mount -o remount,bind,ro /proc/sys || exit 9
    echo 1 > /proc/sys/net/ipv6/conf/lo/disable_ipv6 && echo net; (echo 1 > /proc/sys/vm/swappiness) 2>&1`;
  const { stdout } = spawnSync('unshare', ['-m', '-n', 'sh', '-c', mounts], { encoding: 'utf8' });
  t.regex(stdout, /^net\n.*read-only/i);
});

const ROUTER = `
import { defineConfig } from 'holdfast';
import { consolePlugin } from 'holdfast/plugins/console';
import { router } from 'holdfast/plugins/router';
const socket = (name) => ({ socket: { path: \`/run/holdfast/\${name}.sock\` } });
export default defineConfig({ plugins: [router({ kernel: 'linux', ...socket('router') }), consolePlugin(socket('console'))] });
`;
const DEVICES = `
ip link set lo up
for name in eth0 eth1; do ip link add $name type veth peer name \${name}p; ip link set \${name}p up; done
ip link add link eth1 name eth1.9 type vlan id 9 2>/dev/null && ip link del eth1.9 ||
  { ip link add eth1.10 type veth peer name eth1x10p; ip link set eth1x10p up; }
`;

testInNamespace(
  'with the drop-in the unit applies a config to the kernel and serves DHCP, and is still no root',
  async (t) => {
    t.timeout(180_000);
    const etc = { 'holdfast.config.ts': ROUTER };
    const { container } = unitOf(t, 'holdfast.service', { etc, env: {} });
    const child = startOnHost(t, container, { units: [unit, dropIn], network: DEVICES });
    const [out, err] = [text(child.stdout!), text(child.stderr!)];
    const run = container.mounts.find(({ at }) => at === '/run/holdfast')!.from;
    const ask = async (name: string, path: string, body?: object): Promise<any> => {
      const client = new Client('http://localhost', { socketPath: join(run, `${name}.sock`) });
      try {
        const method = body === undefined ? 'GET' : 'POST';
        const headers = { 'content-type': 'application/json' };
        const options = { path, method, ...(body && { headers, body: JSON.stringify(body) }) } as const;
        return await (await client.request(options)).body.json();
      } finally {
        await client.close();
      }
    };
    await until(
      'it is ready',
      () => existsSync(join(run, 'console.sock')) || child.exitCode !== null,
      60_000,
    );
    t.is(child.exitCode, null);
    const { ncid } = await ask('router', '/v1/config/active');
    const { errors } = await ask('router', '/v1/config/set', {
      ncid,
      interface: {
        phy: { eth0: { ipv4: '192.0.2.2/24', gateway: '192.0.2.1', meta: { type: 'wan' } }, eth1: {} },
        vlan: { 'eth1.10': { intf: 'eth1', vid: 10, ipv6: ['fd5e:21aa:90c4:10::1/64'] } },
      },
      routing: { global: { default: { viaIntf: 'eth0' } } },
      dhcp6: { 'eth1.10': {} },
    });
    t.deepEqual(errors, []);
    const inside = (...args: string[]) =>
      spawnSync('nsenter', ['-t', String(child.pid), '-n', ...args], { encoding: 'utf8' }).stdout;
    t.regex(inside('ip', '-6', 'address', 'show', 'dev', 'eth1.10'), /fd5e:21aa:90c4:10::1\/64/);
    t.regex(inside('ip', 'route'), /^default via 192\.0\.2\.1 dev eth0/m);
    // dnsmasq has the capabilities from the unit, not from a user of its own.
    const { dhcp } = await ask('console', '/healthz');
    t.true(dhcp.serving);
    t.regex(
      readFileSync(`/proc/${dhcp.pid}/status`, 'utf8'),
      /^Name:\tdnsmasq$[\s\S]*^Uid:\t65532\t65532\t/m,
    );
    // The drop-in allows no packet sockets.
    t.deepEqual(inside('cat', '/proc/net/packet').trim().split('\n').slice(1), []);
    t.regex(readFileSync(`/proc/${child.pid}/status`, 'utf8'), /^Uid:\t65532\t65532\t65532\t65532$/m);
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    t.deepEqual(await ended, [0, null], (await out) + (await err));
  },
);
