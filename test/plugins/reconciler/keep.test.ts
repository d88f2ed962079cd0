/** Kept fields from outside: a save of the app drops one, and it comes back; nothing else changes. */
import test, { type ExecutionContext } from 'ava';
import { SAVES_KEY, savesActor } from '../../../src/plugins/reconciler/actors.ts';
import { router } from '../../../src/plugins/router/index.ts';
import { call, writeConfig } from '../../support/cli.ts';
import { FieldRouter } from './field-router.ts';
import { rig, until } from './rig.ts';

const PATH = 'dhcp6.eth1.10.nameservers';
const DNS = 'fd5e:21aa:90c4:50::53';
const KEEP = { path: PATH, value: [DNS], match: 'contains' as const, label: 'DNS of Main' };

async function embedded(t: ExecutionContext, keep: NonNullable<Parameters<typeof rig>[1]>['keep'] = [KEEP]) {
  const started = await rig(t, { keep }, router({ port: 0 }));
  const { url } = started.runtime.surfaces.router!;
  const active = async (): Promise<any> => (await fetch(`${url}/v1/config/active`)).json();
  const save = async (change: (config: any) => void): Promise<void> => {
    const config = await active();
    change(config);
    const answer = await fetch(`${url}/v1/config/set`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(config),
    });
    t.is(answer.status, 200, await answer.text());
  };
  await started.quiet();
  return { ...started, active, save };
}

/** A config without what every write changes. */
const content = ({ ncid: _, ts: __, reqId: ___, ...config }: any) => config;

test('[R24] an app save that drops a leg’s DHCPv6 DNS and its address is healed in one post; nothing else changes', async (t) => {
  const { active, save, quiet, leg, health, alerts, runtime, dir, divergence } = await embedded(t);
  const before = await active();
  t.true(before.dhcp6['eth1.10'].nameservers.includes(DNS));
  t.is(leg(PATH).state, 'whole');
  await save((config) => {
    delete config.dhcp6['eth1.10'].nameservers;
    delete config.interface.vlan['eth1.10'].ipv6;
  });
  await until('both are healed', () => leg(PATH).context.healed === 1 && leg('eth1.10').context.healed === 1);
  await quiet();
  t.deepEqual(content(await active()), content(before));
  const log = await Array.fromAsync(runtime.services.log.read({ actor: 'router.config/default' }));
  const posts = log.filter(({ event }) => event.type === 'SET' && event.who === 'holdfast');
  t.true(posts.length <= 2, 'one, or two when a commit came between them');
  t.like(health(), { whole: 6, of: 6 });
  t.regex(health().text, /5 of 5 legs whole; 1 of 1 kept fields whole/);
  const dropped = runtime.services.actors.get(savesActor, SAVES_KEY)?.context.dropped ?? [];
  t.deepEqual(
    dropped.map(({ paths, alerted }) => [paths.includes(PATH), alerted]),
    [[true, []]],
  );
  t.deepEqual(alerts, [], 'what is held comes back by itself');

  const config = writeConfig(dir, 'export default defineConfig({ plugins: [router(), reconciler()] });', [
    `import { reconciler } from 'holdfast/plugins/reconciler';`,
    `import { router } from 'holdfast/plugins/router';`,
  ]);
  const { url } = runtime.surfaces.router!;
  const argv = ['router', 'legs', '--url', url, '--data-dir', dir, '--config', config];
  const { out, err } = await call(argv, { cwd: dir });
  t.regex(
    out,
    /DNS of Main \(dhcp6\.eth1\.10\.nameservers\): contains \["fd5e:21aa:90c4:50::53"\] is kept: whole/,
    err,
  );
  t.is(divergence(), undefined);
});

