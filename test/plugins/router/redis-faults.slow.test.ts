import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { RedisServer, until } from '../../support/redis.ts';
import { exampleConfig, Rig } from './rig.ts';

const LEG = 'eth1.30';
const FAULTS = 12;

test.serial(
  '[R2,R3,R7] Redis killed, stopped and stalled under two routers that save: one chain of writes, nothing acknowledged lost',
  async (t) => {
    t.timeout(240_000);
    const server = await RedisServer.start(t);
    const options = { redisUrl: server.url, storeCheckMs: 100, retryMs: 100, redisTimeoutMs: 300 };
    const rigs = [await Rig.start(t, { options }), await Rig.start(t, { options })];
    const acknowledged = new Map<string, string>();
    const answers: Record<string, number> = {};
    let isOver = false;
    t.teardown(() => {
      isOver = true;
    });
    const writers = rigs.map(async (rig, writer) => {
      for (let n = 1; !isOver; n += 1) {
        const read = await rig.call('GET', '/v1/config/active');
        if (read.status !== 200) {
          await sleep(20);
          continue;
        }
        read.body.interface.vlan[LEG].ipv4 = `10.77.${31 + writer}.${1 + (n % 200)}/24`;
        read.body.extra = { ...read.body.extra, [`writer${writer}`]: n };
        const { status, body } = await rig.set(read.body);
        const outcome = status === 200 ? 'saved' : (body.code as string);
        answers[outcome] = (answers[outcome] ?? 0) + 1;
        if (status !== 200) continue;
        t.false(acknowledged.has(read.body.ncid), 'no ncid is accepted twice');
        acknowledged.set(read.body.ncid, body.ncid);
      }
    });

    const another = async () => {
      const before = acknowledged.size;
      await until('another save is acknowledged', () => acknowledged.size > before);
    };
    for (let fault = 0; fault < FAULTS; fault += 1) {
      await another();
      await sleep(Math.random() * 250);
      if (fault % 3 === 0) {
        server.pause();
        await sleep(Math.random() * 900);
        server.resume();
      } else {
        await (fault % 3 === 1 ? server.kill() : server.down());
        await sleep(Math.random() * 300);
        await server.up();
      }
    }
    await another();
    isOver = true;
    await Promise.all(writers);
    t.log(JSON.stringify(answers));

    const redis = server.client(t, 0);
    const history = (await redis.zrange('history:networkConfig', '0', '-1')).map((text) => JSON.parse(text));
    const written = new Set(history.map(({ ncid }) => ncid));
    t.deepEqual(
      [...acknowledged.values()].filter((ncid) => !written.has(ncid)),
      [],
    );
    t.true(acknowledged.size > FAULTS);

    const stored = JSON.parse((await server.client(t, 1).get('sysdb:networkConfig')) ?? '');
    for (const rig of rigs) {
      await until('it decides', () => Object.values(rig.actor().value).includes('idle'));
      await until('it knows what stands', () => rig.actor().context.active.ncid === stored.ncid);
      const { ipv4 } = stored.interface.vlan[LEG];
      await until('the kernel stands there', async () => (await rig.state(LEG)).ip4[0] === ipv4);
      t.deepEqual(await rig.active(), stored);
      t.is(rig.divergence(), undefined);
    }
    t.not(stored.ncid, exampleConfig().ncid);
  },
);
