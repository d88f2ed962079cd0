import { randomUUID } from 'node:crypto';
import test from 'ava';
import { HoldfastError } from '../../../../src/core/kernel/errors/holdfast-error.ts';
import { validateConfig } from '../../../../src/plugins/router/config/validate.ts';
import { type Config, exampleConfig } from '../rig.ts';

const IOT = 'interface.vlan.eth1.20';
const LAB = 'interface.vlan.eth1.40';
const leg = (config: Config) => config.interface.vlan['eth1.20'];
const lab = (config: Config) => config.interface.vlan['eth1.40'];
const wan = (ipv4: string) => ({ enabled: true, ipv4, gateway: '192.0.2.1', meta: { type: 'wan' } });

type Change = (config: Config) => void;

/** What a real daemon takes, and so do we. */
const taken: Readonly<Record<string, Change>> = {
  'nothing changed': () => {},
  'two addresses of one leg in one network': (c) => (leg(c).ipv4s = ['10.77.20.1/24', '10.77.20.2/24']),
  'two WANs in one network': (c) => (c.interface.phy = { ...c.interface.phy, eth7: wan('192.0.2.3/24') }),
  'the network beside': (c) => (leg(c).ipv4 = '10.77.21.1/24'),
  'an address for one host': (c) => (leg(c).ipv4 = '10.99.0.1/32'),
  'a prefix from a LAN': (c) => (leg(c).ipv6DelegateFrom = 'eth1.10'),
  'a prefix that passes through from an unknown WAN': (c) => {
    delete leg(c).ipv6DelegateFrom;
    leg(c).ipv6PassthroughFrom = 'eth9';
  },
  'an unknown WAN for a leg that is off': (c) =>
    Object.assign(leg(c), { enabled: false, ipv6DelegateFrom: 'eth9' }),
  'an empty uuid': (c) => (leg(c).meta.uuid = ''),
  'no uuid': (c) => delete leg(c).meta.uuid,
  'a uuid in capitals': (c) => (leg(c).meta.uuid = leg(c).meta.uuid.toUpperCase()),
  'a uuid of version 9': (c) => (leg(c).meta.uuid = '76091add-8a19-9910-9e65-72e43ea95429'),
  'a uuid of another variant': (c) => (leg(c).meta.uuid = '76091add-8a19-4910-0e65-72e43ea95429'),
  'the nil uuid': (c) => (leg(c).meta.uuid = '00000000-0000-0000-0000-000000000000'),
  'no meta': (c) => delete leg(c).meta,
  'a translation with a name of 64 characters': (c) =>
    (c.nat['n'.repeat(64)] = { in: 'eth1.20', out: 'eth0' }),
  'a translation to an unknown interface': (c) => (c.nat.extra = { in: 'eth1.20', out: 'eth9' }),
  'a translation from an unknown interface': (c) => (c.nat.extra = { in: 'eth9', out: 'eth0' }),
  'a translation by subnets': (c) => (c.nat.extra = { srcSubnets: ['10.77.20.0/24'], out: 'eth0' }),
  'a VLAN number as text': (c) => (lab(c).vid = '40'),
  'the first VLAN number': (c) => (lab(c).vid = 1),
  'the last VLAN number': (c) => (lab(c).vid = 4094),
  'ipv6 as text': (c) => (leg(c).ipv6 = 'fd00:20::1/64'),
  'ipv6 as an empty list': (c) => (leg(c).ipv6 = []),
  'a part that nobody here knows': (c) => (c.future = { 'a b': 1 }),
  'no ncid, which is checked later': (c) => delete c.ncid,
};

