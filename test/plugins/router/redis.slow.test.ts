import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import type { Redis } from 'ioredis';
import { routerChannels } from '../../../src/core/contracts/router.ts';
import { reconciler } from '../../../src/plugins/reconciler/index.ts';
import { RedisServer, until } from '../../support/redis.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { type Config, exampleConfig, Rig, type RigOptions } from './rig.ts';

const KEY = 'sysdb:networkConfig';
const HISTORY = 'history:networkConfig';
const LEG = 'eth1.30';

/** A router whose config is in Redis, with settings that fit a test. */
function startOn(t: ExecutionContext, server: RedisServer, rig: RigOptions = {}): Promise<Rig> {
  const options = { redisUrl: server.url, storeCheckMs: 50, retryMs: 100, ...rig.options };
  return Rig.start(t, { ...rig, options });
}

const stored = async (redis: Redis): Promise<Config> => JSON.parse((await redis.get(KEY)) ?? 'null');

interface Heard {
  readonly channel: string;
  readonly payload: Config;
  /** What the store held when the message came. */
  readonly found: string | undefined;
}

/** Listens as any program would: a plain client, every channel of a prefix. */
async function listen(t: ExecutionContext, server: RedisServer, prefix = 'router.'): Promise<Heard[]> {
  const heard: Heard[] = [];
  const [subscriber, reader] = [server.client(t), server.client(t)];
  subscriber.on('pmessage', (_pattern, channel, message) => {
    const index = heard.push({ channel, payload: message && JSON.parse(message), found: undefined }) - 1;
    void stored(reader).then((config) => {
      heard[index] = { ...(heard[index] as Heard), found: config?.ncid };
    });
  });
  await subscriber.psubscribe(`${prefix}*`);
  return heard;
}

const alertsOf = (lines: readonly string[], name: string) =>
  lines.filter((line) => line.includes(name)).length;

test.serial(
  '[R2,R13] the config is in database 1 and its history in database 0, as the documents say',
  async (t) => {
    const server = await RedisServer.start(t);
    const [one, zero] = [server.client(t, 1), server.client(t, 0)];
    const rig = await startOn(t, server);
    t.deepEqual(await stored(one), exampleConfig());
    t.is(await zero.exists(HISTORY), 0, 'the first config is nobody’s write');

    const posted = { ...(await rig.active()), transactionOp: 'append', transID: 't1', reqId: 'r1' };
    posted.interface.vlan[LEG].mtu = 1400;
    const before = Math.floor(Date.now() / 1000);
    const { status, body } = await rig.set(posted);
    const after = Math.floor(Date.now() / 1000);
    t.is(status, 200);
    t.deepEqual(await stored(one), await rig.active());
    t.is((await stored(one)).ncid, body.ncid, 'an append is applied and persisted');
    t.is(await zero.exists(KEY), 0);
    t.is(await one.exists(HISTORY), 0);

    const [member = '', score] = await zero.zrange(HISTORY, '0', '-1', 'WITHSCORES');
    t.true(Number(score) >= before && Number(score) <= after, 'the score is in seconds');
    const { transactionOp: _, transID: __, reqId: ___, ...config } = posted;
    t.deepEqual(JSON.parse(member), { ...config, ncid: body.ncid });
    t.deepEqual(Object.keys(JSON.parse(member)).toSorted(), Object.keys(config).toSorted());

    await rig.set({}, { transactionOp: 'revert', transID: 't1' });
    const { ncid: ____, ...reverted } = await stored(one);
    const { ncid: _____, ...first } = exampleConfig();
    t.deepEqual(reverted, first);
    t.is(await zero.zcard(HISTORY), 2);
    const [newest, older] = await rig.history();
    t.like(newest, { op: 'revert', changed: [`interface.vlan.${LEG}.mtu`] });
    t.like(older, { op: 'append', ncid: body.ncid });
    t.is(rig.divergence(), undefined);
  },
);

