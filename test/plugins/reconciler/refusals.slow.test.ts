import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { FieldRouter, type Mishap } from './field-router.ts';
import { rig, until } from './rig.ts';

const MAIN = 'fd5e:21aa:90c4:10::1/64';
const lacksMain = (config: any) => {
  delete config.interface.vlan['eth1.10'].ipv6;
};

test('[R25] a lost race is run again on a config read anew', async (t) => {
  const router = new FieldRouter();
  const { quiet, leg, records, divergence } = await rig(t, { batchMs: 0 }, router);
  await quiet();
  await router.appSaves(lacksMain);
  await until('Main is read', () => leg('eth1.10').state === 'adding');
  await router.appSaves((config) => {
    config.dns.default.useNameserversFromWAN = false;
  });
  await until('Main has its address', () => router.leg('eth1.10').ipv6);
  await quiet();
  t.false(router.config.dns.default.useNameserversFromWAN, 'the other save stands');
  t.true(leg('eth1.10').context.conflicts >= 1);
  const types = (await records('eth1.10')).map(({ event }) => event.type);
  t.true(types.includes('CONFLICT'));
  t.is(divergence(), undefined);
});

const answers: [mishap: Mishap, event: string, posts: number][] = [
  ['refuses', 'REFUSED', 2],
  ['applyFails', 'REFUSED', 2],
  ['refusesButApplies', 'REFUSED', 1],
  ['isSilent', 'UNKNOWN', 2],
  ['isSilentButApplies', 'UNKNOWN', 1],
];
for (const [mishap, event, posts] of answers) {
  test(`[R24] after a router that ${mishap} the leg is read, and posted ${posts === 1 ? 'no more' : 'again'}`, async (t) => {
    const router = new FieldRouter();
    const { quiet, records, alerts } = await rig(t, {}, router);
    await quiet();
    router.mishaps.push(mishap);
    await router.appSaves(lacksMain);
    await until('Main has its address', () => router.leg('eth1.10').ipv6);
    await quiet();
    t.is(router.posts.length, posts);
    t.is(alerts.length, 0);
    const types = (await records('eth1.10')).map((record) => record.event.type);
    t.is(types[types.indexOf(event) + 1], 'LEG_READ');
  });
}

test('[R25] while a transaction is pending legs wait; nothing says when it ends, and they are healed after', async (t) => {
  const router = new FieldRouter();
  const { quiet, leg, health, alerts } = await rig(t, {}, router);
  await quiet();
  await router.appSaves(lacksMain);
  router.transaction = true;
  await until('Main waits', () => leg('eth1.10').state === 'waiting');
  t.like(health(), { whole: 4, of: 5 });
  t.like(
    health().legs.find(({ intf }: any) => intf === 'eth1.10'),
    { state: 'waiting', tries: 0 },
  );
  await until('it tries again', () => router.posts.length >= 4);
  t.deepEqual(alerts, []);
  router.transaction = false;
  await until('Main has its address', () => router.leg('eth1.10').ipv6);
  await quiet();
  t.like(health(), { whole: 5, of: 5 });
});

test('[R25] a router that refuses is written to for ever; a person is told once, and of its end', async (t) => {
  const router = new FieldRouter();
  const { leg, alerts, health, quiet, divergence } = await rig(t, { alertAfterMs: 150 }, router);
  await quiet();
  router.mishaps.push(...Array.from({ length: 12 }, () => 'refuses' as const));
  await router.appSaves(lacksMain);
  await until('it is refused', () => leg('eth1.10').state === 'refused');
  t.like(
    health().legs.find(({ intf }: any) => intf === 'eth1.10'),
    { state: 'refused', lastError: 'not now' },
  );
  t.like(health(), { ok: false });
  await until('told', () => alerts.length === 1);
  t.like(alerts[0], {
    name: 'reconciler.leg.write_refused',
    severity: 'critical',
    labels: { intf: 'eth1.10', label: 'Main', address: MAIN },
  });
  await until('Main has its address', () => router.leg('eth1.10').ipv6);
  await until('told that it is over', () => alerts.length === 2);
  t.is(router.posts.length, 13);
  t.like(alerts[1], { name: 'reconciler.leg.recovered', text: `Main (eth1.10) has ${MAIN} again.` });
  t.is(divergence(), undefined);
});

test('[R24] a router that is down is asked for ever, and its legs are healed when it is back', async (t) => {
  const router = new FieldRouter();
  router.down = true;
  const { leg, quiet, health, divergence } = await rig(t, { maxTries: 2 }, router);
  await until('it is tried more often than a race', () => leg('eth1.10').context.failures > 4);
  t.like(health().legs[0], { state: 'unreachable' });
  t.like(health(), { ok: false, whole: 0 });
  router.down = false;
  await router.appSaves(lacksMain);
  await until('all is well', () => health().whole === 5);
  await quiet();
  t.deepEqual(router.leg('eth1.10').ipv6, [MAIN]);
  t.is(divergence(), undefined);
});

test('[R25] four writers race for 50 saves each; the legs are whole at the end, and every save that won stands', async (t) => {
  const router = new FieldRouter();
  router.saveLagMs = 0;
  const { quiet, leg, divergence } = await rig(t, {}, router);
  await quiet();
  const guests = [router.leg('eth1.30'), router.leg('eth1.60')];
  let won = 0;
  const writer = async (name: number) => {
    for (let round = 0; round < 50; round += 1) {
      const answer = await router.raceSave((config) => {
        config.dns[`writer${name}`] = { round };
        if (round % 5 === name) delete config.interface.vlan['eth1.10'].ipv6;
      });
      if (answer.kind === 'applied') won += 1;
      await delay(3);
    }
  };
  await Promise.all([0, 1, 2, 3].map(writer));
  await until('Main has its address', () => router.leg('eth1.10').ipv6);
  await quiet();
  t.true(won > 20, `${won} saves won`);
  t.deepEqual(router.leg('eth1.10').ipv6, [MAIN]);
  t.deepEqual([router.leg('eth1.30'), router.leg('eth1.60')], guests);
  t.is(router.bypassed, 0);
  t.true(
    router.posts.every((body) => !('reqId' in body) && !('ignoreNcid' in body) && body.ncid !== undefined),
  );
  t.log(`${won} saves won, Main healed ${leg('eth1.10').context.healed} times, ${router.posts.length} posts`);
  t.is(divergence(), undefined);
});
