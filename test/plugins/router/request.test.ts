import test from 'ava';
import fc from 'fast-check';
import { HoldfastError } from '../../../src/core/kernel/errors/holdfast-error.ts';
import { parseRequest } from '../../../src/plugins/router/embedded/config-writes.ts';
import { runs } from '../../support/runs.ts';
import { type Config, exampleConfig } from './rig.ts';

test('[R4] control fields are told from the config', (t) => {
  const config = exampleConfig();
  const request = parseRequest({
    ...config,
    transactionOp: 'append',
    transID: 't1',
    ignoreNcid: true,
    reqId: 'r',
  });
  t.deepEqual(request, { op: 'append', transID: 't1', ncid: config.ncid, ignoreNcid: true, config });
});

test('[R6] commit and revert need nothing but their transID, and bear no config', (t) => {
  for (const op of ['commit', 'revert'])
    t.deepEqual(parseRequest({ transactionOp: op, transID: 't', interface: 'nonsense' }), {
      op,
      transID: 't',
    });
});

test('[R36] fields that nobody here knows pass as they are', (t) => {
  const config = { ...exampleConfig(), igmp_proxy: [1, 2], future: { a: null } };
  config.interface.vlan['eth1.10'].future = { b: [null] };
  t.deepEqual(parseRequest(config).config, config);
});

const bad: [path: string, change: (config: Config) => void][] = [
  ['interface.vlan.eth1.10.ipv6.0', (c) => (c.interface.vlan['eth1.10'].ipv6 = ['fd00::1'])],
  ['interface.vlan.eth1.10.ipv6', (c) => (c.interface.vlan['eth1.10'].ipv6 = 'fd00::1/129')],
  ['interface.vlan.eth1.10.ipv6', (c) => (c.interface.vlan['eth1.10'].ipv6 = null)],
  ['interface.vlan.eth1.10.ipv6.1', (c) => (c.interface.vlan['eth1.10'].ipv6 = ['fd00::1/64', 4])],
  ['interface.vlan.eth1.10.ipv4', (c) => (c.interface.vlan['eth1.10'].ipv4 = '10.1/24')],
  ['interface.vlan.eth1.10.ipv4', (c) => (c.interface.vlan['eth1.10'].ipv4 = '10.1.1.256/24')],
  ['interface.vlan.eth1.10.vid', (c) => (c.interface.vlan['eth1.10'].vid = 5000)],
  ['interface.vlan.eth1.10.enabled', (c) => (c.interface.vlan['eth1.10'].enabled = 'yes')],
  ['interface.vlan.eth1.10.ipv6DelegateFrom', (c) => (c.interface.vlan['eth1.10'].ipv6DelegateFrom = 4)],
  [
    'interface.vlan.eth1.10.ipv6PassthroughFrom',
    (c) => (c.interface.vlan['eth1.10'].ipv6PassthroughFrom = 'eth0'),
  ],
  ['interface.vlan.eth1.10', (c) => (c.interface.vlan['eth1.10'] = 'on')],
  ['interface.vlan.a/b', (c) => (c.interface.vlan['a/b'] = {})],
  ['interface.vlan.eth1.80.vid', (c) => (c.interface.vlan['eth1.80'] = { intf: 'eth1' })],
  ['interface.vlan.eth1.80.intf', (c) => (c.interface.vlan['eth1.80'] = { vid: 80 })],
  ['interface.vlan.eth1.10.intf', (c) => (c.interface.vlan['eth1.10'].intf = ['eth1', 'eth2'])],
  ['interface.bridge.eth1', (c) => (c.interface.bridge.eth1 = {})],
  ['interface.bridge.eth1.10', (c) => (c.interface.bridge['eth1.10'] = { intf: ['eth2'] })],
  ['interface.wireguard.longer-than-a-name', (c) => (c.interface.wireguard['longer-than-a-name'] = {})],
  ['interface.phy.lo', (c) => (c.interface.phy.lo = {})],
  ['interface.phy.-x', (c) => (c.interface.phy['-x'] = {})],
  ['dns.a?b', (c) => (c.dns['a\nb'] = {})],
  ['interface.vlan', (c) => (c.interface.vlan = [])],
  ['interface', (c) => (c.interface = null)],
  ['dns.eth1.10.nameservers.0', (c) => (c.dns['eth1.10'].nameservers = ['resolver'])],
  ['dhcp.eth1.10.range.from', (c) => (c.dhcp['eth1.10'].range.from = '10.77.10')],
  ['dhcp6.eth1.10.nameservers.0', (c) => (c.dhcp6['eth1.10'].nameservers = ['10.1.1.1'])],
  ['routing.global', (c) => (c.routing.global = 'eth0')],
  ['routing.global.default', (c) => (c.routing.global.default = 'eth0')],
  ['interface.vlan.eth1.10.meta.uuid', (c) => (c.interface.vlan['eth1.10'].meta.uuid = 7)],
  ['interface.wireguard.wg0.listenPort', (c) => (c.interface.wireguard.wg0.listenPort = 0)],
];
for (const [path, change] of bad) {
  test(`[R36] a bad field is refused by its path: ${path} (${change.toString().split('= ').at(-1)})`, (t) => {
    const config = exampleConfig();
    change(config);
    const error = t.throws(() => parseRequest(config), { instanceOf: HoldfastError });
    t.is(error?.code, 'HF_ROUTER_CONFIG_INVALID');
    t.is(error?.details.path, path);
  });
}

test('[R36] a config nested without end is refused, not a crash', (t) => {
  let nested: unknown = {};
  for (let i = 0; i < 100_000; i += 1) nested = { nested };
  const error = t.throws(() => parseRequest({ ...exampleConfig(), nested }), { instanceOf: HoldfastError });
  t.is(error?.code, 'HF_ROUTER_CONFIG_INVALID');
});

test('[R32] a refusal repeats no value of the config', (t) => {
  const config = exampleConfig();
  config.interface.vlan['eth1.10'].ipv6 = ['CANARY'];
  config.interface.wireguard.wg0.enabled = 'CANARY';
  config.dns['eth1.10'].nameservers = 'CANARY';
  const error = t.throws(() => parseRequest(config), { instanceOf: HoldfastError });
  t.false(JSON.stringify({ ...error, message: error?.message }).includes('CANARY'));
  t.regex(error?.what ?? '', /and 2 more/);
});

test('[R36] whatever is posted, the answer is a request or a coded refusal', (t) => {
  fc.assert(
    fc.property(
      fc.record(
        {
          ncid: fc.jsonValue(),
          transactionOp: fc.oneof(fc.constantFrom('append', 'commit', 'revert'), fc.jsonValue()),
          transID: fc.jsonValue(),
          ignoreNcid: fc.jsonValue(),
          reqId: fc.jsonValue(),
          interface: fc.oneof(
            fc.jsonValue(),
            fc.dictionary(fc.string(), fc.dictionary(fc.string(), fc.jsonValue())),
          ),
          dns: fc.jsonValue(),
        },
        { requiredKeys: [] },
      ),
      (body) => {
        try {
          const { config, op } = parseRequest(body);
          return (config === undefined) === (op === 'commit' || op === 'revert');
        } catch (error) {
          return error instanceof HoldfastError && error.status === 400;
        }
      },
    ),
    { numRuns: runs(2000), seed: 8837 },
  );
  t.pass();
});
