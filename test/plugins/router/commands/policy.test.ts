import test from 'ava';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { setUpDesk, until } from './setup.ts';

test.serial('[R22,R21] router explain asks the running instance what its sets hold', async (t) => {
  const { rig, holdfast } = await setUpDesk(t, 120_000, new VirtualClock());
  const flow = ['router', 'explain', '--from', 'fd5e:21aa:90c4:20::9', '--to', 'fd5e:21aa:90c4:10::5'];
  const explained = async () => {
    const { code, out, err } = await holdfast([...flow, '--json']);
    t.is(code, 0, err);
    return JSON.parse(out);
  };
  // The sets of a router that has just started are empty; the config alone would say otherwise.
  const fresh = await explained();
  t.is(fresh.verdict, 'bypassed');
  t.deepEqual(fresh.sets, { state: 'filled', source: 'the running instance' });
  t.deepEqual(
    fresh.missing.map(({ side, sets }: any) => [side, sets.map(({ name }: any) => name)]),
    [
      ['from', ['c_net_76091add-8a19_set6']],
      ['to', ['c_net_df62a84c-ed88_set6']],
    ],
  );
  await rig.pass(60_000);
  const sets = () => rig.runtime.services.actors.snapshot('router.address_sets/default' as never) as any;
  await until(() => Object.keys(sets().context.populated).length > 0);
  const filled = await explained();
  t.is(filled.verdict, 'policy');
  t.deepEqual(filled.missing, []);
  await rig.runtime.stop('test');
  const computed = await holdfast(flow);
  t.regex(
    computed.out,
    /^FW_FORWARD +.*\nFW_ULA_LOCAL_ONLY +.*\nFW_ACCEPT_DEFAULT +both prefixes.*\naccepted by: FW_ACCEPT_DEFAULT, after per-network policy\nassumed: the address sets are as they follow .*; no instance runs here that could be asked\n$/,
  );
  const guest = await holdfast([
    'router',
    'explain',
    '--from',
    'fd5e:21aa:90c4:30::7%eth1.30',
    '--to',
    'fd5e:21aa:90c4:10::5',
  ]);
  t.regex(
    guest.out,
    /missing: fd5e:21aa:90c4:30::\/64 is not in the set c_net_c60ed79e-e1c4_set6 \(Guest, eth1\.30\)/,
  );
  t.is((await holdfast(['router', 'explain', '--from', 'x', '--to', 'y'])).code, 2);
  t.is((await holdfast(['router', 'explain'])).code, 2);
});

test.serial(
  '[R20] router ra shows delegated prefixes, conflicts with the resolver pair, and why Lab is silent',
  async (t) => {
    const { holdfast } = await setUpDesk(t);
    const { code, out, err } = await holdfast(['router', 'ra']);
    t.is(code, 0, err);
    t.regex(out, /Main \(eth1\.10\): advertises every 200 s, default router for 3600 s\n/);
    t.regex(out, /2001:db8:\S+\/64 +global +announced by the router 86400 s\n/);
    t.regex(out, /fd5e:21aa:90c4:10::\/64 +ULA +announced by the router 86400 s, the resolver pair 7200 s\n/);
    t.regex(out, /Lab \(eth1\.40\): does not advertise\n/);
    t.regex(out, /Lab has no dhcp6 section/);
  },
);

test.serial(
  '[R34] router legs lists the networks with their sets, and a shared set name is a collision',
  async (t) => {
    const { rig, holdfast } = await setUpDesk(t);
    const listed = await holdfast(['router', 'legs']);
    t.is(listed.code, 0, listed.err);
    t.regex(
      listed.out,
      /eth1\.40 +Lab +c_net_a58e5947-760d_set6 +10\.77\.40\.1\/24 fd5e:21aa:90c4:40::1\/64 +\(silent\)/,
    );
    t.regex(listed.out, /eth1\.10 +Main .*delegates from eth0, advertises/);
    const config = await rig.active();
    config.interface.vlan['eth1.20'].meta.uuid = 'df62a84c-ed88-0000-0000-000000000000';
    t.is((await rig.set(config)).status, 200);
    const collided = await holdfast(['router', 'legs']);
    t.is(collided.code, 1);
    t.regex(
      collided.out,
      /collision: Main \(eth1\.10\) and IoT \(eth1\.20\) share the address set c_net_df62a84c-ed88_set6/,
    );
    const health = async () => (await fetch(`${rig.runtime.surfaces.console?.url}/healthz`)).json() as any;
    await until(async () => (await health()).addressSets !== undefined);
    t.like(await health(), { addressSets: { collisions: [{ name: 'c_net_df62a84c-ed88_set6' }] } });
    const doctor = await holdfast(['doctor', 'router']);
    t.regex(doctor.out, /share the address set\s+c_net_df62a84c-ed88_set6/, doctor.err);
  },
);