/** What a real daemon refuses before it applies anything, or while it does, and we by the path of the field. */
const refused: Readonly<Record<string, [path: string, change: Change]>> = {
  'the network of another leg': [`${IOT}.ipv4`, (c) => (leg(c).ipv4 = '10.77.10.1/24')],
  'a network inside that of another leg': [`${IOT}.ipv4`, (c) => (leg(c).ipv4 = '10.77.10.129/25')],
  'a network around those of others': [`${LAB}.ipv4`, (c) => (lab(c).ipv4 = '10.77.0.1/16')],
  'a second network that overlaps': [
    `${IOT}.ipv4s.1`,
    (c) => (leg(c).ipv4s = ['10.77.20.1/24', '10.77.10.2/24']),
  ],
  everything: [`${IOT}.ipv4`, (c) => (leg(c).ipv4 = '0.0.0.0/0')],
  'a LAN in the network of a WAN': [
    `${IOT}.ipv4`,
    (c) => {
      c.interface.phy.eth0 = wan('192.0.2.2/24');
      leg(c).ipv4 = '192.0.2.9/24';
    },
  ],
  'an octet of 256': [`${IOT}.ipv4`, (c) => (leg(c).ipv4 = '10.99.20.256/24')],
  'a prefix length of 33': [`${IOT}.ipv4`, (c) => (leg(c).ipv4 = '10.99.20.1/33')],
  'a prefix from an unknown WAN': [`${IOT}.ipv6DelegateFrom`, (c) => (leg(c).ipv6DelegateFrom = 'eth9')],
  'a prefix from a number': [`${IOT}.ipv6DelegateFrom`, (c) => (leg(c).ipv6DelegateFrom = 4)],
  'a prefix delegated and passed through': [
    `${IOT}.ipv6PassthroughFrom`,
    (c) => Object.assign(leg(c), { ipv6DelegateFrom: 'eth0', ipv6PassthroughFrom: 'eth0' }),
  ],
  'a uuid that is none': [`${IOT}.meta.uuid`, (c) => (leg(c).meta.uuid = 'not-a-uuid')],
  'a uuid that is a number': [`${IOT}.meta.uuid`, (c) => (leg(c).meta.uuid = 7)],
  'a uuid without dashes': [
    `${IOT}.meta.uuid`,
    (c) => (leg(c).meta.uuid = leg(c).meta.uuid.replaceAll('-', '')),
  ],
  'a translation with a blank in its name': ['nat.a b', (c) => (c.nat['a b'] = { in: 'br0', out: 'eth0' })],
  'a translation with a semicolon': ['nat.a;b', (c) => (c.nat['a;b'] = { in: 'br0', out: 'eth0' })],
  'a translation with a name of 65 characters': [
    `nat.${'n'.repeat(65)}`,
    (c) => (c.nat['n'.repeat(65)] = { in: 'br0', out: 'eth0' }),
  ],
  'a translation to what is no name': ['nat.x.out', (c) => (c.nat.x = { in: 'br0', out: 'eth0;reboot' })],
  'a translation to nowhere': ['nat.x.out', (c) => (c.nat.x = { in: 'br0' })],
  'a translation from nowhere': ['nat.x.in', (c) => (c.nat.x = { out: 'eth0' })],
  'a part of dns with a blank': ['dns.a b', (c) => (c.dns['a b'] = { nameservers: ['1.1.1.1'] })],
  'a part of dhcp with a slash': ['dhcp.a/b', (c) => (c.dhcp['a/b'] = {})],
  'a part of upnp with a blank': ['upnp.a b', (c) => (c.upnp = { 'a b': {} })],
  'a part of hostapd with a dollar': ['hostapd.$(x)', (c) => (c.hostapd = { '$(x)': {} })],
  'dhcp of an unknown interface': ['dhcp.eth9', (c) => (c.dhcp.eth9 = {})],
  'dhcp6 of an unknown interface': ['dhcp6.eth9', (c) => (c.dhcp6.eth9 = {})],
  'a VLAN number that is a word': [`${LAB}.vid`, (c) => (lab(c).vid = 'x')],
  'VLAN 0': [`${LAB}.vid`, (c) => (lab(c).vid = 0)],
  'VLAN "0"': [`${LAB}.vid`, (c) => (lab(c).vid = '0')],
  'VLAN 4095': [`${LAB}.vid`, (c) => (lab(c).vid = 4095)],
  'VLAN "4095"': [`${LAB}.vid`, (c) => (lab(c).vid = '4095')],
  'VLAN 40.5': [`${LAB}.vid`, (c) => (lab(c).vid = 40.5)],
  'no VLAN number': [`${LAB}.vid`, (c) => delete lab(c).vid],
  'an unknown lower interface': [`${LAB}.intf`, (c) => (lab(c).intf = 'eth9')],
  'an unknown lower interface of a leg that is off': [
    `${LAB}.intf`,
    (c) => Object.assign(lab(c), { intf: 'eth9', enabled: false }),
  ],
  'no lower interface': [`${LAB}.intf`, (c) => delete lab(c).intf],
  'a lower interface that is no name': [`${LAB}.intf`, (c) => (lab(c).intf = 'eth1;x')],
  'an unknown member of a bridge': [
    'interface.bridge.br0.intf.1',
    (c) => (c.interface.bridge.br0.intf = ['eth2', 'eth9']),
  ],
  'an interface with a name of 16 characters': [
    'interface.vlan.eth1.1234567890a',
    (c) => (c.interface.vlan['eth1.1234567890a'] = { vid: 99, intf: 'eth1' }),
  ],
  'an ipv6 that is none': [`${IOT}.ipv6.0`, (c) => (leg(c).ipv6 = ['fd00::zz/64'])],
  'no interface': ['interface', (c) => delete c.interface],
};

