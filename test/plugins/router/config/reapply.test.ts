import test from 'ava';
import { changedPaths } from '../../../../src/plugins/router/config/network-config.ts';
import { planReapply } from '../../../../src/plugins/router/config/reapply.ts';
import { type Config, exampleConfig } from '../rig.ts';

function plan(change: (config: Config) => void) {
  const before = exampleConfig();
  const after = structuredClone(before);
  change(after);
  const { interfaces, applied, removed } = planReapply(before, after);
  const paths = (list: typeof applied) => list.map(({ path }) => path);
  return {
    interfaces,
    applied: paths(applied),
    removed: paths(removed),
    changed: changedPaths(before, after),
  };
}

test('[R14] an equal config reapplies nothing', (t) => {
  t.deepEqual(
    plan(() => {}),
    { interfaces: [], applied: [], removed: [], changed: [] },
  );
});

test('[R14] a display name and what the app keeps for itself count for nothing', (t) => {
  const { applied, changed } = plan((config) => {
    config.interface.vlan['eth1.10'].meta.name = 'Living room';
    config.interface.phy.eth0.extra.pingTestEnabled = false;
    config.ts = 1;
    config.somethingNobodyOwns = { a: 1 };
    config.ncid = 'another';
  });
  t.deepEqual(applied, []);
  t.deepEqual(changed.toSorted(), [
    'interface.phy.eth0.extra',
    'interface.vlan.eth1.10.meta',
    'somethingNobodyOwns',
    'ts',
  ]);
});

test('[R14] one added key reapplies one interface and its dependents', (t) => {
  const { interfaces, applied } = plan((config) => {
    config.interface.vlan['eth1.60'].ipv6 = ['fd00::1/64'];
  });
  t.deepEqual(interfaces, ['eth1.60']);
  t.deepEqual(applied, [
    'interface.vlan.eth1.60',
    'nat.eth1.60_eth0',
    'dns.eth1.60',
    'dhcp.eth1.60',
    'sshd.eth1.60',
    'upnp.eth1.60',
    'icmp.eth1.60',
    'mdns_reflector.eth1.60',
  ]);
});

test('[R14] a change outside of interfaces reapplies no interface', (t) => {
  const { interfaces, applied } = plan((config) => {
    config.dhcp6['eth1.10'].nameservers = ['fd00::53'];
  });
  t.deepEqual(interfaces, []);
  t.deepEqual(applied, ['dhcp6.eth1.10']);
});

test('[R14] interfaces on a changed device, and legs that get their prefix from it, are reapplied after it', (t) => {
  const vlans = plan((config) => {
    config.interface.phy.eth1.mtu = 1400;
  }).interfaces;
  t.is(vlans[0], 'eth1');
  t.is(vlans.length, 8);
  const delegating = plan((config) => {
    config.interface.phy.eth0.dhcp6.pdSize = 60;
  }).interfaces;
  t.deepEqual(delegating, ['eth0', 'eth1.10', 'eth1.20', 'eth1.30', 'eth1.50', 'eth1.70']);
});

test('[R14] a removed interface is taken down, and what leaned on it is reapplied', (t) => {
  const { interfaces, applied, removed } = plan((config) => {
    delete config.interface.wireguard.wg0;
  });
  t.deepEqual(removed, ['interface.wireguard.wg0']);
  t.deepEqual(interfaces, ['wg0']);
  t.deepEqual(applied, ['nat.wg0_eth0', 'dns.wg0']);
});

test('[R11] a full reapply takes lower devices first, whatever the order of the config', (t) => {
  const { vlan, phy, ...rest } = exampleConfig().interface;
  const config = { ...exampleConfig(), interface: { vlan, ...rest, phy } };
  config.interface.bridge.br0.intf = ['eth1.90'];
  config.interface.vlan['eth1.90'] = { intf: 'eth1', vid: 90 };
  const { interfaces } = planReapply(config, config, true);
  t.true(interfaces.indexOf('eth1') < interfaces.indexOf('eth1.10'));
  t.true(interfaces.indexOf('eth0') < interfaces.indexOf('eth1.10'));
  t.true(interfaces.indexOf('eth1.90') < interfaces.indexOf('br0'));
  t.is(interfaces.length, new Set(interfaces).size);
});

test('[R11] interfaces that stand on each other in a circle are planned once each', (t) => {
  const config = { interface: { bridge: { a: { intf: ['b'] }, b: { intf: ['a'] } } } };
  t.deepEqual(planReapply(undefined, config).interfaces.toSorted(), ['a', 'b']);
});

test('[R32] changed paths are bounded and hold no value', (t) => {
  const after = exampleConfig();
  for (let i = 0; i < 500; i += 1) after.dns[`eth1.${i + 100}`] = { nameservers: ['CANARY'] };
  after.wireguard = 'CANARY';
  const paths = changedPaths(exampleConfig(), after);
  t.is(paths.length, 41);
  t.is(paths.at(-1), 'and 461 more');
  t.false(JSON.stringify(paths).includes('CANARY'));
});
