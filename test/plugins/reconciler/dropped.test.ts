/** What saves of others dropped from the router's config: named by paths, recorded, and alerted by policy. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { SAVES_KEY, savesActor } from '../../../src/plugins/reconciler/actors.ts';
import { matches, skeletonOf, vanished } from '../../../src/plugins/reconciler/vanished.ts';
import { router } from '../../../src/plugins/router/index.ts';
import { call, writeConfig } from '../../support/cli.ts';
import { FieldRouter } from './field-router.ts';
import { rig, until } from './rig.ts';

const MAIN = { intf: 'eth1.10', label: 'Main', address: 'fd5e:21aa:90c4:10::1/64' };
const SECRET = 'the-passphrase-of-the-wifi';

test('[R26] what an app save drops is named by its path, recorded without values, and alerted by policy', async (t) => {
  const router = new FieldRouter();
  await router.appSaves((config) => {
    config.interface.vlan['eth1.40'].note = SECRET;
    config.interface.vlan['eth1.40'].ipv6 = ['fd99::40/64'];
  });
  const { runtime, alerts, dir, quiet, records, divergence } = await rig(t, { legs: [MAIN] }, router);
  await quiet();
  await until('the first config is read', () => router.reads > 0);
  const dropped = () => runtime.services.actors.get(savesActor, SAVES_KEY)?.context.dropped ?? [];

  await router.appSaves((config) => {
    config.interface.vlan['eth1.10'].meta.name = 'Parlour';
    delete config.interface.vlan['eth1.10'].ipv6;
    delete config.interface.vlan['eth1.40'].ipv6;
    delete config.interface.vlan['eth1.40'].note;
  });
  await until('it is recorded', () => dropped().length === 1);
  const ofLab = 'interface.vlan.eth1.40.ipv6';
  t.like(dropped()[0], {
    paths: ['interface.vlan.eth1.10.ipv6', ofLab, 'interface.vlan.eth1.40.note'],
    count: 3,
    alerted: [ofLab],
  });
  await until('an alert is raised', () => alerts.length > 0);
  t.deepEqual(
    alerts.map(({ name }) => name),
    ['reconciler.paths_dropped'],
    'the held leg comes back by itself',
  );
  t.regex(alerts[0]!.text, /dropped interface\.vlan\.eth1\.40\.ipv6 \(3 paths in all\)/);
  await until('Main is healed', () => router.leg('eth1.10').ipv6);
  await quiet();

  // A save that drops nothing, and one that replaces a value.
  await router.appSaves((config) => {
    config.interface.vlan['eth1.40'].ipv6 = ['fd99::41/64'];
  });
  await router.appSaves((config) => {
    config.interface.vlan['eth1.40'].ipv6 = ['fd99::42/64'];
  });
  await quiet();
  t.is(dropped().length, 1);

  const config = writeConfig(dir, 'export default defineConfig({ plugins: [router(), reconciler()] });', [
    `import { reconciler } from 'holdfast/plugins/reconciler';`,
    `import { router } from 'holdfast/plugins/router';`,
  ]);
  const { out, code } = await call(['router', 'dropped', '--data-dir', dir, '--config', config], {
    cwd: dir,
  });
  t.is(code, 0);
  t.regex(out, /3 dropped\n.*eth1\.10\.ipv6\n.*eth1\.40\.ipv6 {2}\(alert raised\)\n.*eth1\.40\.note/);
  t.notRegex(JSON.stringify(await records()) + out, new RegExp(SECRET));
  t.is(divergence(), undefined);
});

test('[R26] what Holdfast itself removes is asked for, once', async (t) => {
  const router = new FieldRouter();
  const { runtime, dir, quiet } = await rig(t, { legs: [MAIN] }, router);
  await quiet();
  const dropped = () => runtime.services.actors.get(savesActor, SAVES_KEY)?.context.dropped ?? [];
  const config = writeConfig(dir, 'export default defineConfig({ plugins: [router(), reconciler()] });', [
    `import { reconciler } from 'holdfast/plugins/reconciler';`,
    `import { router } from 'holdfast/plugins/router';`,
  ]);
  const drill = await call(['drill', 'app-save', '--data-dir', dir, '--config', config], { cwd: dir });
  t.is(drill.code, 0, drill.out);
  await quiet();
  t.deepEqual(dropped(), []);
  await router.appSaves((config) => delete config.interface.vlan['eth1.10'].ipv6);
  await until('the app’s own is recorded', () => dropped().length === 1);
});

test('[R26,R31] what router apply removes on the embedded router is asked for, and what an app save drops is not', async (t) => {
  const { runtime, dir, quiet, alerts } = await rig(t, {}, router({ port: 0 }));
  await quiet();
  const { url } = runtime.surfaces.router!;
  const dropped = () => runtime.services.actors.get(savesActor, SAVES_KEY)?.context.dropped ?? [];
  const config = writeConfig(dir, 'export default defineConfig({ plugins: [router(), reconciler()] });', [
    `import { reconciler } from 'holdfast/plugins/reconciler';`,
    `import { router } from 'holdfast/plugins/router';`,
  ]);
  const active = async (): Promise<any> => (await fetch(`${url}/v1/config/active`)).json();
  const { ncid: _, ...wanted } = await active();
  delete wanted.interface.vlan['eth1.20'].dhcp6;
  delete wanted.dhcp6?.['eth1.20'];
  const file = join(dir, 'wanted.json');
  writeFileSync(file, JSON.stringify({ ...wanted, ncid: (await active()).ncid }), { mode: 0o600 });
  const applied = await call(
    ['router', 'apply', file, '--yes', '--url', url, '--data-dir', dir, '--config', config],
    { cwd: dir },
  );
  t.is(applied.code, 0, applied.out + applied.err);
  await quiet();
  t.deepEqual(dropped(), []);

  const without = await active();
  delete without.dhcp6;
  await fetch(`${url}/v1/config/set`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(without),
  });
  await until('the save is compared', () => dropped().length === 1);
  t.deepEqual(dropped()[0]?.paths, ['dhcp6']);
  t.deepEqual(dropped()[0]?.alerted, ['dhcp6']);
  await until('an alert is raised', () => alerts.some(({ name }) => name === 'reconciler.paths_dropped'));
});

test('[R26] paths vanish as high as they can; a list loses an item only when no other takes its place', (t) => {
  const before = { a: { b: { c: 1, d: null } }, list: ['x', 'y'], gone: { e: { f: 1 } }, ncid: 'n1' };
  const after = { a: { b: {} }, list: ['y'], ncid: 'n2', new: 1 };
  t.deepEqual(vanished(skeletonOf(before), skeletonOf(after)), [['a', 'b', 'c'], ['list'], ['gone']]);
  t.deepEqual(vanished(skeletonOf({ list: ['x', 'y'] }), skeletonOf({ list: ['x', 'z'] })), []);
  t.notRegex(JSON.stringify(skeletonOf({ psks: ['hunter2'], key: 'hunter2' })), /hunter2/);
});

test('[R26] a pattern of the policy names a path, what is in it, and what is above it', (t) => {
  const leg = ['interface', 'vlan', 'eth1.10'];
  for (const pattern of ['interface.*.*.ipv6', 'interface.vlan.eth1.10.ipv6', 'interface', '*']) {
    t.true(matches(pattern, [...leg, 'ipv6']), pattern);
  }
  t.true(matches('interface.*.*.ipv6', leg), 'the whole interface is gone, its ipv6 too');
  t.true(matches('dhcp6', ['dhcp6', 'eth1.10']));
  for (const pattern of ['interface.*.*.dhcp6', 'interface.vlan.eth1.1.ipv6', 'routing']) {
    t.false(matches(pattern, [...leg, 'ipv6']), pattern);
  }
});
