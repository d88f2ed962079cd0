import test from 'ava';
import { tempDir } from '../../support/temp.ts';
import { FieldRouter } from './field-router.ts';
import { rig, until } from './rig.ts';

const MAIN = { intf: 'eth1.10', label: 'Main', address: 'fd5e:21aa:90c4:10::1/64' };
const IOT = { intf: 'eth1.20', label: 'IoT', address: 'fd5e:21aa:90c4:20::1/64' };

test('[R24] an edited address reaches the leg’s actor at the next start; the old address stays', async (t) => {
  const router = new FieldRouter();
  const dir = tempDir(t);
  const first = await rig(t, { legs: [MAIN, IOT] }, router, dir);
  await first.quiet();
  await first.runtime.stop('edit');
  const edited = { ...MAIN, address: 'fd5e:21aa:90c4:99::1/64' };
  const second = await rig(t, { legs: [edited, IOT] }, router, dir);
  await until('Main has the new address', () => router.leg('eth1.10').ipv6.length === 2);
  await second.quiet();
  t.deepEqual(router.leg('eth1.10').ipv6, [MAIN.address, edited.address]);
  const events = (intf: string) =>
    second.records(intf).then((records) => records.map(({ event }) => event.type));
  t.true((await events('eth1.10')).includes('CONFIGURE'));
  t.false((await events('eth1.20')).includes('CONFIGURE'));
  t.is(second.divergence(), undefined);
});

test('[R24] a leg taken off the list is let go, and taken up again when it is listed again', async (t) => {
  const router = new FieldRouter();
  const dir = tempDir(t);
  const first = await rig(t, { legs: [MAIN, IOT] }, router, dir);
  await first.quiet();
  await first.runtime.stop('edit');
  const second = await rig(t, { legs: [IOT] }, router, dir);
  await second.quiet();
  t.is(second.leg('eth1.10').state, 'released');
  t.like(second.health(), { whole: 1, of: 1 });
  const drop = (config: any) => {
    delete config.interface.vlan['eth1.10'].ipv6;
  };
  await router.appSaves(drop);
  await second.quiet();
  t.is(router.leg('eth1.10').ipv6, undefined);
  await second.runtime.stop('edit');
  const third = await rig(t, { legs: [MAIN, IOT] }, router, dir);
  await until('Main has its address', () => router.leg('eth1.10').ipv6);
  await third.quiet();
  t.like(third.health(), { whole: 2, of: 2 });
});

test('[R24] a leg is whole after a stop in the middle of a write whose answer nobody heard', async (t) => {
  const router = new FieldRouter();
  const dir = tempDir(t);
  const first = await rig(t, {}, router, dir);
  await first.quiet();
  router.applyMs = 250;
  const saving = router.appSaves((config) => {
    delete config.interface.vlan['eth1.10'].ipv6;
  });
  await saving;
  await until('the post is under way', () => router.posts.length === 1);
  // What a kill leaves: the log as it stood when the write had been asked for.
  const asked = (await first.records('eth1.10')).at(-1);
  t.is(asked?.effects[0]?.type, 'router.add_address');
  await first.runtime.stop('stopped in the middle');
  const second = await rig(t, {}, router, dir);
  await second.quiet();
  t.deepEqual(router.leg('eth1.10').ipv6, [MAIN.address]);
  t.is(second.divergence(), undefined);
});

test('[R24] the story stands in the log: who changed, what was missing, what was posted, how it was verified', async (t) => {
  const router = new FieldRouter();
  const { quiet, records, runtime } = await rig(t, { legs: [MAIN] }, router);
  await quiet();
  const before = (await records()).length;
  await router.appSaves((config) => {
    delete config.interface.vlan['eth1.10'].ipv6;
  });
  await until('Main has its address', () => router.leg('eth1.10').ipv6);
  await quiet();
  const story = (await records()).slice(before).filter(({ event }) => !event.type.startsWith('xstate.'));
  const [heard, , ...rest] = story;
  t.is(heard?.event.type, 'CHANGED');
  t.is(heard?.event.channel, 'router.iface_change_applied');
  const definition = runtime.registrations.actors.find(({ type }) => type === 'router.reconciler');
  const told = story.map((record) => definition?.describe?.(record)).filter(Boolean);
  t.like(
    told.map((text) => text?.replace(/ncid \w+…/g, 'ncid N')),
    {
      0: 'hears that an interface was reapplied',
      1: 'lacks its address in ncid N, adds it',
    },
  );
  t.true(
    told.includes(
      `posted eth1.10 ${MAIN.address}: ${told
        .join()
        .match(/ncid \w+…/g)
        ?.at(-1)}`,
    ),
    told.join('\n'),
  );
  t.true(told.some((text) => text?.startsWith('is whole again')));
  t.true(
    rest.filter(({ event }) => event.type !== 'CHANGED').every(({ cause }) => cause !== undefined),
    'every outcome names the record that asked',
  );
});

test('[R26] heals, tries and their latency are metrics', async (t) => {
  const router = new FieldRouter();
  const { quiet, runtime } = await rig(t, { legs: [MAIN] }, router);
  await quiet();
  router.mishaps.push('refuses');
  const { routerChannels } = await import('../../../src/core/adapters/router.ts');
  await router.appSaves((config) => {
    delete config.interface.vlan['eth1.10'].ipv6;
  });
  router.bus?.publish(routerChannels.ifaceChangeApplied, { intf: 'eth1.10', at: Date.now() });
  await until('Main has its address', () => router.leg('eth1.10').ipv6);
  await quiet();
  await until('it is counted', async () => (await runtime.services.metrics.text()).includes('heals_total'));
  const text = await runtime.services.metrics.text();
  t.regex(text, /holdfast_reconciler_heals_total\{intf="eth1.10"\} 1/);
  t.regex(text, /holdfast_reconciler_tries_total\{intf="eth1.10",answer="refused"\} 1/);
  t.regex(text, /holdfast_reconciler_tries_total\{intf="eth1.10",answer="applied"\} 1/);
});

test('[R24] a reconnect has every leg checked', async (t) => {
  const router = new FieldRouter();
  const { quiet, runtime } = await rig(t, {}, router);
  await quiet();
  const { bus } = router;
  router.bus = undefined;
  await router.appSaves((config) => {
    delete config.interface.vlan['eth1.70'].ipv6;
  });
  router.bus = bus;
  const { routerConnected } = await import('../../../src/core/adapters/router.ts');
  runtime.services.bus.publish(routerConnected, {});
  await until('MainWireless has its address', () => router.leg('eth1.70').ipv6);
  t.pass();
});
