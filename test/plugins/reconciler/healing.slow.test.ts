import test from 'ava';
import { FieldRouter } from './field-router.ts';
import { rig, until } from './rig.ts';

const MAIN = 'fd5e:21aa:90c4:10::1/64';
const LISTED = ['eth1.10', 'eth1.20', 'eth1.40', 'eth1.50', 'eth1.70'];
const addressOf = (intf: string) => `fd5e:21aa:90c4:${intf.slice('eth1.'.length)}::1/64`;
const lacks = (intf: string) => (config: any) => {
  delete config.interface.vlan[intf].ipv6;
};

test('[R26] a save that drops the address is healed, and nothing but ipv6 differs from what was read', async (t) => {
  const router = new FieldRouter();
  const { quiet, leg } = await rig(t, {}, router);
  await quiet();
  await router.appSaves(lacks('eth1.10'));
  const { reqId, ...read } = router.config;
  await until('Main has its address', () => router.leg('eth1.10').ipv6);
  await quiet();
  t.deepEqual(router.leg('eth1.10').ipv6, [MAIN]);
  t.is(router.posts.length, 1);
  read.interface.vlan['eth1.10'].ipv6 = [MAIN];
  t.deepEqual(router.posts[0], read);
  t.truthy(reqId, 'the daemon served one');
  t.is(router.bypassed, 0);
  t.is(leg('eth1.10').context.healed, 1);
});

for (const [form, ipv6] of [
  ['an empty list', []],
  ['another address in a list', ['FD00::0001/64']],
  ['another address as a string', 'fd00::1/64'],
  ['an empty string', ''],
] as const) {
  test(`[R24] a leg whose ipv6 is ${form} keeps what it has and gets its own behind it`, async (t) => {
    const router = new FieldRouter();
    const { quiet } = await rig(t, {}, router);
    await quiet();
    await router.appSaves((config) => {
      config.interface.vlan['eth1.40'].ipv6 = ipv6;
    });
    const kept = [ipv6].flat().filter((address) => address !== '');
    await until('Lab has its address', () => router.leg('eth1.40').ipv6.length === kept.length + 1);
    await quiet();
    t.deepEqual(router.leg('eth1.40').ipv6, [...kept, addressOf('eth1.40')]);
  });
}

test('[R24] another spelling of the address is the address: nothing is posted', async (t) => {
  const router = new FieldRouter();
  const { quiet } = await rig(t, {}, router);
  await router.appSaves((config) => {
    config.interface.vlan['eth1.10'].ipv6 = 'FD5E:21AA:90C4:0010:0:0:0:1/64';
    config.interface.vlan['eth1.20'].ipv6 = ['fd00::1/64', 'fd5e:21aa:90c4:20:0::1/064'];
  });
  await quiet();
  t.is(router.posts.length, 0);
});

test('[R24] several legs missing at once are one read and one post', async (t) => {
  const router = new FieldRouter();
  const { quiet } = await rig(t, { batchMs: 1_000 }, router);
  await quiet();
  router.reads = 0;
  await router.appSaves((config) => {
    for (const intf of LISTED) delete config.interface.vlan[intf].ipv6;
  });
  await until('the first post', () => router.posts.length === 1);
  t.is(router.reads, 1);
  await until('all legs are whole', () => LISTED.every((intf) => router.leg(intf).ipv6));
  await quiet();
  t.is(router.posts.length, 1);
  for (const intf of LISTED) t.deepEqual(router.leg(intf).ipv6, [addressOf(intf)]);
});

test('[R24] Guest and Telework are never touched', async (t) => {
  const router = new FieldRouter();
  const { quiet } = await rig(t, {}, router);
  const before = [router.leg('eth1.30'), router.leg('eth1.60')];
  await router.appSaves((config) => {
    for (const leg of Object.values(config.interface.vlan)) delete leg.ipv6;
  });
  await until('all legs are whole', () => LISTED.every((intf) => router.leg(intf).ipv6));
  await quiet();
  t.deepEqual([router.leg('eth1.30'), router.leg('eth1.60')], before);
});

test('[R24] a first reading that was too early is found out by the second look', async (t) => {
  const router = new FieldRouter();
  const { quiet, leg } = await rig(t, {}, router);
  await quiet();
  router.beforeSave = async () => {
    router.beforeSave = undefined;
    await until('Main is read, and seems whole', () => leg('eth1.10').state === 'checking');
  };
  await router.appSaves(lacks('eth1.10'));
  await until('Main has its address', () => router.leg('eth1.10').ipv6);
  t.pass();
});

test('[R24] a save that nobody heard of is found by the resync', async (t) => {
  const router = new FieldRouter();
  const { quiet } = await rig(t, { resyncMs: 150 }, router);
  await quiet();
  const { bus } = router;
  router.bus = undefined;
  await router.appSaves(lacks('eth1.10'));
  router.bus = bus;
  await until('Main has its address', () => router.leg('eth1.10').ipv6);
  t.pass();
});

test('[R24] a leg that is missing at start is healed at start', async (t) => {
  const router = new FieldRouter();
  await router.appSaves(lacks('eth1.20'));
  await rig(t, {}, router);
  await until('IoT has its address', () => router.leg('eth1.20').ipv6);
  t.deepEqual(router.leg('eth1.20').ipv6, [addressOf('eth1.20')]);
});

test('[R24] an interface that the config lacks is told, never made up', async (t) => {
  const router = new FieldRouter();
  const { quiet, alerts, leg, health } = await rig(t, {}, router);
  await quiet();
  const saved = router.leg('eth1.50');
  await router.appSaves((config) => {
    delete config.interface.vlan['eth1.50'];
  });
  await until('Core is absent', () => leg('eth1.50').state === 'absent');
  t.is(router.posts.length, 0);
  await until('told', () => alerts.length > 0);
  t.like(alerts[0], { name: 'reconciler.leg.leg_absent', labels: { intf: 'eth1.50', label: 'Core' } });
  t.like(
    health().legs.find(({ intf }: any) => intf === 'eth1.50'),
    { state: 'absent' },
  );
  delete saved.ipv6;
  await router.appSaves((config) => {
    config.interface.vlan['eth1.50'] = saved;
  });
  await until('Core has its address', () => router.leg('eth1.50').ipv6);
  await until('told that it is over', () => alerts.length > 1);
  t.like(alerts[1], { name: 'reconciler.leg.recovered', severity: 'info' });
});