test('[R24] other name servers of the leg stay, and their loss alerts as before', async (t) => {
  const { active, save, quiet, leg, alerts } = await embedded(t);
  const other = 'fd5e:21aa:90c4:50::54';
  await save((config) => {
    config.dhcp6['eth1.10'].nameservers = [other];
  });
  await until('it is healed', () => leg(PATH).context.healed === 1);
  await quiet();
  t.deepEqual((await active()).dhcp6['eth1.10'].nameservers, [other, DNS]);
  await save((config) => {
    config.dhcp6['eth1.10'].nameservers = [];
  });
  await until('it is healed again', () => leg(PATH).context.healed === 2);
  await until('the other one is missed', () => alerts.length === 1);
  t.regex(alerts[0]!.text, /dhcp6\.eth1\.10\.nameservers/);
});

test('[R24] a network that the app names Guest gets nothing, and a section that it drops is not created', async (t) => {
  const { active, save, leg, health, alerts } = await embedded(t);
  await save((config) => {
    config.interface.vlan['eth1.10'].meta.name = 'Guest';
    delete config.dhcp6['eth1.10'].nameservers;
  });
  await until('it is refused', () => leg(PATH).state === 'refusedByName');
  const guest = await active();
  t.is(guest.dhcp6['eth1.10'].nameservers, undefined);
  t.regex(health().reason, /dhcp6\.eth1\.10\.nameservers \(DNS of Main\) may not be held/);
  await save((config) => {
    config.interface.vlan['eth1.10'].meta.name = 'Main';
    delete config.dhcp6['eth1.10'];
  });
  await until('it is absent', () => leg(PATH).state === 'absent');
  t.false('eth1.10' in (await active()).dhcp6);
  await until('a person is told', () =>
    alerts.some(({ name, labels }) => name === 'reconciler.leg.leg_absent' && labels.intf === PATH),
  );
});

test('[R24] entries that a field held to one value does not have are taken out, and no save of others is blamed', async (t) => {
  const keep = [{ path: PATH, value: [DNS], match: 'equals' as const }];
  const { active, save, quiet, leg, runtime } = await embedded(t, keep);
  await save((config) => {
    config.dhcp6['eth1.10'].nameservers = [DNS, 'fd00::1', 'fd00::2'];
  });
  await until('it is healed', () => leg(PATH).context.healed === 1);
  await quiet();
  t.deepEqual((await active()).dhcp6['eth1.10'].nameservers, [DNS]);
  t.deepEqual(runtime.services.actors.get(savesActor, SAVES_KEY)?.context.dropped ?? [], []);
});

test('[R24] beside a router elsewhere a kept field is written only after its adoption, which holds for that value', async (t) => {
  const router = new FieldRouter();
  router.place = 'http://192.168.1.1:8837';
  const options = { legs: [{ intf: 'eth1.20', label: 'IoT', address: 'fd77:2::1/64' }], keep: [KEEP] };
  await router.appSaves((config) => {
    config.interface.vlan['eth1.20'].ipv6 = ['fd77:2::1/64'];
    delete config.dhcp6['eth1.10'].nameservers;
  });
  const { dir, leg, health, runtime, quiet } = await rig(t, options, router);
  await until('it is observed', () => leg(PATH).state === 'observing');
  await quiet();
  t.deepEqual(router.posts, []);
  t.regex(health().reason, /would add \["fd5e:21aa:90c4:50::53"\] to dhcp6\.eth1\.10\.nameservers/);
  const config = writeConfig(dir, 'export default defineConfig({ plugins: [router(), reconciler()] });', [
    `import { reconciler } from 'holdfast/plugins/reconciler';`,
    `import { router } from 'holdfast/plugins/router';`,
  ]);
  const argv = ['router', 'adopt', '--yes', '--data-dir', dir, '--config', config];
  const adopted = await call(argv, { cwd: dir });
  t.regex(
    adopted.out,
    /dhcp6\.eth1\.10\.nameservers DNS of Main +\["fd5e:21aa:90c4:50::53"\] +would be added/,
  );
  await until('it is put in', () => router.config.dhcp6['eth1.10'].nameservers?.includes(DNS));
  await quiet();
  await runtime.stop('restart');
  const second = await rig(t, { ...options, keep: [{ ...KEEP, match: 'equals' }] }, router, dir);
  t.is(second.health().ok, false, 'equals may take entries out: that is another list');
});
