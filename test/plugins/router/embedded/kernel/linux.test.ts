import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { planReapply } from '../../../../../src/plugins/router/config/reapply.ts';
import { KernelRefusal, type KernelStep } from '../../../../../src/plugins/router/embedded/kernel/driver.ts';
import { LinuxKernel } from '../../../../../src/plugins/router/embedded/kernel/linux.ts';
import { checkStep } from '../../../../../src/plugins/router/embedded/kernel/linux-lines.ts';
import { kernelSteps } from '../../../../../src/plugins/router/embedded/kernel/steps.ts';
import { type Namespace, namespace } from '../../../../support/netns.ts';
import { tempDir } from '../../../../support/temp.ts';
import { testInNamespace } from '../../../../support/test-in-namespace.ts';
import type { Config } from '../../rig.ts';

const never = new AbortController().signal;
const LEG = 'eth1.10';

/** A WAN and a leg on real devices. */
const config = (): Config => ({
  interface: {
    phy: {
      eth0: {
        ipv4: '192.0.2.2/24',
        ipv6: ['fd00:99::2/64'],
        gateway: '192.0.2.1',
        gateway6: 'fd00:99::1',
        meta: { type: 'wan' },
      },
      eth1: {},
    },
    vlan: {
      [LEG]: {
        intf: 'eth1',
        vid: 10,
        ipv4: '10.77.10.1/24',
        ipv6: ['fd5e:21aa:90c4:10::1/64'],
        meta: { type: 'lan' },
      },
    },
    bridge: { br0: { intf: ['eth2'], ipv4: '10.77.1.1/24' } },
    wlan: { wlan0: { enabled: false } },
  },
  routing: { global: { default: { viaIntf: 'eth0' } } },
});

/** The devices of the example config, and the config applied to them. */
async function exampleDevices(t: ExecutionContext) {
  const space = namespace(t);
  for (const name of ['eth0', 'eth1', 'eth2']) space.ip(`link add ${name} type veth peer name ${name}p`);
  for (const name of ['eth0p', 'eth1p', 'eth2p']) space.ip(`link set ${name} up`);
  if (!space.hasVlans) {
    space.ip(`link add ${LEG} type veth peer name leg0p`);
    space.ip('link set leg0p up');
  }
  const kernel = new LinuxKernel({ namespace: space.name });
  await apply(kernel, config());
  return { space, kernel };
}

function apply(kernel: LinuxKernel, after: Config, before?: Config, all = false) {
  return kernel.apply(kernelSteps(planReapply(before, after, all), after), never);
}

const routes = (space: Namespace): string =>
  [space.ip('-4 route show'), space.ip('-6 route show')]
    .join('')
    .split('\n')
    .map((line) => line.replace(' linkdown', '').trim())
    .filter((line) => line !== '' && !line.includes('fe80::/64'))
    .sort()
    .join('\n');
const addresses = (space: Namespace): string =>
  [...space.ip('-o address show').matchAll(/^\d+: (\S+) +(inet6? \S+)/gm)]
    .map(([, name, what]) => `${name} ${what}`)
    .sort()
    .join('\n');

testInNamespace('[R15] a config stands in a real kernel: links, addresses, default routes', async (t) => {
  const { space, kernel } = await exampleDevices(t);
  const leg = await kernel.state(LEG);
  t.true(leg?.up);
  t.deepEqual(leg?.ip4, ['10.77.10.1/24']);
  t.is(leg?.ip6[0], 'fd5e:21aa:90c4:10::1/64');
  t.regex(routes(space), /default via 192\.0\.2\.1 dev eth0 proto 158/);
  t.regex(routes(space), /default via fd00:99::1 dev eth0 proto 158/);
  t.regex(space.ip('link show eth2'), /master br0/);
  t.is(await kernel.state('wlan0'), undefined);
  t.deepEqual([...(await kernel.addresses([LEG, 'wlan0'])).keys()], [LEG]);
});

testInNamespace(
  '[R15] a reapply really loses a route that came out of band; our own come back',
  async (t) => {
    const { space, kernel } = await exampleDevices(t);
    const ours = routes(space);
    space.ip('-6 route add fd77::/64 via fd00:99::9 dev eth0');
    space.ip('route add 10.9.0.0/16 via 192.0.2.9 dev eth0');
    space.ip(`-6 route add fd78::/64 dev ${LEG}`);
    t.not(routes(space), ours);
    await apply(kernel, config(), config(), true);
    t.is(routes(space), ours);
  },
);

