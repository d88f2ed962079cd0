import { spawnSync } from 'node:child_process';
import { mkdirSync, statSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { type RouterChange, routerChannels } from '../../../src/core/contracts/router.ts';
import { registerSimulations } from '../../../src/plugins/router/embedded/simulate.ts';
import { call, writeConfig } from '../../support/cli.ts';
import { namespace } from '../../support/netns.ts';
import { tempDir } from '../../support/temp.ts';
import { testInNamespace } from '../../support/test-in-namespace.ts';
import { Rig, type RigOptions } from './rig.ts';

const PLUGIN = new URL('../../../src/plugins/router/index.ts', import.meta.url).pathname;
const DELEGATING = ['eth1.10', 'eth1.20', 'eth1.30', 'eth1.50', 'eth1.70'];
const isGlobal = (address: string) => address.startsWith('2001:db8:');

type Run = (request: unknown) => Promise<unknown>;
type Heard = RouterChange & { channel: string };

/** A running router, what it publishes, and command lines about it. */
async function setUp(t: ExecutionContext, options: RigOptions = {}) {
  const cwd = tempDir(t);
  writeConfig(cwd, 'export default defineConfig({ plugins: [router()] });', [
    `import { router } from ${JSON.stringify(PLUGIN)};`,
  ]);
  const rig = await Rig.start(t, options);
  const heard: Heard[] = [];
  for (const topic of Object.values(routerChannels)) {
    rig.runtime.services.bus
      .stream(topic, 'test')
      .subscribe(({ payload }) => heard.push({ channel: topic.name, ...payload }));
  }
  const simulate = async (...argv: string[]) => {
    heard.length = 0;
    const result = await call(['router', 'simulate', ...argv, '--data-dir', rig.dataDir], { cwd });
    await rig.settled();
    return result;
  };
  return { rig, heard, simulate, cwd };
}

test.serial(
  '[R39][R17] a prefix change gives each delegating leg another address and publishes it, under the same ncid',
  async (t) => {
    const { rig, heard, simulate } = await setUp(t);
    const { ncid } = await rig.active();
    const before = (await rig.state('eth1.10')).ip6;
    const { code, out, err } = await simulate('pd-change', '--prefix', '2001:db8:77::/56');
    t.is(code, 0, err);
    t.regex(out, /eth0 was delegated 2001:db8:77::\/56; reapplied eth1\.10, .*; ncid \w+ stands/);
    t.deepEqual(
      heard.filter(({ channel }) => channel === 'router.iface_change_applied').map(({ intf }) => intf),
      DELEGATING,
    );
    t.is(heard.at(-1)?.channel, 'router.change_applied');
    t.true(heard.every((one) => one.ncid === ncid));
    t.is((await rig.active()).ncid, ncid);
    t.is((await rig.history()).length, 0);

    const after = (await rig.state('eth1.10')).ip6;
    t.true(after.includes('2001:db8:77::1/64'));
    t.true((await rig.state('eth1.20')).ip6.includes('2001:db8:77:1::1/64'));
    t.is(after.filter(isGlobal).length, 1, 'the old one is gone');
    t.is(after[0], before[0], 'the static one stands');
    t.is((await rig.state('eth1.40')).ip6.filter(isGlobal).length, 0);
    t.is(rig.divergence(), undefined);
  },
);

test.serial(
  '[R26,R39] an app save renames a network and drops its addresses, and the next one renames it back',
  async (t) => {
    const { rig, heard, simulate } = await setUp(t);
    const before = (await rig.active()).interface.vlan['eth1.20'];
    const { code, out, err } = await simulate('app-save', '--leg', 'eth1.20');
    t.is(code, 0, err);
    t.regex(out, /eth1\.20 is saved as the app does: named IoT \(renamed\), without ipv6 \(fd5e:/);
    const { ipv6, ...rest } = before;
    const saved = { ...rest, meta: { ...rest.meta, name: `${rest.meta.name} (renamed)` } };
    t.deepEqual((await rig.active()).interface.vlan['eth1.20'], saved);
    t.true(heard.some(({ channel, intf }) => channel.includes('iface_change') && intf === 'eth1.20'));
    t.is((await simulate('app-save', '--leg', 'eth1.20')).code, 0);
    t.deepEqual((await rig.active()).interface.vlan['eth1.20'], rest);
    t.regex((await simulate('app-save', '--leg', 'eth0')).err, /eth0 is no LAN of the config/);
    t.is(rig.divergence(), undefined);
  },
);

test.serial('[R17] a delegated prefix outlives writes and a restart of the runtime', async (t) => {
  const { rig, simulate } = await setUp(t);
  await simulate('pd-change', '--prefix', '2001:db8:77::/56');
  const config = await rig.active();
  config.interface.vlan['eth1.10'].ipv6 = [];
  t.is((await rig.set(config)).status, 200);
  t.true((await rig.state('eth1.10')).ip6.includes('2001:db8:77::1/64'));
  await rig.runtime.stop('test');
  const again = await Rig.start(t, { dataDir: rig.dataDir });
  t.true((await again.state('eth1.10')).ip6.includes('2001:db8:77::1/64'));
});

test.serial('[R39] without a prefix a documentation one is delegated', async (t) => {
  const { rig, simulate } = await setUp(t);
  const { out } = await simulate('pd-change', '--json');
  const { prefix, reapplied } = JSON.parse(out);
  t.regex(prefix, /^2001:db8:[0-9a-f]+::\/56$/);
  t.deepEqual(reapplied, DELEGATING);
  const held: string[] = (await rig.state('eth1.10')).ip6;
  t.true(held.includes(`${prefix.slice(0, -'::/56'.length)}::1/64`));
});

test.serial('[R39] a WAN that goes down and comes up publishes its two channels and no other', async (t) => {
  const { rig, heard, simulate } = await setUp(t);
  const { ncid } = await rig.active();
  for (const [what, up] of [
    ['wan-down', false],
    ['wan-up', true],
  ] as const) {
    const { code, out } = await simulate(what);
    t.is(code, 0);
    t.regex(out, new RegExp(`^eth0 went ${up ? 'up' : 'down'}`));
    t.deepEqual(heard.map(({ channel }) => channel).sort(), [
      'router.wan_conn_changed',
      'router.wan_state_changed',
    ]);
    t.true(heard.every((one) => one.intf === 'eth0' && one.up === up && one.ncid === ncid));
    t.is((await rig.state('eth0')).up, up);
  }
  t.is(rig.divergence(), undefined);
});

test.serial('[R39] a change of the access-point controller publishes its channel', async (t) => {
  const { heard, simulate } = await setUp(t);
  const { code, out } = await simulate('apc');
  t.is(code, 0);
  t.regex(out, /apc_change_applied/);
  t.deepEqual(
    heard.map(({ channel }) => channel),
    ['router.apc_change_applied'],
  );
});

test.serial('[R39] what cannot be simulated is refused by name, and nothing is published', async (t) => {
  const { rig, heard, simulate, cwd } = await setUp(t);
  const refused = async (pattern: RegExp, ...argv: string[]) => {
    const { code, err } = await simulate(...argv);
    t.not(code, 0);
    t.regex(err, pattern);
    t.deepEqual(heard, []);
  };
  await refused(/flood is none of pd-change/, 'flood');
  await refused(/HF_ROUTER_SIMULATION.*eth1 is no WAN/s, 'wan-down', '--wan', 'eth1');
  await refused(/HF_ROUTER_SIMULATION.*no leg delegates from wlan0/s, 'pd-change', '--wan', 'wlan0');
  await refused(/HF_ROUTER_SIMULATION.*is no IPv6 prefix/s, 'pd-change', '--prefix', 'fd00::1');
  await rig.runtime.stop('test');
  const { code, err } = await call(['router', 'simulate', 'apc', '--data-dir', rig.dataDir], { cwd });
  t.not(code, 0);
  t.regex(err, /HF_CONTROL_UNREACHABLE.*nothing runs there/s);
});

testInNamespace(
  '[R39] a router on a real kernel is not played with, one in a namespace of its own is',
  async (t) => {
    const space = namespace(t);
    // Started inside the namespace, so that its own network is not the machine's.
    const { simulate } = await setUp(t, { options: { kernel: 'linux', namespace: space.name } });
    t.is((await simulate('apc')).code, 0);
    const context = {
      control: (build: (surface: unknown, started: unknown) => void) =>
        build({ post: (_: string, run: Run) => (route = run) }, { router: {}, services: {} }),
    };
    let route: Run | undefined;
    registerSimulations(context as never, { isReal: true, replyTimeoutMs: 1 });
    await t.throwsAsync(async () => route?.({ params: { what: 'wan-down' } }), {
      message: /HF_ROUTER_SIMULATION.*changes the network of this machine/,
    });
  },
);

/** One raw request to the control socket. */
function raw(dataDir: string, host: string, headers: Record<string, string> = {}): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        socketPath: join(dataDir, 'control.sock'),
        method: 'POST',
        path: '/router/simulate/apc',
        headers: { host, 'content-type': 'application/json', ...headers },
      },
      (answer) => {
        answer.resume();
        resolve(answer.statusCode ?? 0);
      },
    );
    sent.on('error', reject);
    sent.end('{}');
  });
}

