import test from 'ava';
import { routerChannels, routerConnected } from '../../../src/core/contracts/router.ts';
import { startChild } from '../../support/disk.ts';
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

test('[R24] killed between a write and its answer: the leg is read, and what was not applied is posted again', async (t) => {
  const dir = tempDir(t);
  const child = startChild(t, new URL('killed-child.ts', import.meta.url), [dir]);
  await child.line(/^posted$/);
  await child.kill('SIGKILL');
  const router = new FieldRouter();
  await router.appSaves((config) => {
    delete config.interface.vlan['eth1.10'].ipv6;
  });
  const { quiet, records, divergence } = await rig(t, {}, router, dir);
  await until('Main has its address', () => router.leg('eth1.10').ipv6);
  await quiet();
  t.is(router.posts.length, 1);
  const types = (await records('eth1.10')).map(({ event }) => event.type);
  const lost = types.indexOf('effect.lost');
  t.true(lost > 0);
  t.true(types.slice(lost).includes('ADDED'));
  t.is(divergence(), undefined);
});

test('[R24] killed between a write and its answer: what was applied is not posted again', async (t) => {
  const dir = tempDir(t);
  const child = startChild(t, new URL('killed-child.ts', import.meta.url), [dir]);
  await child.line(/^posted$/);
  await child.kill('SIGKILL');
  const router = new FieldRouter();
  const { quiet, leg } = await rig(t, {}, router, dir);
  await quiet();
  t.is(router.posts.length, 0);
  t.is(leg('eth1.10').context.healed, 1);
});

test('[R24] the story stands in the log: who changed, what was missing, what was posted, how it was verified', async (t) => {
  const router = new FieldRouter();
  const { quiet, records, runtime } = await rig(t, { legs: [MAIN] }, router);
  await quiet();
  const before = (await records(MAIN.intf)).length;
  await router.appSaves((config) => {
    delete config.interface.vlan['eth1.10'].ipv6;
  });
  await until('Main has its address', () => router.leg('eth1.10').ipv6);
  await quiet();
  const story = (await records(MAIN.intf))
    .slice(before)
    .filter(({ event }) => !event.type.startsWith('xstate.'));
  const [heard, , ...rest] = story;
  t.is(heard?.event.type, 'CHANGED');
  t.is(heard?.event.channel, 'router.iface_change_applied');
  const definition = runtime.registrations.actors.find(({ type }) => type === 'reconciler.leg');
  const told = story.map((record) => definition?.describe?.(record)).filter(Boolean);
  t.like(
    told.map((text) => text?.replace(/ncid \w+…/g, 'ncid N')),
    {
      0: 'will be checked: an interface was reapplied',
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
  t.true(told.some((text) => text?.startsWith('has its address again')));
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
  const { bus } = router;
  router.bus = undefined; // its own events do not say when they were published
  await router.appSaves((config) => {
    delete config.interface.vlan['eth1.10'].ipv6;
  });
  bus?.publish(routerChannels.ifaceChangeApplied, { intf: 'eth1.10', at: Date.now() });
  await until('Main has its address', () => router.leg('eth1.10').ipv6);
  await quiet();
  let text = '';
  while (!text.includes('reconciler_heals_total{')) text = await runtime.services.metrics.text();
  t.regex(text, /holdfast_reconciler_heals_total\{intf="eth1.10"\} 1/);
  t.regex(text, /holdfast_reconciler_tries_total\{intf="eth1.10",answer="refused"\} 1/);
  t.regex(text, /holdfast_reconciler_tries_total\{intf="eth1.10",answer="applied"\} 1/);
  t.regex(text, /holdfast_reconciler_heal_seconds_count 1/);
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
  runtime.services.bus.publish(routerConnected, {});
  await until('MainWireless has its address', () => router.leg('eth1.70').ipv6);
  t.pass();
});
