import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { RedisServer, until } from '../../support/redis.ts';
import { Rig } from './rig.ts';

const LEG = 'eth1.30';

/** A way to Redis on which every answer is late by so much. */
async function lateBy(t: ExecutionContext, port: number): Promise<{ url: string; way: { ms: number } }> {
  const way = { ms: 0 };
  const sockets = new Set<Socket>();
  const proxy = createServer((client) => {
    const redis = connect(port, '127.0.0.1');
    for (const socket of [client, redis]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        client.destroy();
        redis.destroy();
      });
    }
    client.pipe(redis);
    // What comes later is never sent earlier, as on any connection.
    let sent: Promise<unknown> = Promise.resolve();
    redis.on('data', (part) => {
      sent = Promise.all([sent, sleep(way.ms)]).then(() => client.destroyed || client.write(part));
    });
  });
  t.teardown(() => {
    proxy.close();
    for (const socket of sockets) socket.destroy();
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const { port: own } = proxy.address() as { port: number };
  return { url: `redis://127.0.0.1:${own}`, way };
}

test.serial('[R2,R6] a slow Redis is waited for: writes and transactions end as they would', async (t) => {
  const server = await RedisServer.start(t);
  const { url, way } = await lateBy(t, server.port);
  const rig = await Rig.start(t, { options: { redisUrl: url, storeCheckMs: 100 } });
  way.ms = 150;
  const config = await rig.active();
  config.interface.vlan[LEG].ipv4 = '10.77.31.1/24';
  const saved = await rig.set(config);
  t.is(saved.status, 200);
  const next = { ...(await rig.active()), version: 2 };
  t.is((await rig.set(next, { transactionOp: 'append', transID: 't1' })).status, 200);
  t.is((await rig.set(next)).body.code, 'HF_ROUTER_TRANSACTION_PENDING');
  t.is((await rig.set({}, { transactionOp: 'commit', transID: 't1' })).status, 200);
  t.is((await rig.set(config)).body.code, 'HF_ROUTER_NCID_MISMATCH');
  t.is((await rig.active()).version, 2);
  t.is((await rig.history()).length, 2);
  t.is(rig.divergence(), undefined);
});

test.serial(
  '[R7] a Redis that is too slow answers nobody, and what it did counts once it answers',
  async (t) => {
    const server = await RedisServer.start(t);
    const { url, way } = await lateBy(t, server.port);
    const options = { redisUrl: url, storeCheckMs: 100, retryMs: 100, redisTimeoutMs: 300 };
    const rig = await Rig.start(t, { options });
    const config = await rig.active();
    config.interface.vlan[LEG].ipv4 = '10.77.31.1/24';
    way.ms = 800;
    t.is((await rig.call('GET', '/v1/config/active')).status, 503);
    t.is((await rig.set(config)).status, 503);
    way.ms = 0;
    await until(
      'it is served again',
      async () => (await rig.call('GET', '/v1/config/active')).status === 200,
    );
    const stored = async () => JSON.parse((await server.client(t, 1).get('sysdb:networkConfig')) ?? '');
    t.is((await stored()).ncid, config.ncid, 'what was refused was not written');
    const answer = await rig.set(config);
    t.is(answer.status, 200);
    t.deepEqual(await rig.active(), await stored());
    t.deepEqual((await rig.state(LEG)).ip4, ['10.77.31.1/24']);
    t.is(rig.divergence(), undefined);
  },
);