test.serial('[R6,R9] a transaction on Redis reverts after its window, also across a restart', async (t) => {
  const server = await RedisServer.start(t);
  const clock = new VirtualClock();
  const rig = await startOn(t, server, { clock, options: { storeCheckMs: 3_600_000 } });
  const config = await rig.active();
  config.interface.vlan[LEG].ipv4 = '10.77.31.1/24';
  await rig.set(config, { transactionOp: 'append', transID: 't1' });
  await rig.pass(60_000);
  await rig.runtime.stop('test');
  const again = await startOn(t, server, {
    clock,
    dataDir: rig.dataDir,
    options: { storeCheckMs: 3_600_000 },
  });
  t.is((await stored(server.client(t))).interface.vlan[LEG].ipv4, '10.77.31.1/24');
  await again.pass(60_000);
  t.is((await stored(server.client(t))).interface.vlan[LEG].ipv4, '10.77.30.1/24');
  t.deepEqual((await again.state(LEG)).ip4, ['10.77.30.1/24']);
  t.is(again.divergence(), undefined);
});

test.serial(
  '[R18] a plain subscriber hears each interface and then the change, in order and after the save',
  async (t) => {
    const server = await RedisServer.start(t);
    const rig = await startOn(t, server);
    const heard = await listen(t, server);
    const config = await rig.active();
    config.interface.vlan[LEG].ipv6 = ['fd00:30::1/64'];
    const { body } = await rig.set(config, { transactionOp: 'append', transID: 't1' });
    await until('both are heard', () => heard.length >= 2 && heard.every(({ found }) => found !== undefined));
    t.is(heard.at(-1)?.channel, 'router.change_applied');
    t.true(heard.slice(0, -1).every(({ channel }) => channel === 'router.iface_change_applied'));
    t.true(heard.some(({ payload }) => payload.intf === LEG));
    for (const { payload, found } of heard) {
      t.like(payload, { ncid: body.ncid, transID: 't1' });
      t.is(typeof payload.at, 'number');
      t.is(found, body.ncid, 'the store holds the new config when the message comes');
    }
    t.deepEqual(Object.keys(heard.at(-1)?.payload).toSorted(), ['at', 'ncid', 'transID']);

    await rig.set({}, { transactionOp: 'commit', transID: 't1' });
    const before = heard.length;
    const renamed = await rig.active();
    renamed.interface.vlan[LEG].meta.name = 'Visitors';
    await rig.set(renamed);
    await until('the rename is heard', () => heard.length > before);
    t.deepEqual(
      heard.slice(before).map(({ channel }) => channel),
      ['router.change_applied'],
      'a rename reapplies nothing; a commit says nothing',
    );
  },
);

test.serial('[R18] all five channels go out, in the order of the bus', async (t) => {
  const server = await RedisServer.start(t);
  const rig = await startOn(t, server);
  const heard = await listen(t, server);
  const { bus } = rig.runtime.services;
  for (const topic of Object.values(routerChannels)) bus.publish(topic, { intf: 'eth0', at: 1 });
  await until('all are heard', () => heard.length >= 5);
  t.deepEqual(
    heard.map(({ channel }) => channel),
    [
      'router.iface_change_applied',
      'router.change_applied',
      'router.wan_conn_changed',
      'router.wan_state_changed',
      'router.apc_change_applied',
    ],
  );
  t.deepEqual(heard[0]?.payload, { intf: 'eth0', at: 1 });
});

test.serial('[R18] the channels bear the configured prefix', async (t) => {
  const server = await RedisServer.start(t);
  const heard = await listen(t, server, 'firerouter.');
  const rig = await startOn(t, server, { options: { channelPrefix: 'firerouter.' } });
  await rig.set(await rig.active());
  await until('it is heard', () => heard.length > 0);
  t.is(heard.at(-1)?.channel, 'firerouter.change_applied');
});

test.serial(
  '[R3] of two routers that race on one Redis one wins each ncid, and nothing is lost',
  async (t) => {
    const server = await RedisServer.start(t);
    const rigs = [await startOn(t, server), await startOn(t, server)];
    const chain = new Map<string, string>();
    const counts = [0, 0];
    /** Each counts in a field of its own, so that a lost update would show. */
    const write = async (writer: number): Promise<void> => {
      const rig = rigs[writer] as Rig;
      while ((counts[writer] ?? 0) < 15) {
        const config = await rig.active();
        const leg = config.interface.vlan[LEG];
        leg.extra = { ...leg.extra, [`writer${writer}`]: (counts[writer] ?? 0) + 1 };
        const { status, body } = await rig.set(config);
        if (status === 200) {
          t.false(chain.has(config.ncid), 'no ncid is accepted twice');
          chain.set(config.ncid, body.ncid);
          counts[writer] = (counts[writer] ?? 0) + 1;
        } else t.is(body.code, 'HF_ROUTER_NCID_MISMATCH');
      }
    };
    await Promise.all([write(0), write(1)]);
    let ncid = exampleConfig().ncid;
    for (let i = 0; i < 30; i += 1) ncid = chain.get(ncid) ?? 'the chain is broken';
    const final = await stored(server.client(t));
    t.is(final.ncid, ncid);
    t.like(final.interface.vlan[LEG].extra, { writer0: 15, writer1: 15 });
    t.is(await server.client(t, 0).zcard(HISTORY), 30);
    for (const rig of rigs) {
      t.deepEqual(await rig.active(), final);
      await until('the kernel follows the store', async () => rig.actor().context.active.ncid === ncid);
      t.is(rig.divergence(), undefined);
    }
  },
);

