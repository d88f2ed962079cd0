import test from 'ava';
import fc from 'fast-check';
import { normaliseCidr, readLeg, withAddresses, withEntry } from '../../../src/plugins/reconciler/legs.ts';
import { runs } from '../../support/runs.ts';

const address = 'fd5e:21aa:0:10::1/64';
const leg = { intf: 'eth1.10', address };
const config = (ipv6?: unknown, more: object = {}) => ({
  ncid: 'n1',
  interface: {
    phy: { eth1: {} },
    vlan: { 'eth1.10': { vid: 10, ...(ipv6 !== undefined && { ipv6 }) } },
    ...more,
  },
});

test('[R24] one address, however it is spelt, has one form', (t) => {
  for (const spelling of [
    'FD5E:21AA::0010:0:0:0:1/64',
    'fd5e:21aa:0:10:0:0:0:1/64',
    ' fd5e:21aa:0000:0010::0001/064 ',
    'fd5e:21aa:0:10::0.0.0.1/64',
  ]) {
    t.is(normaliseCidr(spelling), address, spelling);
  }
  t.is(normaliseCidr('FD00::1'), 'fd00::1/128');
  t.not(normaliseCidr('fd5e:21aa:0:10::1/48'), address);
});

test('[R24] what is no address is compared as it is, and never throws', (t) => {
  for (const text of ['', '/', 'fd00::1/', 'fd00::1/64/64', 'x/64', '10.0.0.1/24', 'fd00::1/-1']) {
    t.is(normaliseCidr(text), text);
  }
  fc.assert(fc.property(fc.string(), (text) => typeof normaliseCidr(text) === 'string'));
});

test('[R24] a leg is read whatever form its ipv6 has, in whatever kind of interface', (t) => {
  t.deepEqual(readLeg(config(), 'eth1.10'), { ncid: 'n1', addresses: [] });
  t.deepEqual(readLeg(config('FD00::1/64'), 'eth1.10').addresses, ['fd00::1/64']);
  t.deepEqual(readLeg(config(['fd00::1/64', address]), 'eth1.10').addresses, ['fd00::1/64', address]);
  for (const odd of [null, 7, {}, [null, 7], '']) t.deepEqual(readLeg(config(odd), 'eth1.10').addresses, []);
  t.deepEqual(readLeg(config(undefined, { bridge: { br0: { ipv6: address } } }), 'br0').addresses, [address]);
  for (const intf of ['eth1.99', 'toString', '__proto__', 'constructor']) {
    t.is(readLeg(config(), intf).addresses, undefined, intf);
  }
  for (const odd of [
    {},
    { ncid: 7 },
    { ncid: 'n', interface: [] },
    { interface: { vlan: { 'eth1.10': 'x' } } },
  ]) {
    t.is(readLeg(odd, 'eth1.10').addresses, undefined);
  }
});

test('[R24] the address comes behind those that are there; a string becomes a list', (t) => {
  const bodyOf = (ipv6?: unknown): any => withAddresses(config(ipv6), [leg]).body;
  const ipv6Of = (ipv6?: unknown) => bodyOf(ipv6).interface.vlan['eth1.10'].ipv6;
  t.deepEqual(ipv6Of(), [address]);
  t.deepEqual(ipv6Of([]), [address]);
  t.deepEqual(ipv6Of(''), [address]);
  t.deepEqual(ipv6Of('FD00::1/64'), ['FD00::1/64', address]);
  t.deepEqual(ipv6Of(['fd00::2/64', 'FD00::1/64']), ['fd00::2/64', 'FD00::1/64', address]);
});

test('[R24] a leg that has its address, or no interface, is not added', (t) => {
  const whole = config('FD5E:21AA:0:10:0::1/64');
  const refused = new Map();
  t.deepEqual(withAddresses(whole, [leg]), { body: whole, added: [], refused });
  const unknown = withAddresses(config(), [{ intf: 'eth1.99', address }]);
  t.deepEqual(unknown, { body: config(), added: [], refused });
});

test('[R26] the entry of one interface is changed, and a config without that interface is the same', (t) => {
  const read = config([address]);
  t.is(
    withEntry(read, 'eth1.99', () => ({})),
    read,
  );
  const changed = withEntry(read, 'eth1.10', (entry) => ({ ...entry, vid: 11 }));
  t.deepEqual(changed, {
    ncid: 'n1',
    interface: { phy: { eth1: {} }, vlan: { 'eth1.10': { vid: 11, ipv6: [address] } } },
  });
});