testInNamespace('[R15] an interface that is not reapplied keeps what came out of band', async (t) => {
  const { space, kernel } = await exampleDevices(t);
  space.ip('-6 route add fd77::/64 via fd00:99::9 dev eth0');
  const after = config();
  after.interface.vlan[LEG].ipv6 = ['fd5e:21aa:90c4:10::2/64'];
  await apply(kernel, after, config());
  t.regex(routes(space), /fd77::\/64 via fd00:99::9 dev eth0/);
  t.is((await kernel.state(LEG))?.ip6[0], 'fd5e:21aa:90c4:10::2/64');
  t.false(addresses(space).includes('90c4:10::1'));
});

testInNamespace('[R16] a leg without IPv6 has no address of it, not even a link-local one', async (t) => {
  const { kernel } = await exampleDevices(t);
  const after = config();
  delete after.interface.vlan[LEG].ipv6;
  await apply(kernel, after, config());
  t.deepEqual((await kernel.state(LEG))?.ip6, []);
  await apply(kernel, config(), after);
  t.is((await kernel.state(LEG))?.ip6[0], 'fd5e:21aa:90c4:10::1/64');
});

testInNamespace(
  '[R7] a step that the kernel refuses takes back all before it, routes of others included',
  async (t) => {
    const { space, kernel } = await exampleDevices(t);
    space.ip('-6 route add fd77::/64 via fd00:99::9 dev eth0');
    const [routesBefore, addressesBefore, linksBefore] = [
      routes(space),
      addresses(space),
      space.ip('-br link'),
    ];
    const after = config();
    after.interface.phy.eth0.ipv4 = '192.0.2.3/24';
    after.interface.vlan[LEG].ipv6 = ['fd5e:21aa:90c4:10::2/64'];
    after.interface.bridge.br1 = { intf: [], ipv4: '10.77.2.1/24' };
    after.interface.phy.eth9 = {};
    await t.throwsAsync(apply(kernel, after, config()), { instanceOf: KernelRefusal, message: /eth9/ });
    t.is(addresses(space), addressesBefore);
    t.is(routes(space), routesBefore);
    t.is(space.ip('-br link').replaceAll(/ <.*/g, ''), linksBefore.replaceAll(/ <.*/g, ''));
  },
);

testInNamespace(
  "[R7] the kernel's own refusal in the middle of an apply is told in its words and taken back",
  async (t) => {
    const { space, kernel } = await exampleDevices(t);
    const before = [routes(space), addresses(space)];
    const after = config();
    after.interface.phy.eth0.gateway = '198.51.100.1'; // on no network of the device
    const error = await t.throwsAsync(apply(kernel, after, config()), { instanceOf: KernelRefusal });
    t.regex(error.message, /gateway|unreachable/i);
    t.deepEqual([routes(space), addresses(space)], before);
  },
);

testInNamespace('[R7] an apply can be taken back', async (t) => {
  const { space, kernel } = await exampleDevices(t);
  const before = [routes(space), addresses(space)];
  const after = config();
  after.interface.phy.eth0.ipv4 = '192.0.2.3/24';
  delete after.interface.vlan[LEG];
  delete after.interface.bridge.br0;
  const undo = await apply(kernel, after, config());
  t.is(await kernel.state('br0'), undefined);
  t.notDeepEqual([routes(space), addresses(space)], before);
  await undo();
  t.deepEqual([routes(space), addresses(space)], before);
  t.regex(space.ip('link show eth2'), /master br0/);
});

testInNamespace('[R7] an apply that is aborted leaves the kernel as it was', async (t) => {
  const { space, kernel } = await exampleDevices(t);
  const before = [routes(space), addresses(space)];
  const steps = kernelSteps(planReapply(config(), config(), true), config());
  await t.throwsAsync(kernel.apply(steps, AbortSignal.abort(new Error('stopping'))), { message: 'stopping' });
  t.deepEqual([routes(space), addresses(space)], before);
});

testInNamespace('[R17] a prefix that a WAN was delegated gives its legs another address', async (t) => {
  const { kernel } = await exampleDevices(t);
  const after = config();
  after.interface.vlan[LEG].ipv6DelegateFrom = 'eth0';
  const wans = new Map([['eth0', { up: true, prefix: '2001:db8:7::/56' }]]);
  await kernel.apply(kernelSteps(planReapply(config(), after), after, wans), never);
  t.true((await kernel.state(LEG))?.ip6.includes('2001:db8:7::1/64'));
});

