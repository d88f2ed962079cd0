import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { namespace } from '../../../../support/netns.ts';
import { testInNamespace } from '../../../../support/test-in-namespace.ts';
import { type Config, Rig } from '../../rig.ts';

const LEG = 'eth1.10';

testInNamespace('[R7][R11][R15] writes over HTTP change a real kernel, whole or not at all', async (t) => {
  const space = namespace(t);
  for (const name of ['eth0', 'eth1', ...(space.hasVlans ? [] : [LEG])]) {
    const peer = `${name.replace('.', 'x')}p`;
    space.ip(`link add ${name} type veth peer name ${peer}`);
    space.ip(`link set ${peer} up`);
  }
  const rig = await Rig.start(t, { options: { kernel: 'linux', namespace: space.name } });
  const config: Config = {
    ncid: (await rig.active()).ncid,
    interface: {
      phy: { eth0: { ipv4: '192.0.2.2/24', gateway: '192.0.2.1', meta: { type: 'wan' } }, eth1: {} },
      vlan: { [LEG]: { intf: 'eth1', vid: 10, ipv6: ['fd5e:21aa:90c4:10::1/64'], meta: { type: 'lan' } } },
    },
    routing: { global: { default: { viaIntf: 'eth0' } } },
    dhcp6: { [LEG]: {} },
  };
  const first = await rig.set(config);
  t.is(first.status, 200, JSON.stringify(first.body));
  t.is((await rig.state(LEG)).ip6[0], 'fd5e:21aa:90c4:10::1/64');
  t.deepEqual(readdirSync(join(rig.dataDir, 'router/dhcp/conf')), [`${LEG}_v6.conf`]);

  const before = space.ip('address show');
  const bad = structuredClone({ ...config, ncid: first.body.ncid });
  bad.interface.vlan[LEG].ipv6 = ['fd5e:21aa:90c4:10::2/64'];
  bad.interface.phy.eth0.gateway = '198.51.100.1';
  delete bad.dhcp6;
  const refused = await rig.set(bad);
  t.is(refused.status, 500);
  t.regex(refused.body.errors[0], /gateway|unreachable/i);
  const addresses = (text: string) => [...text.matchAll(/inet6? \S+/g)].map(String).sort();
  t.deepEqual(addresses(space.ip('address show')), addresses(before));
  t.deepEqual(readdirSync(join(rig.dataDir, 'router/dhcp/conf')), [`${LEG}_v6.conf`]);
  t.is((await rig.active()).ncid, first.body.ncid);

  space.ip('route add 10.9.0.0/16 via 192.0.2.9 dev eth0');
  t.is((await rig.call('POST', '/v1/config/apply_current_config')).status, 200);
  const routes = space.ip('route show');
  t.notRegex(routes, /10\.9\.0\.0/);
  t.regex(routes, /default via 192\.0\.2\.1 dev eth0 proto 158/);
  t.is(rig.divergence(), undefined);
});
