import { existsSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { call, writeConfig } from '../../support/cli.ts';
import { tempDir } from '../../support/temp.ts';
import { exampleConfig, Rig } from './rig.ts';

const PLUGIN = new URL('../../../src/plugins/router/index.ts', import.meta.url).pathname;
const SECRET = /EXAMPLExPRIVATE|example-not-a-secret|PRESHARED/;

/** Command lines on the data folder of a rig. */
async function setUp(t: ExecutionContext) {
  const cwd = tempDir(t);
  writeConfig(cwd, 'export default defineConfig({ plugins: [router()] });', [
    `import { router } from ${JSON.stringify(PLUGIN)};`,
  ]);
  const rig = await Rig.start(t);
  const holdfast = (...argv: string[]) => call([...argv, '--data-dir', rig.dataDir], { cwd });
  return { rig, holdfast, cwd };
}

test.serial(
  '[R32] router get shows the config of the running instance, and of the store when nothing runs, redacted',
  async (t) => {
    const { rig, holdfast } = await setUp(t);
    const { wireguard: _, ...interfaces } = exampleConfig().interface;
    const running = await holdfast('router', 'get');
    t.is(running.code, 0, running.err);
    t.like(JSON.parse(running.out), { ncid: exampleConfig().ncid, interface: { vlan: interfaces.vlan } });
    t.regex(running.err, new RegExp(`^\\d+ secrets redacted; read from ${rig.url}\\n$`));
    t.notRegex(running.out, SECRET);

    await rig.runtime.stop('test');
    const stopped = await holdfast('router', 'get', '--json');
    t.deepEqual(JSON.parse(stopped.out), JSON.parse(running.out));
    t.is(stopped.err, '');
  },
);

test.serial('[R13] router history lists who changed what, running or not', async (t) => {
  const { rig, holdfast } = await setUp(t);
  t.regex((await holdfast('router', 'history')).out, /no writes yet/);
  const config = exampleConfig();
  config.interface.vlan['eth1.30'].ipv4 = '10.77.31.1/24';
  const { ncid } = (await rig.set(config)).body;
  const running = await holdfast('router', 'history');
  t.regex(running.out, new RegExp(`${ncid} +save +127.0.0.1 .*interface.vlan.eth1.30.ipv4`));
  t.regex(running.out, /2 .* seed +holdfast +what was there before/);
  await rig.runtime.stop('test');
  t.regex((await holdfast('router', 'diff', '2', 'active')).out, /10\.77\.30\.1/);
  const { entries } = JSON.parse((await holdfast('router', 'history', '--json', '--limit', '1')).out);
  t.like(entries, [{ ncid, op: 'save', changed: ['interface.vlan.eth1.30.ipv4'] }]);
  t.is((await holdfast('router', 'history', '--limit', 'all')).code, 2);
});

test.serial('where there is no store, router get says so and makes none', async (t) => {
  const { holdfast, cwd } = await setUp(t);
  const empty = join(cwd, 'empty');
  const { code, err } = await call(['router', 'get', '--data-dir', empty], { cwd });
  t.not(code, 0);
  t.regex(err, /HF_ROUTER_STORE_MISSING/);
  t.false(existsSync(empty));
  t.is((await holdfast('router', 'get')).code, 0);
});
