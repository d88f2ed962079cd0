/** `holdfast doctor router` beside a daemon and a real Redis, each in the states an operator meets. */
import test, { type ExecutionContext } from 'ava';
import { call } from '../../../support/cli.ts';
import { RedisServer, until } from '../../../support/redis.ts';
import { tempDir } from '../../../support/temp.ts';
import { Daemon } from './daemon.ts';
import { startRemote, writeRemoteConfig } from './instance.ts';

type Options = Parameters<typeof writeRemoteConfig>[1];

/** @returns the findings by name */
async function doctor(t: ExecutionContext<any>, options: Options, dataDir = tempDir(t)) {
  const cwd = tempDir(t);
  const config = writeRemoteConfig(cwd, options);
  const argv = ['doctor', 'router', '--json', '--config', config, '--data-dir', dataDir];
  const { code, out, err } = await call(argv, { cwd });
  t.is(err, '');
  const findings: { name: string; [field: string]: string }[] = JSON.parse(out).checks;
  return { code, out, found: Object.fromEntries(findings.map(({ name, ...rest }) => [name, rest])) as any };
}

test.serial('[R30] a config in the wrong database is told by both indices, not as "no config"', async (t) => {
  const daemon = await Daemon.start(t);
  const redis = await RedisServer.start(t);
  await redis.client(t, 0).set('sysdb:networkConfig', '{"ncid":"n1"}');
  const wrong = await doctor(t, { url: daemon.url, redisUrl: redis.url });
  t.is(wrong.code, 1);
  t.regex(wrong.found['router.store'].found, /key absent in database 1, present in database 0/);
  await redis.client(t, 0).del('sysdb:networkConfig');
  await redis.client(t, 1).set('sysdb:networkConfig', '{"ncid":"n1"}');
  const reader = await doctor(t, { url: daemon.url, redisUrl: `${redis.url}/0` });
  t.regex(reader.found['router.store'].found, /key absent in database 0, present in database 1/);
  t.regex(reader.found['router.store'].remedy, /database 1/);
  const right = await doctor(t, { url: daemon.url, redisUrl: redis.url });
  t.is(right.code, 0);
  t.like(right.found['router.store'], { state: 'ok' });
  t.regex(right.found['router.api'].found, /answers in \d+ ms: ncid .* secrets/);
  t.regex(right.found['router.events'].found, /acknowledges a subscription/);
});

test.serial(
  'keys that anybody may read are told; with a password they are not, and it is not shown',
  async (t) => {
    const daemon = await Daemon.start(t);
    const open = await RedisServer.start(t);
    t.like((await doctor(t, { url: daemon.url, redisUrl: open.url })).found['router.keys'], {
      state: 'warn',
    });
    const shut = await RedisServer.start(t, { password: 'hunter2-hunter2' });
    const asked = await doctor(t, { url: daemon.url, redisUrl: shut.url });
    t.like(asked.found['router.keys'], { state: 'ok' });
    t.notRegex(asked.out, /hunter2/);
    const refused = await doctor(t, { url: daemon.url, redisUrl: `redis://127.0.0.1:${shut.port}` });
    t.is(refused.code, 1);
    t.like(refused.found['router.events'], { state: 'fail' });
  },
);

test.serial('[R40] what a daemon leaves of its last transaction is judged, not only seen', async (t) => {
  const daemon = await Daemon.start(t);
  const redis = await RedisServer.start(t);
  const client = redis.client(t, 1);
  const options = { url: daemon.url, redisUrl: redis.url };
  const check = async () => (await doctor(t, options)).found['router.transaction'];
  const persist = (config: unknown) => client.set('sysdb:networkConfig', JSON.stringify(config));
  const pend = (config: unknown) => client.set('sysdb:transaction:networkConfig', JSON.stringify(config));
  const save = (ipv4: string) =>
    daemon.appSaves((config) => {
      config.interface.vlan['eth1.40'].ipv4 = ipv4;
    });
  await persist(daemon.config);
  t.like(await check(), { state: 'ok', found: 'no transaction is pending' });
  await save('10.77.41.1/24'); // appended: served, and not persisted
  await pend(daemon.config);
  const pending = await check();
  t.is(pending.state, 'warn');
  t.regex(pending.found, /a transaction is pending since \d+ s ago, \d+ s left/);
  t.regex(pending.remedy, /120 s/);
  await persist(daemon.config); // committed; the key stays for good
  const committed = await check();
  t.is(committed.state, 'ok');
  t.regex(committed.found, /committed/);
  await save('10.77.42.1/24'); // and a later save replaced it
  await persist(daemon.config);
  const replaced = await check();
  t.is(replaced.state, 'ok');
  t.regex(replaced.found, /reverted, or replaced by a later save/);
  await daemon.stop();
  t.like(await check(), { state: 'warn' });
  await redis.down();
  t.like(await check(), { state: 'unknown' });
});

test.serial('nothing there, a login page, and no Redis: each is told with what to do', async (t) => {
  const redis = await RedisServer.start(t);
  await redis.down();
  const gone = await doctor(t, { url: 'http://127.0.0.1:9', redisUrl: redis.url });
  t.is(gone.code, 1);
  t.like(gone.found['router.api'], { state: 'fail' });
  t.regex(gone.found['router.api'].remedy, /HOLDFAST_ROUTER_URL/);
  for (const name of ['router.events', 'router.store']) {
    t.like(gone.found[name], { state: 'fail' });
    t.regex(gone.found[name].remedy, /HOLDFAST_REDIS_URL/);
  }
  const daemon = await Daemon.start(t);
  daemon.mishaps.push('answersHtml');
  const page = await doctor(t, { url: daemon.url });
  t.regex(page.found['router.api'].found, /no JSON object/);
  t.like(page.found['router.events'], { state: 'warn' });
  t.false('router.store' in page.found);
  t.like(page.found['router.transaction'], { state: 'unknown' });
  t.regex(page.found['router.transaction'].remedy, /HOLDFAST_REDIS_URL/);
  daemon.mishaps.push('answersNoNcid');
  t.regex((await doctor(t, { url: daemon.url })).found['router.api'].found, /no network config/);
});

test.serial(
  '[R28] of a running instance it tells whether it hears the router and holds its legs',
  async (t) => {
    const daemon = await Daemon.start(t);
    const redis = await RedisServer.start(t);
    const publisher = redis.client(t);
    daemon.publish = (channel, payload) => publisher.publish(channel, payload);
    const options = { url: daemon.url, redisUrl: redis.url, channelPrefix: 'firerouter.', pingMs: 500 };
    const dataDir = tempDir(t);
    await startRemote(t, dataDir, writeRemoteConfig(tempDir(t), options));
    await until('it hears', async () => {
      const { found } = await doctor(t, options, dataDir);
      return /subscribed since/.test(found['router.events'].found) && found['router.legs'].state === 'ok';
    });
    await daemon.appSaves((config) => {
      delete config.interface.vlan['eth1.10'].ipv6;
    });
    await until('it has heard the save', async () =>
      /received \d+, last/.test((await doctor(t, options, dataDir)).found['router.events'].found),
    );
    await until('the leg is healed', () => daemon.leg('eth1.10').ipv6 !== undefined);
    await redis.down();
    await until('it has lost Redis', async () => {
      const { code, found } = await doctor(t, options, dataDir);
      return code === 1 && found['router.events'].state === 'fail';
    });
    t.pass();
  },
);
