import test from 'ava';
import type { NetworkConfig } from '../../../../../src/core/contracts/router.ts';
import { planReapply } from '../../../../../src/plugins/router/config/reapply.ts';
import { KernelRefusal } from '../../../../../src/plugins/router/embedded/kernel/driver.ts';
import { MemoryKernel } from '../../../../../src/plugins/router/embedded/kernel/memory.ts';
import { kernelSteps } from '../../../../../src/plugins/router/embedded/kernel/steps.ts';
import { type Config, exampleConfig } from '../../rig.ts';

const never = new AbortController().signal;

async function apply(kernel: MemoryKernel, after: NetworkConfig, before?: NetworkConfig, all = false) {
  return kernel.apply(kernelSteps(planReapply(before, after, all), after), never);
}

async function example(): Promise<{ kernel: MemoryKernel; config: Config }> {
  const kernel = new MemoryKernel();
  const config = exampleConfig();
  await apply(kernel, config);
  return { kernel, config };
}

const ULA = 'fd5e:21aa:90c4:10::1/64';
const isGlobal = (address: string) => address.startsWith('2001:db8:');

test('[R16] a static address stands beside a delegated global one, and beside none', async (t) => {
  const { kernel } = await example();
  const main = await kernel.state('eth1.10');
  t.is(main?.ip6[0], ULA);
  t.is(main?.ip6.filter(isGlobal).length, 1);
  const lab = await kernel.state('eth1.40');
  t.is(lab?.ip6[0], 'fd5e:21aa:90c4:40::1/64');
  t.is(lab?.ip6.filter(isGlobal).length, 0);
});

test('[R16] any of the three fields turns IPv6 on; none leaves it off', async (t) => {
  const { kernel, config } = await example();
  const ip6 = async (fields: object) => {
    const after = structuredClone(config);
    after.interface.vlan['eth1.60'] = { ...after.interface.vlan['eth1.60'], ...fields };
    await apply(kernel, after, config, true);
    return (await kernel.state('eth1.60'))?.ip6.length ?? 0;
  };
  t.is(await ip6({}), 0);
  t.true((await ip6({ ipv6: [] })) > 0);
  t.true((await ip6({ ipv6: 'fd00::1/64' })) > 1);
  t.true((await ip6({ ipv6DelegateFrom: 'eth0' })) > 1);
  t.true((await ip6({ ipv6PassthroughFrom: 'eth0' })) > 0);
});

test('[R16] a WAN with a DHCPv6 client ignores a static address', async (t) => {
  const { kernel, config } = await example();
  const after = structuredClone(config);
  after.interface.phy.eth0.ipv6 = ['fd00::1/64'];
  await apply(kernel, after, config);
  t.false((await kernel.state('eth0'))?.ip6.includes('fd00::1/64'));
});

test('[R15] a reapply loses every single-nexthop route on the device; only our own come back', async (t) => {
  const { kernel, config } = await example();
  const ours = (await kernel.state('eth0'))?.routes;
  kernel.addRoute({
    family: 6,
    destination: 'fd99::/64',
    via: 'fe80::9',
    origin: 'static',
    devices: ['eth0'],
  });
  kernel.addRoute({ family: 4, destination: '10.9.0.0/16', origin: 'static', devices: ['eth0'] });
  kernel.addRoute({ family: 6, destination: 'fd98::/64', origin: 'static', devices: ['eth0', 'eth1'] });
  kernel.addRoute({ family: 6, destination: 'fd97::/64', origin: 'static', devices: ['eth1.60'] });
  t.is((await kernel.state('eth0'))?.routes.length, (ours?.length ?? 0) + 3);

  const after = structuredClone(config);
  after.interface.phy.eth0.mtu = 1400;
  await apply(kernel, after, config);
  const left = (await kernel.state('eth0'))?.routes ?? [];
  t.deepEqual(
    left.filter(({ origin }) => origin === 'static').map(({ destination }) => destination),
    ['fd98::/64'],
    'a multipath route is left alone',
  );
  t.deepEqual(
    left.filter(({ origin }) => origin !== 'static'),
    ours,
  );
  t.true((await kernel.state('eth1.60'))?.routes.some(({ destination }) => destination === 'fd97::/64'));
});

test('[R15] the order is flushIP(6), applyIpv6Settings, changeRoutingTables', (t) => {
  const config = exampleConfig();
  const after = structuredClone(config);
  after.interface.vlan['eth1.10'].ipv6 = [];
  t.deepEqual(
    kernelSteps(planReapply(config, after), after).map(({ step }) => step),
    ['setLink', 'applyIpv4Settings', 'flushIP', 'applyIpv6Settings', 'changeRoutingTables'],
  );
});

test('[R7] a refused step leaves the whole kernel as it was', async (t) => {
  const { kernel, config } = await example();
  const before = await kernel.state('eth1.10');
  const after = structuredClone(config);
  after.interface.vlan['eth1.10'].ipv6 = [];
  after.interface.vlan['eth1.99'] = { intf: 'eth7', vid: 99 };
  await t.throwsAsync(apply(kernel, after, config), { instanceOf: KernelRefusal, message: /eth7/ });
  t.deepEqual(await kernel.state('eth1.10'), before);
  t.is(await kernel.state('eth1.99'), undefined);
});

