import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import test from 'ava';
import { z } from 'zod';
import { type RouterApi, RouterApiToken } from '../../../../../src/core/contracts/router.ts';
import { definePlugin } from '../../../../../src/core/host/plugin/definition.ts';
import { parseMonitorLine } from '../../../../../src/plugins/router/embedded/kernel/monitor-lines.ts';
import { delegationsOf } from '../../../../../src/plugins/router/embedded/kernel-events.ts';
import { testInNamespace } from '../../../../support/test-in-namespace.ts';
import { children, eventually, FIRST, LEG, realRig } from '../real-rig.ts';

/** Without the check of the data folder, which is a process of its own for a while. */
const programs = () => children().filter((line) => !line.includes('/integrity/checker.'));
const monitors = () => children().filter((line) => line.includes(' monitor label '));

testInNamespace(
  '[R17][R18] a prefix that the kernel shows as delegated reapplies the legs and publishes it, under the same ncid',
  async (t) => {
    const { space, rig, until } = await realRig(t, { options: { dnsmasq: false } });
    const { ncid } = await rig.active();
    for (const [prefix, address] of [
      ['2001:db8:7::/56', '2001:db8:7::1/64'],
      ['2001:db8:8::/56', '2001:db8:8::1/64'],
    ]) {
      space.ip(`-6 route add unreachable ${prefix} dev lo proto dhcp metric 1024`);
      t.deepEqual(await until(/^change_applied/), [`iface_change_applied ${LEG}`, 'change_applied']);
      const held = (await rig.state(LEG)).ip6.filter((one: string) => one.startsWith('2001:db8:'));
      t.deepEqual(held, [address]);
    }
    // The client removes the old route when the old lease ends: the newer prefix stands.
    space.ip('-6 route del unreachable 2001:db8:7::/56 dev lo');
    t.is((await rig.active()).ncid, ncid);
    const seen = (await rig.records()).filter(({ event }: any) => event.kind === 'pd-change');
    t.deepEqual(
      seen.map(({ event }: any) => event.prefix),
      ['2001:db8:7::/56', '2001:db8:8::/56'],
    );
    t.is(rig.divergence(), undefined);
  },
);

testInNamespace(
  '[R18] a WAN that loses its carrier, or its default route, publishes its two channels, and again when it is back',
  async (t) => {
    const { space, rig, until } = await realRig(t, { options: { dnsmasq: false } });
    const channels = (up: boolean) => [`wan_conn_changed eth0 ${up}`, `wan_state_changed eth0 ${up}`];
    space.ip('link set eth0p down');
    t.deepEqual((await until(/^wan_conn/)).sort(), channels(false));
    space.ip('link set eth0p up');
    t.deepEqual((await until(/^wan_conn/)).sort(), channels(true));
    space.ip('route del default');
    t.deepEqual((await until(/^wan_conn/)).sort(), channels(false));
    space.ip('route add default via 192.0.2.1 dev eth0');
    t.deepEqual((await until(/^wan_conn/)).sort(), channels(true));
    t.true((await rig.state('eth0')).up, 'what the kernel does by itself is not repeated in it');
    t.is(rig.divergence(), undefined);
  },
);

testInNamespace(
  '[R18] an address that a DHCP client changed on a delegating leg is published, and stands',
  async (t) => {
    const { space, rig, until } = await realRig(t, { options: { dnsmasq: false } });
    space.ip(`-6 address add 2001:db8:99::1/64 dev ${LEG}`);
    t.deepEqual(await until(/^change_applied/), [`iface_change_applied ${LEG}`, 'change_applied']);
    t.true((await rig.state(LEG)).ip6.includes('2001:db8:99::1/64'));
    space.ip('-6 address add 2001:db8:99:ff::2/64 dev eth0');
    t.true((await until(/^wan_conn/)).includes('wan_state_changed eth0 true'));
  },
);

testInNamespace(
  '[R29] the watcher is one process, started again after it ended, that ends with the router',
  async (t) => {
    const options = { dnsmasq: false, packetFilter: 'none' } as const;
    const { space, rig, until } = await realRig(t, { options });
    t.is(monitors().length, 1);
    const [first = ''] = monitors();
    process.kill(Number.parseInt(first, 10), 'SIGKILL');
    await eventually(() => monitors().some((line) => line !== first));
    // What happens while nobody listens is found by the reading after the start.
    space.ip('link set eth0p down');
    await until(/^wan_conn_changed eth0 false/);
    space.ip('link set eth0p up');
    await until(/^wan_conn_changed eth0 true/);
    // Lifetimes that are renewed, and neighbours, are no change: no process is started for them.
    const [second] = monitors();
    space.ip('-6 address add 2001:db8:99:ff::2/64 dev eth0 valid_lft 900 preferred_lft 900');
    await until(/^wan_conn/);
    await eventually(() => programs().length === 1);
    for (let i = 0; i < 20; i++)
      space.ip(`-6 address change 2001:db8:99:ff::2/64 dev eth0 valid_lft ${800 + i} preferred_lft 700`);
    await new Promise((resolve) => setTimeout(resolve, 500));
    t.deepEqual(programs(), [second]);
    await rig.runtime.stop('test');
    t.deepEqual(monitors(), []);
  },
);