/** What a real daemon takes and we refuse: it applies something else than was posted, or breaks over it. */
const stricter: Readonly<Record<string, [path: string, change: Change]>> = {
  'an ipv4 without prefix length': [`${IOT}.ipv4`, (c) => (leg(c).ipv4 = '10.99.20.1')],
  'an ipv4 that is a number': [`${IOT}.ipv4`, (c) => (leg(c).ipv4 = 7)],
  'an empty ipv4': [`${IOT}.ipv4`, (c) => (leg(c).ipv4 = '')],
  'a prefix from itself': [`${IOT}.ipv6DelegateFrom`, (c) => (leg(c).ipv6DelegateFrom = 'eth1.20')],
  'an empty name of a WAN': [`${IOT}.ipv6DelegateFrom`, (c) => (leg(c).ipv6DelegateFrom = '')],
  'an interface with a colon in its name': [
    'interface.vlan.eth1:9',
    (c) => (c.interface.vlan['eth1:9'] = { vid: 99, intf: 'eth1' }),
  ],
  'an ipv6 without prefix length': [`${IOT}.ipv6.0`, (c) => (leg(c).ipv6 = ['fd00:20::1'])],
  'ipv6 null': [`${IOT}.ipv6`, (c) => (leg(c).ipv6 = null)],
  'enabled as text': [`${IOT}.enabled`, (c) => (leg(c).enabled = 'yes')],
  'a list of VLANs': ['interface.vlan', (c) => (c.interface.vlan = [])],
};

for (const [title, change] of Object.entries(taken)) {
  test(`[R36] taken, as by a real daemon: ${title}`, (t) => {
    const config = exampleConfig();
    change(config);
    t.notThrows(() => validateConfig(config));
  });
}

for (const [title, [path, change]] of Object.entries({ ...refused, ...stricter })) {
  test(`[R36] refused by its path: ${title}`, (t) => {
    const config = exampleConfig();
    change(config);
    const error = t.throws(() => validateConfig(config), { instanceOf: HoldfastError });
    t.is(error?.code, 'HF_ROUTER_CONFIG_INVALID');
    t.is(error?.status, 400);
    t.is(error?.details.path, path);
  });
}

test('[R36] of 2,000 legs the two that overlap are found, and named by their paths only', (t) => {
  const legs = Array.from({ length: 2_000 }, (_, n): [string, Config] => [
    `eth1.${n + 1}`,
    {
      intf: 'eth1',
      vid: n + 1,
      ipv4: `10.${n >> 8}.${n & 255}.1/24`,
      meta: { type: 'lan', uuid: randomUUID() },
    },
  ]);
  const config = { interface: { phy: { eth1: {} }, vlan: Object.fromEntries(legs) } };
  t.notThrows(() => validateConfig(config));
  config.interface.vlan['eth1.1700'].ipv4 = '10.0.7.99/30';
  const error = t.throws(() => validateConfig(config), { instanceOf: HoldfastError });
  t.is(error?.details.path, 'interface.vlan.eth1.1700.ipv4');
  t.is(error?.details.reason, 'it overlaps with the network of interface.vlan.eth1.8');
});