test.serial(
  '[R36] a hand that edits the key is noticed without anybody asking, also where it leaves the ncid',
  async (t) => {
    const server = await RedisServer.start(t);
    const redis = server.client(t);
    const lines: string[] = [];
    const rig = await startOn(t, server, { lines });
    const heard = alertsOf(lines, 'router.store_changed');
    const edited = await stored(redis);
    edited.interface.vlan[LEG].ipv4 = '10.77.31.1/24';
    await redis.set(KEY, JSON.stringify(edited));
    await until('it is alerted', () => alertsOf(lines, 'router.store_changed') > heard);
    await until('the kernel stands by it', async () => (await rig.state(LEG)).ip4[0] === '10.77.31.1/24');
    t.deepEqual(await rig.active(), edited);

    t.is(rig.divergence(), undefined);
  },
);

test.serial(
  '[R36] a write on top of a hand edit that kept the ncid is refused, so that it is not overwritten unseen',
  async (t) => {
    const server = await RedisServer.start(t);
    const redis = server.client(t);
    const rig = await startOn(t, server, { options: { storeCheckMs: 3_600_000 } });
    const config = await rig.active();
    const edited = await stored(redis);
    edited.interface.vlan[LEG].mtu = 1280;
    await redis.set(KEY, JSON.stringify(edited));
    const { status, body } = await rig.set(config);
    t.deepEqual([status, body.errors], [400, ['ncid not match']]);
    t.is((await stored(redis)).interface.vlan[LEG].mtu, 1280);
    t.is((await rig.set(await rig.active())).status, 200, 'who has read it may write');
    t.is((await stored(redis)).interface.vlan[LEG].mtu, 1280);
    t.is(rig.divergence(), undefined);
  },
);

test.serial('[R4] control fields that another daemon left in the key are not served', async (t) => {
  const server = await RedisServer.start(t);
  const redis = server.client(t);
  await redis.set(KEY, JSON.stringify({ reqId: 'r1', ...exampleConfig() }));
  const rig = await startOn(t, server);
  t.deepEqual(await rig.active(), exampleConfig());
  t.is((await rig.set(await rig.active())).status, 200, 'what was read can be written');
  t.is((await stored(redis)).reqId, undefined);
});

test.serial(
  '[R24,R36] a leg that a hand edit of the store took an address from is healed at once',
  async (t) => {
    const server = await RedisServer.start(t);
    const redis = server.client(t);
    const rig = await startOn(t, server, { plugins: [reconciler()] });
    const address = (await rig.active()).interface.vlan['eth1.10'].ipv6[0];
    const edited = await stored(redis);
    delete edited.interface.vlan['eth1.10'].ipv6;
    edited.ncid = 'edited-by-hand';
    await redis.set(KEY, JSON.stringify(edited));
    await until('it is healed', async () => {
      const { ncid, interface: interfaces } = await stored(redis);
      return ncid !== 'edited-by-hand' && interfaces.vlan['eth1.10'].ipv6?.includes(address);
    });
    t.deepEqual((await rig.active()).interface.vlan['eth1.10'].ipv6, [address]);
  },
);