testInNamespace(
  '[R29][R26] what a link has is known without a process, and what it lost is known, too',
  async (t) => {
    let api: RouterApi | undefined;
    const user = definePlugin({
      name: 'user',
      options: z.strictObject({}),
      requires: [RouterApiToken],
      start(services) {
        api = services.get(RouterApiToken);
      },
      register() {},
    });
    const { space } = await realRig(t, {
      options: { dnsmasq: false, packetFilter: 'none' },
      plugins: [user()],
    });
    const has = async (address: string) => (await api?.interfaceState(LEG))?.state.ip6?.includes(address);
    const [first = ''] = monitors();
    await eventually(() => programs().length === 1);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    let started = 0;
    const count = () => {
      started += 1;
    };
    subscribe('child_process', count);
    t.teardown(() => unsubscribe('child_process', count));
    for (let i = 0; i < 20; i++) t.true(await has(FIRST));
    t.is(started, 0, 'no process was started');
    t.like((await api?.interfaceState(LEG))?.state, { present: true, carrier: '1' });
    // Somebody takes it away: from the announcement on nothing older is said.
    space.ip(`-6 address del ${FIRST} dev ${LEG}`);
    await eventually(async () => (await has(FIRST)) === false);
    space.ip(`-6 address add ${FIRST} dev ${LEG}`);
    await eventually(async () => (await has(FIRST)) === true);
    // While nobody listens the kernel itself is asked.
    process.kill(Number.parseInt(first, 10), 'SIGKILL');
    await eventually(() => !monitors().includes(first));
    space.ip(`-6 address del ${FIRST} dev ${LEG}`);
    t.false(await has(FIRST));
  },
);

test('[R18] lines of `ip monitor` are read as they are printed, and all others are left alone', (t) => {
  const link =
    '[LINK]3: eth0@eth0p: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP group default \\    link/ether 36:20:45:0a:9e:8e brd ff:ff:ff:ff:ff:ff';
  const read = (line: string) => parseMonitorLine(line) as unknown;
  t.deepEqual(read(link), { kind: 'link', intf: 'eth0', running: true });
  t.deepEqual(read(link.replace('LOWER_UP', 'M-DOWN')), { kind: 'link', intf: 'eth0', running: false });
  t.deepEqual(read(link.replace(']3', ']Deleted 3')), { kind: 'link', intf: 'eth0', running: false });
  const address =
    '[ADDR]Deleted 3: eth0    inet6 2001:db8:9::2/64 scope global tentative \\       valid_lft forever preferred_lft forever';
  t.deepEqual(read(address), { kind: 'address', intf: 'eth0', address: '2001:db8:9::2/64', removed: true });
  t.is(read(address.replace('global', 'link')), undefined);
  const route = '[ROUTE]default via fe80::1 dev eth0 metric 1024 pref medium';
  t.deepEqual(read(route), { kind: 'default route', intf: 'eth0', removed: false });
  t.deepEqual(read('[ROUTE]Deleted unreachable 2001:db8:7::/56 dev lo proto dhcp metric 1024 pref medium'), {
    kind: 'delegation',
    prefix: '2001:db8:7::/56',
    removed: true,
  });
  t.deepEqual(read('[PREFIX]prefix fd00:10::/64dev eth1.10 onlink autoconf valid 7200 preferred 3600 '), {
    kind: 'advertisement',
    intf: 'eth1.10',
    prefix: 'fd00:10::/64',
    validS: 7200,
  });
  for (const other of [
    '',
    '[LINK]',
    '[ROUTE]unreachable fd00::/8 dev lo metric 1024 pref medium',
    '[ROUTE]unreachable default dev lo metric 4294967295 error -101 pref medium',
    '[ROUTE]multicast ff00::/8 dev eth0 table local proto kernel metric 256 pref medium',
    '[NEIGH]192.0.2.1 dev eth0 lladdr 00:00:5e:00:53:01 REACHABLE',
  ])
    t.is(read(other), undefined, other);
});

test('[R17] a new prefix belongs to the WAN that has none or lost its own; where two could have it nobody guesses', (t) => {
  const [a, b, c] = ['2001:db8:a::/56', '2001:db8:b::/56', '2001:db8:c::/56'];
  const found = (known: Record<string, string | undefined>, before: string[] | undefined, now: string[]) => {
    const { prefixes, unclear } = delegationsOf(new Map(Object.entries(known)), before, now);
    return [Object.fromEntries(prefixes), unclear];
  };
  t.deepEqual(found({ eth0: undefined }, undefined, [a]), [{ eth0: a }, []]);
  t.deepEqual(found({ eth0: a }, [a], [a, b]), [{ eth0: b }, []]);
  t.deepEqual(found({ eth0: b }, [a, b], [a, b]), [{}, []], 'the older one is no news');
  t.deepEqual(found({ eth0: b }, undefined, [a, b]), [{}, []], 'nor is it after a restart');
  t.deepEqual(found({ eth0: a }, [a], []), [{}, []], 'a client that restarts removes its route for a moment');
  t.deepEqual(found({ eth0: a, eth2: b }, [a, b], [b, c]), [{ eth0: c }, []]);
  t.deepEqual(found({ eth0: undefined, eth2: undefined }, [], [a]), [{}, [a]]);
  t.deepEqual(found({ eth0: a, eth2: undefined }, [a], [a, b]), [{ eth2: b }, []], 'a second WAN');
  t.deepEqual(found({ eth0: a, eth2: undefined }, undefined, [a, b]), [{ eth2: b }, []], 'after a restart');
  t.deepEqual(found({ eth0: a, eth2: b }, [a, b], [a]), [{}, []], 'eth2 lost its prefix, and keeps it');
  t.deepEqual(found({ eth0: a, eth2: b }, [a], [a, c]), [{ eth2: c }, []], 'until another one comes');
  t.deepEqual(found({ eth0: undefined, eth2: undefined }, undefined, [a, b]), [{}, [a, b]], 'nobody knows');
  t.deepEqual(found({ eth0: a, eth2: undefined }, [a], [a, b, c]), [{}, [b, c]], 'two at once');
  t.deepEqual(found({}, [], [a]), [{}, []], 'no WAN delegates');
});
