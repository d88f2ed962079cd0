import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { SqliteReader } from '../../../src/core/kernel/log/sqlite-reader.ts';
import { verifyLog } from '../../../src/core/kernel/replay/verify-log.ts';
import { routerConfig } from '../../../src/machines/router/config.ts';
import { active, type Instance, post, startInstance, writeConfig } from '../../support/instance.ts';
import { RedisServer, until } from '../../support/redis.ts';
import { tempDir } from '../../support/temp.ts';

const LEG = 'eth1.30';
const ROUNDS = 6;

/** Saves until the instance dies; the ncids that were acknowledged are noted. */
async function save({ router, child }: Instance, acknowledged: string[]): Promise<void> {
  for (let turn = 0; child.process.exitCode === null && child.process.signalCode === null; turn += 1) {
    try {
      const config: any = await active(router);
      config.interface.vlan[LEG].mtu = 1300 + (turn % 200);
      const { status, body } = await post(router, config);
      if (status === 200 && body.ncid) acknowledged.push(body.ncid);
    } catch {
      await sleep(10); // it is dead, or cannot read its store yet; what was not answered is unknown
    }
  }
}

function divergence(t: ExecutionContext, dataDir: string) {
  const reader = new SqliteReader(dataDir);
  t.teardown(() => reader.close());
  const type = 'router.config';
  return verifyLog(reader, new Map([[type, { type, machine: routerConfig, version: 1 }]])).divergence;
}

test.serial(
  '[R9,R13,R18] killed at random instants, between save and publish among them: every write that stands in Redis is published',
  async (t) => {
    t.timeout(240_000);
    const server = await RedisServer.start(t);
    const dir = tempDir(t);
    const config = writeConfig(dir);
    const env = { HOLDFAST_REDIS_URL: server.url };
    const heard = new Set<string>();
    const subscriber = server.client(t);
    subscriber.on('message', (_channel, message) => heard.add(JSON.parse(message).ncid));
    await subscriber.subscribe('router.change_applied');

    const acknowledged: string[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const instance = await startInstance(t, dir, config, env);
      const before = acknowledged.length;
      const saving = save(instance, acknowledged);
      await until('a save is acknowledged', () => acknowledged.length > before);
      await sleep(Math.random() * 300);
      await instance.child.kill('SIGKILL');
      await saving;
    }
    const { child, router } = await startInstance(t, dir, config, env);
    const history = await server.client(t, 0).zrange('history:networkConfig', '0', '-1');
    const written = history.map((member) => JSON.parse(member).ncid as string);
    t.true(written.length >= ROUNDS);
    t.log(`${acknowledged.length} acknowledged writes, ${written.length} in the history`);
    t.deepEqual(
      acknowledged.filter((ncid) => !written.includes(ncid)),
      [],
      'no acknowledged write is missing from the history',
    );
    await until('every one is published', () => written.every((ncid) => heard.has(ncid)));
    t.deepEqual(
      await active(router),
      JSON.parse((await server.client(t, 1).get('sysdb:networkConfig')) ?? ''),
    );
    await child.kill('SIGTERM');
    t.is(divergence(t, dir), undefined);
  },
);

test.serial('[R3] two processes that race on one Redis never both win an ncid', async (t) => {
  t.timeout(180_000);
  const server = await RedisServer.start(t);
  const env = { HOLDFAST_REDIS_URL: server.url };
  const dirs = [tempDir(t), tempDir(t)];
  const instances = await Promise.all(dirs.map((dir) => startInstance(t, dir, writeConfig(dir), env)));
  const won: string[] = [];
  await Promise.all(
    instances.map(async ({ router }, writer) => {
      for (let n = 1; n <= 20; ) {
        const config: any = await active(router);
        const leg = config.interface.vlan[LEG];
        leg.extra = { ...leg.extra, [`writer${writer}`]: n };
        const { status, body } = await post(router, config);
        if (status === 200) {
          won.push(config.ncid);
          n += 1;
        } else t.deepEqual(body.errors, ['ncid not match']);
      }
    }),
  );
  t.is(new Set(won).size, 40);
  for (const { router } of instances) {
    const { extra } = (await active(router)).interface.vlan[LEG] as any;
    t.deepEqual(extra, { ...extra, writer0: 20, writer1: 20 });
  }
});
