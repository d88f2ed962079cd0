/** What a reconciler beside a router elsewhere writes before somebody has confirmed its legs: nothing. */
import test, { type ExecutionContext } from 'ava';
import { type CallOptions, call, writeConfig } from '../../support/cli.ts';
import { tempDir } from '../../support/temp.ts';
import { FieldRouter } from './field-router.ts';
import { type Rig, rig, until } from './rig.ts';

const MAIN = { intf: 'eth1.10', label: 'Main', address: 'fd77:1::1/64' };
const IOT = { intf: 'eth1.20', label: 'IoT', address: 'fd77:2::1/64' };

/** A router elsewhere: its legs lack the addresses that are listed. */
function elsewhere(place = 'http://192.168.1.1:8837'): FieldRouter {
  const router = new FieldRouter();
  router.place = place;
  return router;
}

/** Every listed leg has been read twice, so whatever would be written has been. */
async function looked({ quiet, leg, runtime }: Rig, router: FieldRouter, ...legs: string[]) {
  await until('it is read', () => router.reads > 0);
  await quiet();
  for (const intf of legs) await until(`${intf} rests`, () => leg(intf).state === 'observing');
  return runtime.health().reconciler as any;
}

const holdfast = (t: ExecutionContext, dataDir: string, argv: string[], more: Partial<CallOptions> = {}) => {
  const imports = [
    `import { reconciler } from 'holdfast/plugins/reconciler';`,
    `import { router } from 'holdfast/plugins/router';`,
  ];
  const body = 'export default defineConfig({ plugins: [router(), reconciler()] });';
  const config = writeConfig(tempDir(t), body, imports);
  return call([...argv, '--data-dir', dataDir, '--config', config], { cwd: dataDir, ...more });
};

test('[R24] the legs of the example config are never written to a router elsewhere', async (t) => {
  const router = elsewhere();
  await router.appSaves((config) => {
    for (const leg of Object.values<any>(config.interface.vlan)) delete leg.ipv6;
  });
  const { runtime, health } = await rig(t, {}, router);
  await router.appSaves((config) => delete config.interface.vlan['eth1.10'].ipv6);
  await new Promise((resolve) => setTimeout(resolve, 300));
  t.deepEqual(router.posts, []);
  t.deepEqual(runtime.services.actors.states('reconciler.leg'), []);
  t.like(health(), { ok: false, of: 0 });
  t.regex(health().reason, /no leg is listed.*router_ula_reconciler_addresses/);
});

test('[R24] a first run beside a router elsewhere says what it would post, and posts nothing until the legs are adopted', async (t) => {
  const router = elsewhere();
  await router.appSaves((config) => {
    config.interface.vlan['eth1.20'].ipv6 = [IOT.address];
  });
  const started = await rig(t, { router_ula_reconciler_addresses: [MAIN, IOT] }, router);
  const { leg, dir, health, records, divergence } = started;
  await looked(started, router, 'eth1.10');
  const { reads } = router;
  await router.appSaves((config) => delete config.interface.vlan['eth1.10'].ipv6);
  await until('the event is heard', () => router.reads > reads);
  await until('Main rests', () => leg('eth1.10').state === 'observing');
  await started.quiet();
  t.deepEqual(router.posts, [], 'nothing is written before the adoption');
  t.like(health(), { ok: false, whole: 1, of: 2 });
  t.regex(
    health().reason,
    /not adopted: would add fd77:1::1\/64 to eth1\.10 \(Main\); confirm with `holdfast router adopt`/,
  );

  const unconfirmed = await holdfast(t, dir, ['router', 'adopt']);
  t.is(unconfirmed.code, 2);
  t.regex(unconfirmed.err, /--yes/);
  t.deepEqual(router.posts, []);

  const adopted = await holdfast(t, dir, ['router', 'adopt', '--yes']);
  t.is(adopted.code, 0, adopted.err);
  t.regex(adopted.out, /eth1\.10 +Main +fd77:1::1\/64 +would be added/);
  t.regex(adopted.out, /eth1\.20 +IoT +fd77:2::1\/64 +is there/);
  await until('Main has its address', () => router.leg('eth1.10').ipv6?.includes(MAIN.address));
  await started.quiet();
  t.is(health().ok, undefined);
  t.is(router.posts.length, 1);
  const all = await records();
  const decision = all.find(({ event }) => event.type === 'ADOPT');
  t.like(decision?.event, { how: 'operator' });
  t.true(typeof decision?.event.by === 'string' && typeof decision?.event.at === 'number');
  t.is(divergence(), undefined);
  const again = await holdfast(t, dir, ['router', 'adopt', '--yes', '--json']);
  t.like(JSON.parse(again.out), { state: 'adopted', place: 'http://192.168.1.1:8837' });
});

test('[R24] an adoption outlives a restart, and ends with another list of legs or another router', async (t) => {
  const dir = tempDir(t);
  const start = async (legs: (typeof MAIN)[], router: FieldRouter, adopted?: true) => {
    const started = await rig(t, { legs, ...(adopted && { adopted }) }, router, dir);
    await started.quiet();
    return started;
  };
  const router = elsewhere();
  const first = await start([MAIN], router, true);
  t.is(router.posts.length, 1);
  t.like((await first.records()).find(({ event }) => event.type === 'ADOPT')?.event, { how: 'option' });
  await first.runtime.stop('restart');

  const second = await start([{ ...MAIN, label: 'Parlour' }], router);
  t.is(second.health().ok, undefined, 'a label is for people');
  await router.appSaves((config) => delete config.interface.vlan['eth1.10'].ipv6);
  await until('it is put back', () => router.leg('eth1.10').ipv6);
  await second.quiet();
  await second.runtime.stop('restart');

  const other = elsewhere('http://192.168.2.1:8837');
  const elsewhereToo = await start([MAIN], other);
  await looked(elsewhereToo, other, 'eth1.10');
  t.deepEqual(other.posts, []);
  await elsewhereToo.runtime.stop('restart');
  await start([MAIN], router, true).then(({ runtime }) => runtime.stop('restart'));

  const posts = router.posts.length;
  const third = await start([MAIN, IOT], router);
  await looked(third, router, 'eth1.20');
  t.regex(third.health().reason, /not adopted: would add fd77:2::1\/64/);
  await router.appSaves((config) => delete config.interface.vlan['eth1.10'].ipv6);
  await until('it is seen', () => third.leg('eth1.10').state === 'observing');
  t.is(router.posts.length, posts, 'the old leg is part of the list that nobody has adopted');
  t.is(third.divergence(), undefined);
});
