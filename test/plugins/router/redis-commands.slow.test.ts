import test from 'ava';
import { call, writeConfig } from '../../support/cli.ts';
import { RedisServer } from '../../support/redis.ts';
import { tempDir } from '../../support/temp.ts';
import { exampleConfig, Rig } from './rig.ts';

const PLUGIN = new URL('../../../src/plugins/router/index.ts', import.meta.url).pathname;

/** Command lines of a configuration whose router keeps its config in Redis. */
function commandLine(t: Parameters<typeof tempDir>[0]) {
  const cwd = tempDir(t);
  writeConfig(cwd, 'export default defineConfig({ plugins: [router()] });', [
    `import { router } from ${JSON.stringify(PLUGIN)};`,
  ]);
  return (url: string, ...argv: string[]) =>
    call([...argv, '--data-dir', tempDir(t)], { cwd, env: { HOLDFAST_REDIS_URL: url } });
}

test.serial('[R13,R30] router get, history and diff read Redis when nothing runs', async (t) => {
  const server = await RedisServer.start(t);
  const rig = await Rig.start(t, { options: { redisUrl: server.url } });
  const config = await rig.active();
  config.interface.vlan['eth1.30'].mtu = 1444;
  const { ncid } = (await rig.set(config)).body;
  await rig.set({ ...(await rig.active()), extra: 'later' });
  await rig.runtime.stop('test');
  const holdfast = commandLine(t);
  const got = await holdfast(server.url, 'router', 'get', '--json');
  t.is(JSON.parse(got.out).interface.vlan['eth1.30'].mtu, 1444);
  const { entries } = JSON.parse((await holdfast(server.url, 'router', 'history', '--json')).out);
  t.like(entries[1], { ncid, op: 'save', changed: ['interface.vlan.eth1.30.mtu'] });
  const { changes } = JSON.parse((await holdfast(server.url, 'router', 'diff', '2', '1', '--json')).out);
  t.is(changes.length, 1);
});

test.serial('[R30,R32] a command pointed at the wrong database is told where the key is', async (t) => {
  const password = 'CANARY-password';
  const server = await RedisServer.start(t, { password });
  const holdfast = commandLine(t);
  const empty = await holdfast(server.url, 'router', 'get');
  t.regex(empty.err, /key absent in every database/);
  await server.client(t, 1).set('sysdb:networkConfig', JSON.stringify(exampleConfig()));
  const wrong = await holdfast(`${server.url}/0`, 'router', 'get');
  t.not(wrong.code, 0);
  t.regex(wrong.err, /key absent in database 0, present in database 1/);
  t.is((await holdfast(`${server.url}/1`, 'router', 'get')).code, 0);
  await server.down();
  const away = await holdfast(server.url, 'router', 'get');
  t.regex(away.err, /HF_ROUTER_STORE_UNAVAILABLE/);
  const none = await holdfast(`http://:${password}@host`, 'router', 'get');
  t.regex(none.err, /HF_CONFIG_ENV.*HOLDFAST_REDIS_URL/s);
  for (const { out, err } of [empty, wrong, away, none]) t.notRegex(out + err, /CANARY/);
});