test.serial('[R36] a key that holds no config is alerted, changes nothing, and heals', async (t) => {
  const server = await RedisServer.start(t);
  const redis = server.client(t);
  const lines: string[] = [];
  const rig = await startOn(t, server, { lines });
  const good = await redis.get(KEY);
  await redis.set(KEY, '{"interface": {}');
  await until('it is alerted', () => alertsOf(lines, 'router.store_unreadable') > 0);
  const { status, body } = await rig.call('GET', '/v1/config/active');
  t.deepEqual([status, body.code], [500, 'HF_ROUTER_STORE']);
  t.is((await rig.set(exampleConfig())).status, 500);
  t.is(await redis.get(KEY), '{"interface": {}');
  await redis.set(KEY, good ?? '');
  t.is((await rig.set(await rig.active())).status, 200);
});

test.serial('[R2] a key that was deleted gets back what the log last knew to be active', async (t) => {
  const server = await RedisServer.start(t);
  const redis = server.client(t);
  const rig = await startOn(t, server);
  const config = await rig.active();
  config.interface.vlan[LEG].mtu = 1444;
  await rig.set(config);
  const kept = await rig.active();
  await redis.del(KEY);
  await until('it is back', async () => (await redis.exists(KEY)) === 1);
  t.deepEqual(await stored(redis), kept);
  t.is(rig.divergence(), undefined);
});

for (const lost of ['everything', 'the config alone'] as const) {
  test.serial(
    `[R2,R6] of a Redis that lost ${lost} while a transaction was pending, nothing uncommitted stays`,
    async (t) => {
      const server = await RedisServer.start(t);
      const redis = server.client(t);
      const clock = new VirtualClock();
      const rig = await startOn(t, server, { clock, options: { storeCheckMs: 3_600_000 } });
      const config = await rig.active();
      config.interface.vlan[LEG].ipv4 = '10.77.31.1/24';
      t.is((await rig.set(config, { transactionOp: 'append', transID: 't1' })).status, 200);
      await rig.runtime.stop('test');
      if (lost === 'everything') await redis.flushall();
      else await redis.del(KEY);
      const again = await startOn(t, server, {
        clock,
        dataDir: rig.dataDir,
        options: { storeCheckMs: 3_600_000 },
      });
      t.is((await stored(redis)).interface.vlan[LEG].ipv4, '10.77.30.1/24');
      t.deepEqual((await again.state(LEG)).ip4, ['10.77.30.1/24']);
      await again.pass(120_000);
      t.like(again.actor(), { value: { free: 'idle' } });
      t.like(again.actor().context.last, { outcome: 'reverted', transID: 't1' });
      t.is((await stored(redis)).interface.vlan[LEG].ipv4, '10.77.30.1/24');
      t.is(again.divergence(), undefined);
    },
  );
}

test.serial(
  '[R2] while Redis is down everything is answered 503 and nothing changes; when it is back, work goes on',
  async (t) => {
    const server = await RedisServer.start(t);
    const lines: string[] = [];
    const rig = await startOn(t, server, { lines });
    const config = await rig.active();
    await server.down();
    await until('it is noticed', () => alertsOf(lines, 'router.store_lost') > 0);
    for (const answer of [
      await rig.set(config),
      await rig.set(config, { transactionOp: 'append', transID: 't1' }),
      await rig.call('GET', '/v1/config/active'),
      await rig.call('GET', '/v1/config/history'),
      await rig.call('POST', '/v1/config/apply_current_config'),
    ])
      t.deepEqual([answer.status, answer.body.code], [503, 'HF_ROUTER_STORE_UNAVAILABLE']);
    const { ok, connected, url, reason }: any = rig.runtime.health().store;
    t.deepEqual([ok, connected, url], [false, false, `redis://127.0.0.1:${server.port}`]);
    t.is(typeof reason, 'string');

    // Somebody saves while we cannot see it.
    await server.up();
    const redis = server.client(t);
    const other = await stored(redis);
    t.deepEqual(other, config, 'nothing of the refused writes is there');
    other.ncid = 'written-by-another-router';
    other.interface.vlan[LEG].ipv4 = '10.77.31.1/24';
    await redis.set(KEY, JSON.stringify(other));
    await until('it is read again', () => rig.actor().context.active.ncid === other.ncid);
    await until('the kernel follows', async () => (await rig.state(LEG)).ip4[0] === '10.77.31.1/24');
    t.like(rig.runtime.health().store, { ok: true, connected: true });
    t.is((await rig.set(config)).body.errors[0], 'ncid not match', 'who read before must read again');
    t.is((await rig.set(await rig.active())).status, 200);
    t.is(rig.divergence(), undefined);
  },
);