test('[R7] an apply can be taken back', async (t) => {
  const { kernel, config } = await example();
  const before = await kernel.state('eth1.10');
  const after = structuredClone(config);
  after.interface.vlan['eth1.10'].ipv6 = [];
  delete after.interface.vlan['eth1.20'];
  const undo = await apply(kernel, after, config);
  t.is(await kernel.state('eth1.20'), undefined);
  await undo();
  t.deepEqual(await kernel.state('eth1.10'), before);
  t.truthy(await kernel.state('eth1.20'));
});

test('[R15] an interface that is off or gone has no addresses and no routes; hardware stays', async (t) => {
  const { kernel, config } = await example();
  const after = structuredClone(config);
  after.interface.vlan['eth1.10'].enabled = false;
  delete after.interface.phy.eth3;
  after.interface.bridge.br0.intf = ['eth2'];
  await apply(kernel, after, config);
  const { link, ...state } = (await kernel.state('eth1.10'))!;
  t.like(link, { carrier: null, operstate: 'down' });
  t.deepEqual(state, {
    up: false,
    ip4: ['10.77.10.1/24'],
    ip6: [],
    routes: [],
  });
  t.like(await kernel.state('eth3'), { up: false, ip6: [] });
});

test('[R17] a changed default policy moves the default routes', async (t) => {
  const { kernel, config } = await example();
  const after = structuredClone(config);
  after.interface.phy.eth2.meta.type = 'wan';
  after.routing.global.default.viaIntf = 'eth2';
  await apply(kernel, after, config);
  const defaults = async (intf: string) =>
    (await kernel.state(intf))?.routes.filter(({ destination }) => destination === 'default').length;
  t.is(await defaults('eth0'), 0);
  t.is(await defaults('eth2'), 1);
});

test('[R7] an apply that is aborted leaves the kernel as it was', async (t) => {
  const { kernel, config } = await example();
  const before = await kernel.state('eth1.10');
  const steps = kernelSteps(planReapply(config, config, true), config);
  await t.throwsAsync(kernel.apply(steps, AbortSignal.abort(new Error('stopping'))), { message: 'stopping' });
  t.deepEqual(await kernel.state('eth1.10'), before);
});

test('[R7] a name in two maps, and a VLAN of nothing, which a store may hold, can be removed', async (t) => {
  const { kernel, config } = await example();
  const doubled = structuredClone(config);
  doubled.interface.vlan.eth1 = {};
  doubled.interface.vlan['no-parent-and-a-long-name'] = {};
  doubled.interface.phy['a b'] = {};
  await apply(kernel, doubled, config);
  await apply(kernel, config, doubled);
  t.true((await kernel.state('eth1'))?.up);
  t.is((await kernel.state('eth1.10'))?.ip6[0], ULA);
  const renamed = structuredClone(config);
  renamed.interface.vlan['eth1.10'].meta.uuid = 'other';
  await t.notThrowsAsync(apply(kernel, renamed, config), 'what comes after it applies');
});

test('[R7] a default policy through a device that is gone can be fixed', async (t) => {
  const { kernel, config } = await example();
  const dangling = structuredClone(config);
  dangling.interface.phy.eth3.meta.type = 'wan';
  dangling.interface.bridge.br0.intf = ['eth2'];
  dangling.routing.global.default.viaIntf = 'gone';
  await apply(kernel, dangling, config);
  await apply(kernel, config, dangling);
  t.true((await kernel.state('eth0'))?.routes.some(({ destination }) => destination === 'default'));
});

test('[R7] nobody refuses to remove what was never made', async (t) => {
  const { kernel } = await example();
  const names = ['eth9.9', 'lo', 'no name at all', 'a-name-that-is-far-too-long'];
  const steps = names.map((intf) => ({ step: 'removeLink', intf }) as const);
  await t.notThrowsAsync(kernel.apply(steps, never));
});

test('what thousands of legs cost grows with their number, not with its square', (t) => {
  const config = exampleConfig();
  for (let n = 0; n < 4_000; n += 1)
    config.interface.vlan[`e1.${n}`] = { vid: (n % 4_000) + 1, intf: 'eth1', ipv6DelegateFrom: 'eth0' };
  const wans = new Map([['eth0', { up: true, prefix: '2001:db8:7::/48' }]]);
  let reads = 0;
  const counting = new Proxy(config, {
    get: (target, key) => {
      if (key === 'interface') reads += 1;
      return target[key];
    },
  });
  const steps = kernelSteps(planReapply(undefined, config), counting, wans);
  t.true(steps.some((step) => 'delegated' in step && step.delegated === '2001:db8:7:f::1/64'));
  t.true(reads < 20, `the config was walked ${reads} times`);
});
