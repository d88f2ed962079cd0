import test from 'ava';
import fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import { explainFlow, missingText } from '../../../../src/plugins/router/config/firewall.ts';
import { addressSets, networksOf } from '../../../../src/plugins/router/config/networks.ts';
import { exampleConfig } from '../rig.ts';

const MAIN = 'fd5e:21aa:90c4:10::5';
const IOT = 'fd5e:21aa:90c4:20::9';
const networks = networksOf(exampleConfig());
const sets = new Map(addressSets(exampleConfig()).map(({ name, prefixes }) => [name, prefixes]));
const explain = (from: string, to: string, filled = sets) => explainFlow(networks, filled, from, to);
const chains = ({ steps }: ReturnType<typeof explain>) => steps.map(({ chain }) => chain);

test('[R22] in or out by a WAN: FW_ULA_LOCAL_ONLY returns, and per-network policy decides', (t) => {
  const out = explain(MAIN, '2606:4700::1111');
  t.is(out.verdict, 'returned');
  t.deepEqual(chains(out), ['FW_FORWARD', 'FW_ULA_LOCAL_ONLY', 'FW_FORWARD']);
  t.regex(out.steps[1]?.why ?? '', /out by the WAN.*returns/);
  const into = explain('fd00:dead::1%eth0', MAIN);
  t.is(into.verdict, 'returned');
  t.regex(into.steps[1]?.why ?? '', /in by the WAN eth0: returns/);
  t.deepEqual([...out.missing, ...into.missing], []);
});

test('[R22] a ULA with both /64s in their sets follows per-network policy', (t) => {
  const answer = explain(IOT, MAIN);
  t.is(answer.verdict, 'policy');
  t.deepEqual(chains(answer), ['FW_FORWARD', 'FW_ULA_LOCAL_ONLY', 'FW_ACCEPT_DEFAULT']);
  t.regex(
    answer.steps[2]?.why ?? '',
    /both prefixes are in their address sets.*policy of IoT \(eth1\.20\) to Main \(eth1\.10\)/,
  );
  t.deepEqual(answer.missing, []);
});

test('[R22] a /64 that is not held is accepted with policy bypassed, and the missing set is named', (t) => {
  const guest = explain('fd5e:21aa:90c4:30::7%eth1.30', MAIN);
  t.is(guest.verdict, 'bypassed');
  t.deepEqual(chains(guest), ['FW_FORWARD', 'FW_ULA_LOCAL_ONLY', 'FW_ACCEPT_DEFAULT']);
  t.is(guest.accepts, 'FW_ACCEPT_DEFAULT, with per-network policy bypassed');
  t.deepEqual(guest.missing, [
    {
      side: 'from',
      prefix: 'fd5e:21aa:90c4:30::/64',
      sets: [{ name: 'c_net_c60ed79e-e1c4_set6', intf: 'eth1.30', label: 'Guest' }],
    },
  ]);
  // Behind which leg is not known: those whose sets hold no ULA.
  const anywhere = explain('fd5e:21aa:90c4:30::7', MAIN);
  t.is(anywhere.verdict, 'bypassed');
  t.true(anywhere.missing[0]?.sets.some(({ name }) => name === 'c_net_c60ed79e-e1c4_set6'));
  t.false(anywhere.missing[0]?.sets.some(({ intf }) => intf === 'eth1.10'));
  t.regex(
    missingText(anywhere.missing[0]!),
    /^no leg holds fd5e:21aa:90c4:30::\/64.*c_net_c60ed79e-e1c4_set6 \(Guest, eth1\.30\)/,
  );
});

test('[R22] until its set is filled, an address that was just added bypasses policy, and that set is named', (t) => {
  const answer = explain(IOT, MAIN, new Map([...sets, ['c_net_df62a84c-ed88_set6', []]]));
  t.is(answer.verdict, 'bypassed');
  t.deepEqual(answer.missing, [
    {
      side: 'to',
      prefix: 'fd5e:21aa:90c4:10::/64',
      sets: [{ name: 'c_net_df62a84c-ed88_set6', intf: 'eth1.10', label: 'Main' }],
    },
  ]);
  t.regex(answer.steps[2]?.why ?? '', /rest of FW_FORWARD is never reached.*c_net_df62a84c-ed88_set6/);
});

test('[R22] what is no ULA is not sent to the ULA chain, and what stays on one network meets none', (t) => {
  t.deepEqual(chains(explain('10.77.20.9', '10.77.10.5')), ['FW_FORWARD']);
  t.is(explain('10.77.20.9', '10.77.10.5').verdict, 'policy');
  t.deepEqual(chains(explain('2606:4700::1111', MAIN)), ['FW_FORWARD']);
  t.is(explain(MAIN, 'fd5e:21aa:90c4:10::6').verdict, 'not forwarded');
});

test('[R22] what is no address, or of two families, or behind no interface, is wrong usage', (t) => {
  for (const [from, to] of [
    ['eth1.10', MAIN],
    [MAIN, '10.77.10.5'],
    ['fd00::1%eth9', MAIN],
    ['', MAIN],
    ['10.1', '10.77.10.5'],
  ] as const)
    t.throws(() => explain(from, to), { code: 'HF_CLI_USAGE' }, `${from} ${to}`);
});

test('[R22] policy is bypassed exactly when a ULA between LANs has a prefix that its set lacks', (t) => {
  const subnet = fc.constantFrom(10, 20, 30, 40, 50, 60, 70);
  const host = fc.integer({ min: 1, max: 0xffff });
  const filled = fc.subarray([...sets.keys()]);
  const holds = () =>
    fc.assert(
      fc.property(subnet, subnet, host, filled, (one, two, id, names) => {
        fc.pre(one !== two);
        const some = new Map(
          [...sets].map(([name, prefixes]) => [name, names.includes(name) ? prefixes : []]),
        );
        const [from, to] = [one, two].map((net) => `fd5e:21aa:90c4:${net}::${id.toString(16)}`) as [
          string,
          string,
        ];
        const isIn = (text: string) =>
          [...some.values()].flat().some((prefix) => ipaddr.parse(text).match(ipaddr.parseCIDR(prefix)));
        const answer = explainFlow(networks, some, from, to);
        return (
          (answer.verdict === 'bypassed') === !(isIn(from) && isIn(to)) &&
          (answer.verdict === 'bypassed') === answer.missing.length > 0
        );
      }),
    );
  t.notThrows(holds);
});
