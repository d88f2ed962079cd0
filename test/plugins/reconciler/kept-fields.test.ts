/** Which fields are held and which refused, and what is put into a config for them. */
import test from 'ava';
import fc from 'fast-check';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import type { KeptField } from '../../../src/machines/reconciler/leg-shapes.ts';
import { reconciler } from '../../../src/plugins/reconciler/index.ts';
import { keysOf } from '../../../src/plugins/reconciler/keep-option.ts';
import { readField, readHeld, withField, withHeld } from '../../../src/plugins/reconciler/kept-fields.ts';
import { lookAtLeg } from '../../../src/plugins/reconciler/link.ts';
import { legSettings, reconcilerOptions } from '../../../src/plugins/reconciler/options.ts';
// Declares what is secret in a network config.
import '../../../src/plugins/router/index.ts';
import { runs } from '../../support/runs.ts';

type Options = NonNullable<Parameters<typeof reconciler>[0]>;

const NEVER = ['eth1.30', 'eth1.60'];
const DNS: KeptField = { path: ['dhcp6', 'eth1.10', 'nameservers'], value: ['fd00::53'], match: 'contains' };

const refusal = (keep: Options['keep'], more: Options = {}): string => {
  try {
    resolveConfig({ plugins: [reconciler({ ...more, keep })] }, { env: {} });
  } catch (error) {
    return String(error);
  }
  return '';
};

test('[R24] the path of a kept field: a part that begins with a digit belongs to the key before it', (t) => {
  t.deepEqual(keysOf('dhcp6.eth1.10.nameservers'), ['dhcp6', 'eth1.10', 'nameservers']);
  t.deepEqual(keysOf('nat.eth1.10_eth0.out'), ['nat', 'eth1.10_eth0', 'out']);
  t.deepEqual(keysOf('routing.global.default.viaIntf'), ['routing', 'global', 'default', 'viaIntf']);
  const options = {
    keep: [{ path: 'dhcp6.eth1.10.nameservers', value: ['b', 'a'], match: 'contains' as const }],
  };
  t.like(legSettings(reconcilerOptions.parse(options)).at(-1), {
    intf: 'dhcp6.eth1.10.nameservers',
    label: 'dhcp6.eth1.10.nameservers',
    address: '["b","a"]',
    keep: { path: ['dhcp6', 'eth1.10', 'nameservers'], value: ['b', 'a'], match: 'contains' },
  });
});

test('[R24] a kept field is refused at load when it belongs to Guest or Telework, whatever names them', (t) => {
  const never = /never touched/;
  for (const path of [
    'interface.vlan.eth1.30.dhcp6',
    'dhcp.eth1.30.nameservers',
    'dhcp6.eth1.60.nameservers',
    'dns.eth1.30.nameservers',
    'nat.eth1.30_eth0.out',
    'nat.NAT_eth1.60.in',
    'dns.Guest.nameservers',
  ])
    t.regex(refusal([{ path, value: 'x' }]), never, path);
  t.regex(refusal([{ path: ['dhcp', 'eth1.30', 'lease'], value: 1 }]), never);
  t.regex(refusal([{ path: 'dhcp.eth1.40.lease', value: 1, label: ' GUEST ' }]), never);
  t.regex(refusal([{ path: 'nat.own.in', value: 'eth1.60' }]), never);
  t.regex(refusal([{ path: 'nat.own', value: { in: 'eth1.30' } }]), never);
  t.is(refusal([{ path: 'dhcp.eth1.300.lease', value: 1 }]), '', 'another interface');
});

