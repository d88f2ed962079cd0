import test from 'ava';
import fc from 'fast-check';
import {
  addressSets,
  collisionText,
  globalNetwork,
  setCollisions,
} from '../../../../src/plugins/router/config/networks.ts';
import { exampleConfig } from '../rig.ts';

test('[R21] every network has a set, named after its uuid, with the networks of its addresses', (t) => {
  const sets = addressSets(exampleConfig());
  t.deepEqual(
    sets.map(({ intf }) => intf),
    ['eth1.10', 'eth1.20', 'eth1.30', 'eth1.40', 'eth1.50', 'eth1.60', 'eth1.70', 'br0', 'wg0', 'tun_fwvpn'],
  );
  t.deepEqual(sets[0], {
    name: 'c_net_df62a84c-ed88_set6',
    intf: 'eth1.10',
    label: 'Main',
    uuid: 'df62a84c-ed88-4ed9-8068-8ff7b9535295',
    prefixes: ['fd5e:21aa:90c4:10::/64'],
  });
  t.deepEqual(sets[2]?.prefixes, []);
});

test('[R21] what the kernel holds counts instead of the config, without what is not of global scope', (t) => {
  const held = (intf: string) =>
    intf === 'eth1.10' ? ['fe80::1/64', '2001:db8:5:6::1/64', 'fd00::1/64', '10.0.0.1/24'] : undefined;
  const [main, iot] = addressSets(exampleConfig(), held);
  t.deepEqual(main?.prefixes, ['2001:db8:5:6::/64', 'fd00::/64']);
  t.deepEqual(iot?.prefixes, ['fd5e:21aa:90c4:20::/64']);
});

test('[R34] networks whose uuids share 13 characters collide, and are named', (t) => {
  t.deepEqual(setCollisions(exampleConfig()), []);
  const config = exampleConfig();
  config.interface.vlan['eth1.20'].meta.uuid = 'df62a84c-ed88-0000-0000-000000000000';
  const [collision, ...others] = setCollisions(config);
  t.deepEqual(others, []);
  t.is(collision?.name, 'c_net_df62a84c-ed88_set6');
  t.regex(
    collisionText(collision!),
    /^Main \(eth1\.10\) and IoT \(eth1\.20\) share the address set c_net_df62a84c-ed88_set6/,
  );
});

test('[R34] two networks collide exactly when 13 characters of their uuids agree', (t) => {
  const uuid = fc.uuid();
  const holds = () =>
    fc.assert(
      fc.property(uuid, uuid, fc.nat(36), (one, two, shared) => {
        const config = exampleConfig();
        const mixed = one.slice(0, shared) + two.slice(shared);
        config.interface.vlan['eth1.10'].meta.uuid = one;
        config.interface.vlan['eth1.20'].meta.uuid = mixed;
        const collide = setCollisions(config).some(({ networks }) => networks.length > 1);
        return collide === (one.slice(0, 13) === mixed.slice(0, 13));
      }),
    );
  t.notThrows(holds);
});

test('[R21] anything that is no IPv6 address with prefix length holds nothing', (t) => {
  fc.assert(fc.property(fc.string(), (text) => Array.isArray(globalNetwork(text))));
  t.deepEqual(globalNetwork('::1/128'), []);
  t.deepEqual(globalNetwork('ff02::1/64'), []);
});
