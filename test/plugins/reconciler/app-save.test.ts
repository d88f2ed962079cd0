/** `holdfast drill app-save`: the documented app save, on purpose and beside any router. */
import test, { type ExecutionContext } from 'ava';
import { type CallOptions, call, writeConfig } from '../../support/cli.ts';
import { FieldRouter } from './field-router.ts';
import { type Rig, rig, until } from './rig.ts';

const MAIN = { intf: 'eth1.10', label: 'Main', address: 'fd5e:21aa:90c4:10::1/64' };
const DRILL = 'reconciler.app_save/drill';

async function beside(t: ExecutionContext, options: Parameters<typeof rig>[1] = {}) {
  const router = new FieldRouter();
  router.place = 'http://192.168.1.1:8837';
  const started: Rig = await rig(t, { legs: [MAIN], adopted: true, ...options }, router);
  await started.quiet();
  const { dir } = started;
  const config = writeConfig(dir, 'export default defineConfig({ plugins: [router(), reconciler()] });', [
    `import { reconciler } from 'holdfast/plugins/reconciler';`,
    `import { router } from 'holdfast/plugins/router';`,
  ]);
  const drill = (argv: string[] = [], more: Partial<CallOptions> = {}) =>
    call(['drill', 'app-save', ...argv, '--data-dir', dir, '--config', config], { cwd: dir, ...more });
  const state = () => started.runtime.services.actors.snapshot(DRILL as never)?.value;
  return { router, ...started, drill, state };
}

/** The config without what every write changes. */
const lasting = ({ config: { ncid: _, reqId: __, ...rest } }: FieldRouter) => rest;

test('[R26] a drill saves a leg as the app does, twice, times both returns, and leaves the config as it was', async (t) => {
  const { router, drill, records, divergence } = await beside(t);
  const before = lasting(router);
  const { code, out, err } = await drill(['--leg', 'Main']);
  t.is(code, 0, out + err);
  t.regex(
    out,
    /\+\d+\.\d s +saved as the app does: named Main \(drill\), without ipv6\n.*\+\d+\.\d s +the address is back in the config after \d+\.\d s, on the link after \d+\.\d s\n.*saved as the app does: named Main, without ipv6\n.*the address is back.*\nok +Main \(eth1\.10\) got its address back after both saves/,
  );
  t.deepEqual(lasting(router), before);
  const saves = router.posts.filter(({ interface: { vlan } }) => vlan['eth1.10'].ipv6 === undefined);
  t.deepEqual(
    saves.map(({ interface: { vlan } }) => vlan['eth1.10'].meta.name),
    ['Main (drill)', 'Main'],
  );
  const recorded = (await records()).filter(({ actor }) => actor === DRILL).map(({ event }) => event.type);
  for (const type of ['BEGIN', 'SAVED', 'RETURNED']) t.true(recorded.includes(type), type);
  t.is(divergence(), undefined);
});

test('[R26] a drill whose address does not return says so, and puts name and address back', async (t) => {
  const { router, drill, runtime } = await beside(t);
  const before = lasting(router);
  // Nobody hears of the save, so the reconciler does not heal it.
  router.bus = undefined;
  const { code, out } = await drill(['--wait', '1s']);
  t.is(code, 1);
  t.regex(
    out,
    /the address is not in the config after 1 s\n.*the config is put back\nfail +Main \(eth1\.10\): /,
  );
  t.deepEqual(lasting(router), before);
  router.bus = runtime.services.bus;
});

test('[R26] a drill that is interrupted puts the config back before it ends', async (t) => {
  const { router, drill, runtime, state } = await beside(t);
  const before = lasting(router);
  router.bus = undefined;
  const interrupt = new AbortController();
  const saved = until('it is saved', () => state() === 'renamed').then(() => interrupt.abort('SIGINT'));
  const { code, out } = await drill(['--json'], {
    interrupted: interrupt.signal,
  });
  await saved;
  t.is(code, 1);
  const view = JSON.parse(out);
  t.like(view, { ok: false, state: 'failed' });
  t.regex(view.reason, /stopped the drill/);
  t.deepEqual(lasting(router), before);
  router.bus = runtime.services.bus;
});

test('[R26] a drill has the router apply again what its kernel refused before', async (t) => {
  const { router, drill, leg } = await beside(t);
  router.kernelFails = true;
  await router.appSaves((config) => {
    config.interface.vlan['eth1.10'].ipv6 = undefined;
  });
  await until('it is not applied', () => leg('eth1.10').state === 'notApplied');
  router.kernelFails = false;
  const { code, out, err } = await drill(['--leg', 'Main']);
  t.is(code, 0, out + err);
  await until('it is applied', () => leg('eth1.10').state === 'whole');
  t.is(leg('eth1.10').context.linkAlerted, undefined);
});

test('[R26] no drill begins on a leg that is not adopted, not listed or not whole, nor beside a transaction', async (t) => {
  const { router, drill } = await beside(t);
  const unknown = await drill(['--leg', 'eth1.30']);
  t.is(unknown.code, 1);
  t.regex(unknown.err, /did not begin: eth1\.30 is no leg that the reconciler holds/);
  router.transaction = true;
  const pending = await drill();
  t.is(pending.code, 1);
  t.regex(pending.out, /fail +Main \(eth1\.10\): a transaction is pending, so nothing was saved/);
  t.is(pending.out.split('nothing was saved').length, 2, 'it is said once');
  router.transaction = false;
  await router.appSaves((config) => {
    config.interface.vlan['eth1.10'].ipv6 = [MAIN.address, 'fd99::1/64'];
  });
  const others = await drill();
  t.regex(others.out, /1 other static addresses/);

  const observing = await beside(t, { adopted: false });
  const refused = await observing.drill();
  t.is(refused.code, 1);
  t.regex(refused.err, /did not begin: not adopted/);
  t.deepEqual(observing.router.posts, []);
});