test('[R24] a kept field is refused at load when it controls writes, holds a secret, or names no field', (t) => {
  for (const path of ['ncid', 'reqId', 'ts', 'ignoreNcid.x', 'transID'])
    t.regex(refusal([{ path, value: 1 }]), /every write/, path);
  for (const [path, value] of [
    ['interface.wireguard.wg0.privateKey', 'hunter2'],
    ['interface.wlan.wlan0.psk', 'hunter2'],
    ['interface.wlan.wlan0.wpaSupplicant', { ssid: 'x' }],
    ['apc.assets', { one: { password: 'hunter2' } }],
  ] as const) {
    const text = refusal([{ path, value }]);
    t.regex(text, /secret/, path);
    t.notRegex(text, /hunter2/);
  }
  for (const path of ['dhcp6', 'interface', 'interface.vlan', 'interface.vlan.eth1.10'])
    t.regex(refusal([{ path, value: {} }]), /it must name a field/, path);
  const path = 'dhcp.eth1.10.nameservers';
  t.regex(refusal([{ path, value: ['a'] }]), /exactly these entries/);
  t.regex(refusal([{ path, value: 'a', match: 'contains' }]), /only a list/);
  t.regex(refusal([{ path, value: [], match: 'contains' }]), /no entries/);
  t.regex(refusal([{ path, value: 'a'.repeat(1_025) }]), /1024 characters/);
  t.regex(refusal([{ path, value: undefined }]), /JSON/);
  t.regex(refusal([{ path: 'dhcp.\u0007x', value: 1 }]), /printable/);
  const twice = { path: 'dhcp.eth1.10.range', value: {} };
  t.regex(refusal([twice, twice]), /listed twice/);
  t.regex(refusal([twice, { path: 'dhcp.eth1.10.range.from', value: 'x' }]), /lies in another/);
  t.regex(refusal([{ path: 'interface.vlan.eth1.10.ipv6', value: [], match: 'equals' }]), /held as a leg/);
});

const config = (more: object = {}) => ({
  ncid: 'n1',
  interface: { vlan: { 'eth1.10': { meta: { name: 'Main' } }, 'eth1.90': { meta: { name: ' gUeSt' } } } },
  dhcp6: { 'eth1.10': { lease: 1 }, 'eth1.90': {} },
  ...more,
});

test('[R24] the config that is read refuses a field too: the network’s name, its interface, a secret, another kind of value', (t) => {
  const reasonOf = (field: KeptField, more?: object) => {
    const reading = readField(config(more), field, NEVER);
    t.is(withField(config(more), field, NEVER).ncid, 'n1');
    t.deepEqual(withField(config(more), field, NEVER), config(more), 'nothing is put in');
    return reading.state === 'refused' ? reading.reason : reading.state;
  };
  const equals = (path: string[], value: unknown): KeptField => ({ path, value, match: 'equals' });
  t.regex(reasonOf(equals(['interface', 'vlan', 'eth1.90', 'mtu'], 1)), /eth1\.90|gUeSt/);
  t.regex(reasonOf(equals(['dhcp6', 'eth1.90', 'lease'], 1)), /eth1\.90/);
  t.regex(reasonOf(equals(['nat', 'eth1.90_eth0', 'out'], 'x'), { nat: { 'eth1.90_eth0': {} } }), /eth1\.90/);
  t.regex(reasonOf(equals(['nat', 'own', 'out'], 'x'), { nat: { own: { in: 'eth1.90' } } }), /eth1\.90/);
  t.regex(reasonOf(equals(['nat', 'own', 'in'], 'x'), { nat: { own: { in: 'eth1.30' } } }), /eth1\.30/);
  t.regex(reasonOf(equals(['nat', 'own', 'in'], 'eth1.90'), { nat: { own: {} } }), /eth1\.90/);
  t.regex(reasonOf(equals(['x', 'own'], {}), { x: { own: { wifi: { psk: 'hunter2' } } } }), /holds a secret/);
  t.regex(reasonOf(DNS, { dhcp6: { 'eth1.10': { nameservers: 'fd00::1' } } }), /no list/);
});

