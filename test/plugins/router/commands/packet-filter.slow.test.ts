/** `router explain` beside a router that is no instance of ours: it reads the packet filter, or says that it assumes. */
import { execFileSync } from 'node:child_process';
import { networkInterfaces } from 'node:os';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { isThisMachine } from '../../../../src/plugins/router/commands/packet-filter.ts';
import type { Finished } from '../../../support/cli.ts';
import { namespace } from '../../../support/netns.ts';
import { testInNamespace } from '../../../support/test-in-namespace.ts';

const CHILD = fileURLToPath(new URL('packet-filter-child.ts', import.meta.url));
const FLOW = ['--from', 'fd5e:21aa:90c4:20::9', '--to', 'fd5e:21aa:90c4:10::5'];
const MAIN = { set: 'c_net_df62a84c-ed88_set6', prefix: 'fd5e:21aa:90c4:10::/64' };
const IOT = { set: 'c_net_76091add-8a19_set6', prefix: 'fd5e:21aa:90c4:20::/64' };

/** A package of Node is called `nft`, too, and npm puts it first. */
const PATH = '/usr/sbin:/sbin:/usr/bin:/bin';

function machine(t: ExecutionContext) {
  const { name } = namespace(t);
  const run = (program: string, ...args: string[]) =>
    execFileSync('ip', ['netns', 'exec', name, program, ...args], {
      encoding: 'utf8',
      env: { ...process.env, PATH },
    });
  const explain = (...more: string[]): Finished => JSON.parse(run(process.execPath, CHILD, ...FLOW, ...more));
  return { run, explain, explained: () => JSON.parse(explain('--json').out) };
}

testInNamespace('[R22] the sets that ipset lists decide, not those that the config implies', (t) => {
  const { run, explain, explained } = machine(t);
  for (const { set } of [MAIN, IOT]) run('ipset', 'create', set, 'hash:net', 'family', 'inet6');
  run('ipset', 'create', 'other', 'hash:net', 'family', 'inet6');
  run('ipset', 'add', 'other', IOT.prefix);
  run('ipset', 'add', MAIN.set, MAIN.prefix);
  const half = explained();
  t.is(half.verdict, 'bypassed');
  t.deepEqual(half.sets, { state: 'filled', source: 'ipset on this machine' });
  t.deepEqual(
    half.missing.map(({ side, sets }: any) => [side, sets[0].name]),
    [['from', IOT.set]],
  );
  const { out } = explain();
  t.regex(
    out,
    /missing: fd5e:21aa:90c4:20::\/64 is not in the set c_net_76091add-8a19_set6 \(IoT, eth1\.20\)/,
  );
  t.notRegex(out, /assumed/);
  run('ipset', 'add', IOT.set, 'fd5e:21aa:90c4:20::9');
  t.is(explained().verdict, 'policy');
});

testInNamespace('[R22] where the sets are those of nftables, they are read there', (t) => {
  const { run, explained } = machine(t);
  run('nft', 'add table ip6 filter');
  for (const { set } of [MAIN, IOT])
    run('nft', `add set ip6 filter ${set} { type ipv6_addr; flags interval; }`);
  run('nft', `add element ip6 filter ${IOT.set} { ${IOT.prefix} }`);
  const half = explained();
  t.is(half.verdict, 'bypassed');
  t.deepEqual(half.sets, { state: 'filled', source: 'nft on this machine' });
  t.deepEqual(
    half.missing.map(({ side, sets }: any) => [side, sets[0].name]),
    [['to', MAIN.set]],
  );
  run('nft', `add element ip6 filter ${MAIN.set} { fd5e:21aa:90c4:10::5, fd5e:21aa:90c4:10::7 }`);
  t.is(explained().verdict, 'policy');
});

testInNamespace('[R22] a machine without such sets leaves them assumed, in text and in JSON', (t) => {
  const { explain, explained } = machine(t);
  const { verdict, sets } = explained();
  t.is(verdict, 'policy');
  t.is(sets.state, 'assumed');
  t.regex(sets.reason, /ipset.*; nft/);
  t.regex(
    explain().out,
    /\nassumed: the address sets are as they follow from the addresses within a minute; ipset/,
  );
});

test('[R22] only a loopback address, or one of its own interfaces, is this machine', async (t) => {
  for (const host of ['127.0.0.1', '127.9.9.9', '::1', 'localhost']) t.true(await isThisMachine(host), host);
  for (const host of ['192.0.2.77', '2001:db8::77', 'router.invalid'])
    t.false(await isThisMachine(host), host);
  for (const { address } of Object.values(networkInterfaces()).flatMap((all = []) => all))
    t.true(await isThisMachine(address), address);
});