/** Ways to write a name that mean the same to a person. */
const spelt = (base: string) =>
  fc
    .record({
      upper: fc.array(fc.boolean(), { minLength: base.length, maxLength: base.length }),
      wide: fc.boolean(),
      before: fc.constantFrom('', ' ', '\t', '\u00a0', '\u200b', '\ufeff', '\u3000'),
      after: fc.constantFrom('', ' ', '\n', '\u200d', '\u2003'),
    })
    .map(({ upper, wide, before, after }) => {
      const cased = [...base].map((letter, index) => (upper[index] ? letter.toUpperCase() : letter));
      // Fullwidth forms lie 0xFEE0 above the printable ASCII characters.
      const widened = cased.map((letter) =>
        String.fromCodePoint((letter.codePointAt(0) ?? 0) + (wide ? 0xfee0 : 0)),
      );
      return before + widened.join('') + after;
    });
const forbidden = fc.oneof(spelt('guest'), spelt('telework'));

test('[R24] a network named Guest or Telework is never written, whatever its interface, label and spelling', (t) => {
  const kinds = fc.constantFrom('vlan', 'phy', 'bridge', 'wlan');
  const names = fc.constantFrom('eth1.10', 'eth1.70', 'br0', 'eth1.30');
  const ipv6 = fc.constantFrom(undefined, '', [], ['fd00::9/64'], 'fd00::9/64');
  fc.assert(
    fc.property(forbidden, kinds, names, ipv6, (name, kind, intf, present) => {
      const entry = { ...(present !== undefined && { ipv6: present }), meta: { name } };
      const other = { meta: { name: 'Guests of honour' } };
      const read = { ncid: 'n1', interface: { [kind]: { [intf]: entry, other } } };
      const legs = [
        { intf, address },
        { intf: 'other', address: 'fd00::2/64' },
      ];
      const { body, added, refused }: any = withAddresses(read, legs);
      t.deepEqual(body.interface[kind][intf], entry);
      t.deepEqual(added, [legs[1]]);
      t.deepEqual([...refused.keys()], [intf]);
      t.is(readLeg(read, intf).refusedName, name.trim());
      t.is(readLeg(read, 'other').refusedName, undefined);
    }),
    { numRuns: runs(200), seed: 20_260_104 },
  );
  for (const odd of [undefined, null, 7, {}, ['Guest'], { name: 7 }, 'Guest'])
    t.is(readLeg({ interface: { vlan: { a: { meta: odd } } } }, 'a').refusedName, undefined);
});

const json = fc.jsonValue({ maxDepth: 3 });
const interfaces = fc.dictionary(fc.constantFrom('vlan', 'phy', 'bridge'), fc.dictionary(fc.string(), json));
const name = fc.constantFrom('eth1.10', 'eth1.20', 'eth1.40');

test('[R24] whatever a config holds, nothing but the legs’ ipv6 differs in what is posted', (t) => {
  const configs = fc.record({
    config: fc.dictionary(fc.string(), json),
    interfaces,
    vlan: fc.dictionary(name, fc.dictionary(fc.constantFrom('ipv6', 'vid', 'meta'), json)),
    legs: fc.uniqueArray(name, { maxLength: 3 }),
  });
  fc.assert(
    fc.property(configs, ({ config: rest, interfaces, vlan, legs }) => {
      const read: any = JSON.parse(
        JSON.stringify({ ...rest, ncid: 'n', interface: { ...interfaces, vlan } }),
      );
      const before = JSON.stringify(read);
      const { body, added }: any = withAddresses(
        read,
        legs.map((intf) => ({ intf, address })),
      );
      t.is(JSON.stringify(read), before, 'what was read is not changed');
      const undone = JSON.parse(JSON.stringify(body));
      for (const { intf } of added) {
        t.is(undone.interface.vlan[intf].ipv6.at(-1), address);
        const had = read.interface.vlan[intf];
        if ('ipv6' in had) undone.interface.vlan[intf].ipv6 = had.ipv6;
        else delete undone.interface.vlan[intf].ipv6;
      }
      t.deepEqual(undone, JSON.parse(before));
    }),
    { numRuns: runs(150), seed: 20_260_103 },
  );
});