test.serial('[R2] a router that starts before its Redis serves as soon as Redis is there', async (t) => {
  const server = await RedisServer.start(t);
  await server.down();
  const rig = await startOn(t, server);
  t.is((await rig.call('GET', '/v1/config/active')).status, 503);
  t.is((await rig.set(exampleConfig())).status, 503);
  await server.up();
  await until('it serves', async () => (await rig.call('GET', '/v1/config/active')).status === 200);
  await until('it decides', () => Object.values(rig.actor()?.value ?? {}).includes('idle'));
  t.is((await rig.set(await rig.active())).status, 200);
});

test.serial(
  '[R7] a write that a stopped Redis never answered is told by what the store holds when it answers again',
  async (t) => {
    const server = await RedisServer.start(t);
    const rig = await startOn(t, server, { options: { redisTimeoutMs: 300, storeCheckMs: 3_600_000 } });
    const config = await rig.active();
    config.interface.vlan[LEG].ipv4 = '10.77.31.1/24';
    server.pause();
    const early = await rig.set(config);
    t.is(early.body.code, 'HF_ROUTER_STORE_UNAVAILABLE', 'a read without answer: nothing was set going');
    server.resume();
    await until('it answers', async () => (await rig.call('GET', '/v1/config/active')).status === 200);

    // The reads of the request go through, and Redis stops before the save.
    let reads = 0;
    const paused = new Promise<void>((resolve) => {
      server.watch(t, (command) => {
        if (!command.includes('"eval"')) return;
        reads += 1;
        if (reads !== 2) return;
        server.pause();
        resolve();
      });
    });
    await until('Redis tells what it is asked', () => server.isWatched);
    const answer = rig.set(config);
    await paused;
    await sleep(700);
    server.resume();
    const { status } = await answer;
    await rig.settled();
    const standing = await stored(server.client(t));
    const wanted = status === 200 ? '10.77.31.1/24' : '10.77.30.1/24';
    t.log(`answered ${status}`);
    t.is(standing.interface.vlan[LEG].ipv4, wanted);
    t.deepEqual((await rig.state(LEG)).ip4, [wanted]);
    t.is(rig.actor().context.active.ncid, standing.ncid);
    t.is((await rig.set(await rig.active())).status, 200);
    t.is(rig.divergence(), undefined);
  },
);

test.serial(
  '[R30] a router pointed at another database says what is where, and stores nothing',
  async (t) => {
    const server = await RedisServer.start(t);
    await server.client(t, 1).set(KEY, JSON.stringify(exampleConfig()));
    const error = await t.throwsAsync(startOn(t, server, { options: { redisUrl: `${server.url}/0` } }));
    t.regex(String(error?.message), /key absent in database 0, present in database 1/);
    t.is(await server.client(t, 0).exists(KEY), 0);
  },
);

test.serial(
  '[R32] neither a secret of the config nor the password of Redis reaches a line or a record',
  async (t) => {
    const password = 'CANARY-redis-password';
    const server = await RedisServer.start(t, { password });
    const lines: string[] = [];
    const rig = await startOn(t, server, { lines });
    const config = await rig.active();
    config.interface.wireguard = { wg0: { privateKey: 'CANARY-private-key', listenPort: 51820 } };
    config.extra = { note: 'CANARY-note' };
    t.is((await rig.set(config)).status, 200);
    await server.down();
    const pages = [JSON.stringify((await rig.set(config)).body)];
    pages.push(JSON.stringify(rig.runtime.health()));
    await server.up();
    await until('it is back', async () => (await rig.call('GET', '/v1/config/active')).status === 200);
    // Redis refuses the write itself, and its error carries the arguments of the command.
    await server.client(t, 0).del(HISTORY);
    await server.client(t, 0).set(HISTORY, 'no sorted set');
    const refused = await rig.set(await rig.active());
    t.deepEqual([refused.status, refused.body.code], [503, 'HF_ROUTER_STORE_UNAVAILABLE']);
    t.regex(refused.body.errors[0], /key history:networkConfig holds a string/);
    pages.push(JSON.stringify(refused.body), JSON.stringify(rig.runtime.health()));
    await rig.settled();
    for (const text of [...lines, ...pages, JSON.stringify(await rig.records())]) t.notRegex(text, /CANARY/);
    t.true(lines.some((line) => line.includes('router.store_lost')));
  },
);