testInNamespace("without a namespace it is the process's own network that changes", async (t) => {
  const { space } = await exampleDevices(t);
  space.ip('-6 route add fd77::/64 via fd00:99::9 dev eth0');
  const child = new URL('linux-child.ts', import.meta.url).pathname;
  const argv = ['netns', 'exec', space.name, process.execPath, child, JSON.stringify(config()), LEG];
  const state = JSON.parse(execFileSync('ip', argv, { encoding: 'utf8' }));
  t.is(state.ip6[0], 'fd5e:21aa:90c4:10::1/64');
  t.notRegex(routes(space), /fd77/);
  t.regex(routes(space), /default via fd00:99::1 dev eth0 proto 158/);
});

test.serial(
  'a namespace that does not exist, or an `ip` that is not there, is an error that says so',
  async (t) => {
    const kernel = new LinuxKernel({ namespace: 'hf-none' });
    const error = await t.throwsAsync(kernel.apply([{ step: 'removeLink', intf: 'eth0' }], never));
    t.regex(error.message, /hf-none|HF_ROUTER_KERNEL/);
  },
);

test('no name and no address of a config can become a second command', async (t) => {
  const evil = fc.constantFrom('\n', ' ', ';', '"', '#', '\\', '\0', '/', '%', '\u2028', '-');
  const text = fc.tuple(fc.string(), evil, fc.string()).map((parts) => parts.join(''));
  const asSteps = (name: string, word: string): KernelStep[] => [
    { step: 'removeLink', intf: name },
    { step: 'setLink', intf: 'eth0', kind: 'bridge', lower: [word], up: true },
    { step: 'applyIpv4Settings', intf: 'eth0', addresses: [word] },
    { step: 'applyIpv6Settings', intf: 'eth0', enabled: true, addresses: [word] },
    { step: 'changeRoutingTables', intf: 'eth0', defaultRoute: true, gateway: word },
  ];
  fc.assert(
    fc.property(text, text, (name, word) => {
      for (const step of asSteps(name, word)) {
        try {
          checkStep(step);
        } catch (error) {
          t.true(error instanceof KernelRefusal);
          continue;
        }
        for (const said of [
          step.intf,
          ...('lower' in step ? step.lower : []),
          ...('addresses' in step ? step.addresses : []),
        ])
          if (!/^[\w.:/-]+$/.test(said) || said.startsWith('-')) t.fail(JSON.stringify(said));
      }
    }),
  );
  t.throws(() => checkStep({ step: 'removeLink', intf: 'lo' }), { instanceOf: KernelRefusal });
  const kernel = new LinuxKernel({ namespace: 'none-that-a-line-could-reach' });
  const names = ['eth0\nlink del eth1', 'lo', 'a-name-that-is-far-too-long'];
  const removals = names.map((intf) => ({ step: 'removeLink', intf }) as const);
  await t.notThrowsAsync(kernel.apply(removals, never), 'they were never made: nothing is run');
});

testInNamespace('[R15] an apply of many legs starts no process for each of them', async (t) => {
  const space = namespace(t);
  const names = Array.from({ length: 30 }, (_, n) => `leg${n}x`);
  for (const name of names) space.ip(`link add ${name} type veth peer name far-${name}`);
  // Every line that `ip` is given, and so every process that it starts.
  const dir = tempDir(t);
  const lines = join(dir, 'lines');
  const real = execFileSync('sh', ['-c', 'command -v ip'], { encoding: 'utf8' }).trim();
  writeFileSync(join(dir, 'ip'), `#!/bin/sh\ntee -a ${lines} | exec ${real} "$@"\n`, { mode: 0o755 });
  const path = process.env.PATH;
  process.env.PATH = `${dir}:${path}`;
  t.teardown(() => {
    process.env.PATH = path;
  });
  const legs = names.map((name, n) => [name, { ipv4: `10.7.${n}.1/24`, ipv6: [`fd00:${n}::1/64`] }]);
  await apply(new LinuxKernel({ namespace: space.name }), { interface: { phy: Object.fromEntries(legs) } });
  process.env.PATH = path;
  const given = readFileSync(lines, 'utf8').split('\n');
  t.is(given.filter((line) => line.startsWith('netns exec')).length, 2, 'off and on again');
  for (const [n, name] of names.entries()) {
    t.regex(space.ip(`-6 address show dev ${name}`), new RegExp(`fd00:${n || ''}:`));
    const order = given
      .filter((line) => line.includes(name))
      .map((line) => line.replace(/.*exec.*/, 'sysctl'));
    t.deepEqual(
      order.map((line) => line.split(' ').at(-1)),
      ['up', name, 'sysctl', 'down', 'sysctl', 'up', name],
    );
  }
});