test('[R24] a field is read in its whole value or in its entries, and its object is never created', (t) => {
  const read = (nameservers: unknown, match: 'equals' | 'contains') =>
    readField(config({ dhcp6: { 'eth1.10': { nameservers } } }), { ...DNS, match }, NEVER).state;
  t.is(read(['fd00::1', 'fd00::53'], 'contains'), 'held');
  t.is(read(['fd00::1', 'fd00::53'], 'equals'), 'differs');
  t.is(read(['fd00::53'], 'equals'), 'held');
  for (const none of [undefined, null, '', []]) t.is(read(none, 'contains'), 'differs');
  for (const dhcp6 of [undefined, {}, { 'eth1.10': 'x' }, { 'eth1.10': ['x'] }]) {
    const lacking = config({ dhcp6 });
    t.is(readField(lacking, DNS, NEVER).state, 'absent');
    t.is(withField(lacking, DNS, NEVER), lacking);
    t.is(readHeld(lacking, { intf: 'x', keep: DNS }, NEVER).addresses, undefined);
  }
  const more = withField(config({ dhcp6: { 'eth1.10': { nameservers: ['fd00::1'] } } }), DNS, NEVER);
  t.deepEqual(more.dhcp6, { 'eth1.10': { nameservers: ['fd00::1', 'fd00::53'] } });
});

test('[R24] what is read of a kept field is whether it is held, and not what else the config has', (t) => {
  const other = config({ dhcp6: { 'eth1.10': { nameservers: ['not of the record'] } } });
  t.deepEqual(readHeld(other, { intf: 'x', keep: DNS }, NEVER), { ncid: 'n1', addresses: [] });
});

const json = fc.jsonValue({ maxDepth: 3 });
const names = fc.constantFrom('a', 'b', 'eth1.10', '__proto__', 'constructor', 'meta', '0');

test('[R24] whatever a config holds, nothing but the kept fields differs in what is posted', (t) => {
  const objects = fc.letrec((tie) => ({
    object: fc.dictionary(names, fc.oneof({ depthSize: 'small' }, json, tie('object')), { maxKeys: 4 }),
  })).object;
  const field = fc.record({
    path: fc.array(names, { minLength: 2, maxLength: 4 }),
    value: fc.oneof(fc.array(json, { minLength: 1, maxLength: 3 }), json),
    contains: fc.boolean(),
  });
  let put = 0;
  fc.assert(
    fc.property(objects, field, (rest, { path, value, contains }) => {
      const before = JSON.stringify({ ncid: 'n', section: rest });
      const read: any = JSON.parse(before);
      const keep: KeptField = {
        path: ['section', ...path],
        value,
        match: contains && Array.isArray(value) ? 'contains' : 'equals',
      };
      const { body, added }: any = withHeld(read, [{ intf: 'k', address: 'v', keep }], NEVER);
      t.is(JSON.stringify(read), before, 'what was read is not changed');
      if (added.length === 0) {
        t.is(body, read);
        return;
      }
      put += 1;
      t.is(readField(body, keep, NEVER).state, 'held');
      const undone = JSON.parse(JSON.stringify(body));
      const parentIn = (root: any) => keep.path.slice(0, -1).reduce((at, key) => at[key], root);
      const key = keep.path.at(-1)!;
      const had = parentIn(read);
      const has = parentIn(undone);
      if (Object.hasOwn(had, key)) Object.defineProperty(has, key, { value: had[key], enumerable: true });
      else delete has[key];
      t.is(JSON.stringify(undone), before, 'keys stay in their order');
    }),
    { numRuns: runs(300), seed: 20_260_118 },
  );
  t.true(put > runs(5), `${put} were put in`);
});

test('[R33] a kept field is looked at in the config alone, now: whole, or missing', async (t) => {
  const api: any = { interfaceState: () => t.fail('it has no link') };
  const leg = { intf: 'dhcp6.eth1.10.nameservers', address: '["fd00::53"]', keep: DNS };
  const held = config({ dhcp6: { 'eth1.10': { nameservers: ['fd00::53'] } } });
  t.deepEqual(await lookAtLeg(api, held, leg, NEVER), { state: 'whole' });
  t.deepEqual(await lookAtLeg(api, config(), leg, NEVER), { state: 'missing' });
});