test.serial('the control socket is its user’s alone, and keeps the checks of every surface', async (t) => {
  const { rig, heard } = await setUp(t);
  const socket = join(rig.dataDir, 'control.sock');
  t.is(statSync(socket).mode & 0o777, 0o600);
  t.is(await raw(rig.dataDir, 'evil.example'), 421);
  t.is(await raw(rig.dataDir, 'localhost', { origin: 'http://evil.example' }), 403);
  t.deepEqual(heard, []);
  t.is(await raw(rig.dataDir, 'localhost'), 200);
  await rig.runtime.stop('test');
  t.throws(() => statSync(socket), { code: 'ENOENT' });
});

test.serial('a data folder too deep for a socket runs without one, and says so', async (t) => {
  const dataDir = join(tempDir(t), 'd'.repeat(90), 'e'.repeat(90));
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const lines: string[] = [];
  const { rig, simulate } = await setUp(t, { dataDir, lines });
  t.is((await rig.active()).ncid.length, 32);
  t.true(lines.some((line) => line.includes('control.unavailable')));
  t.regex((await simulate('apc')).err, /HF_CONTROL_UNREACHABLE/);
});

test.serial('a socket that a killed process left is replaced', async (t) => {
  const dataDir = tempDir(t);
  const listen = `require('net').createServer().listen(${JSON.stringify(join(dataDir, 'control.sock'))}, () => process.kill(process.pid, 'SIGKILL'))`;
  t.is(spawnSync(process.execPath, ['-e', listen]).signal, 'SIGKILL');
  t.true(statSync(join(dataDir, 'control.sock')).isSocket());
  const { simulate } = await setUp(t, { dataDir });
  t.is((await simulate('apc')).code, 0);
});
