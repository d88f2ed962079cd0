import test from 'ava';
import { reconciler } from '../../../src/plugins/reconciler/index.ts';
import { call, writeConfig } from '../../support/cli.ts';
import { tempDir } from '../../support/temp.ts';
import { Rig } from '../router/rig.ts';

const plugin = (name: string) => new URL(`../../../src/plugins/${name}/index.ts`, import.meta.url).pathname;

test.serial('[R24] router resync has every leg looked at now, as one story of the log', async (t) => {
  const cwd = tempDir(t);
  writeConfig(cwd, 'export default defineConfig({ plugins: [router(), reconciler()] });', [
    `import { router } from ${JSON.stringify(plugin('router'))};`,
    `import { reconciler } from ${JSON.stringify(plugin('reconciler'))};`,
  ]);
  const rig = await Rig.start(t, { plugins: [reconciler()] });
  await rig.settled();
  const { code, out, err } = await call(['router', 'resync', '--data-dir', rig.dataDir, '--json'], { cwd });
  t.is(code, 0, err);
  const { correlation, legs } = JSON.parse(out);
  t.deepEqual(legs, ['eth1.10', 'eth1.20', 'eth1.40', 'eth1.50', 'eth1.70']);
  await rig.settled();
  const requested = (await rig.records()).filter(({ event }) => event.reason === 'requested');
  t.deepEqual(
    requested.map(({ actor }) => actor),
    legs.map((intf: string) => `reconciler.leg/${intf}`),
  );
  t.true(requested.every((record) => record.correlation === correlation));
  t.is(rig.divergence(), undefined);
  await rig.runtime.stop('test');
  const stopped = await call(['router', 'resync', '--data-dir', rig.dataDir], { cwd });
  t.is(stopped.code, 1);
  t.regex(stopped.err, /HF_CONTROL_UNREACHABLE/);
});
