/** The reconciler beside a daemon with the manners of the field, over real HTTP and a real Redis. */
import test, { type ExecutionContext } from 'ava';
import { exampleLegs } from '../../../../src/plugins/reconciler/options.ts';
import { routerRemote } from '../../../../src/plugins/router/index.ts';
import { RedisServer, until } from '../../../support/redis.ts';
import { rig as reconcilerRig } from '../../reconciler/rig.ts';
import { type Config, Daemon } from './daemon.ts';

const MAIN = 'fd5e:21aa:90c4:10::1/64';
const LISTED = ['eth1.10', 'eth1.20', 'eth1.40', 'eth1.50', 'eth1.70'];
const lacks = (intf: string) => (config: Config) => {
  delete config.interface.vlan[intf].ipv6;
};
const isWhole = (daemon: Daemon) => () => LISTED.every((intf) => daemon.leg(intf).ipv6);

/** A daemon, its Redis, and a runtime with the reconciler beside them; every leg is whole. */
async function beside(
  t: ExecutionContext<any>,
  options: Parameters<typeof reconcilerRig>[1] = {},
  remote: Partial<NonNullable<Parameters<typeof routerRemote>[0]>> = {},
) {
  const daemon = await Daemon.start(t);
  const redis = await RedisServer.start(t);
  const publisher = redis.client(t);
  // Who publishes while Redis is away is not heard later either.
  daemon.publish = (channel, payload) =>
    publisher.status === 'ready' && publisher.publish(channel, payload).catch(() => {});
  const router = routerRemote({
    url: daemon.url,
    redisUrl: redis.url,
    channelPrefix: 'firerouter.',
    pingMs: 500,
    ...remote,
  });
  const rig = await reconcilerRig(t, { legs: exampleLegs, adopted: true, ...options }, router);
  const subscribed = () => rig.runtime.health().router as any;
  await until('subscribed', () => subscribed().events.subscribed);
  await rig.quiet();
  return { daemon, redis, ...rig, events: () => subscribed().events };
}

/** However it went, the log runs through the machines again with the same decisions. */
async function cleanly(t: ExecutionContext<any>, { quiet, divergence }: Awaited<ReturnType<typeof beside>>) {
  await quiet();
  t.is(divergence(), undefined);
}

test.serial(
  '[R24,R26] a save that drops an address is healed, and nothing but ipv6 and reqId differs',
  async (t) => {
    const all = await beside(t);
    const { daemon, leg } = all;
    await daemon.appSaves(lacks('eth1.10'));
    const { reqId: _, ...read } = daemon.config;
    await until('Main has its address', isWhole(daemon));
    await all.quiet();
    read.interface.vlan['eth1.10'].ipv6 = [MAIN];
    t.deepEqual(daemon.posts, [read]);
    t.is(daemon.bypassed, 0);
    t.is(leg('eth1.10').context.healed, 1);
    await cleanly(t, all);
  },
);

test.serial(
  '[R26] a rename and the rename back, each a whole save without the address, are both healed',
  async (t) => {
    const all = await beside(t);
    for (const name of ['Main, renamed', 'Main']) {
      await all.daemon.appSaves((config) => {
        lacks('eth1.10')(config);
        config.interface.vlan['eth1.10'].meta.name = name;
      });
      await until(`healed after the rename to ${name}`, isWhole(all.daemon));
    }
    await cleanly(t, all);
  },
);

test.serial('[R24] a daemon that saves long after its event is found out by the second look', async (t) => {
  const all = await beside(t);
  const { daemon, leg } = all;
  daemon.beforeSave = async () => {
    daemon.beforeSave = undefined;
    await until('Main is read, and seems whole', () => leg('eth1.10').state === 'checking');
  };
  await daemon.appSaves(lacks('eth1.10'));
  await until('Main has its address', isWhole(daemon));
  await cleanly(t, all);
});

test.serial('[R24] the doubled events of a failed apply lead to readings, and to no write', async (t) => {
  const all = await beside(t);
  const { daemon } = all;
  daemon.reads = 0;
  await daemon.failedApply();
  await until('it was read', () => daemon.reads > 0);
  await all.quiet();
  t.is(daemon.posts.length, 0);
  await cleanly(t, all);
});

test.serial('[R24] a save whose events are lost is found by the resync', async (t) => {
  const all = await beside(t, { resyncMs: 300 });
  const { daemon } = all;
  daemon.mute = true;
  for (const intf of ['eth1.10', 'eth1.70']) await daemon.appSaves(lacks(intf));
  await until('both have their address', isWhole(daemon));
  await cleanly(t, all);
});

test.serial(
  '[R24] saves while Redis is down are healed at its return, by nothing but the reconnect',
  async (t) => {
    const all = await beside(t);
    const { daemon, redis, events } = all;
    await redis.down();
    await until('lost', () => !events().subscribed);
    for (const intf of ['eth1.20', 'eth1.50']) await daemon.appSaves(lacks(intf));
    await all.quiet();
    t.false(isWhole(daemon)(), 'nobody was told');
    await redis.up();
    await until('both have their address', isWhole(daemon));
    t.is(events().connects, 2);
    await cleanly(t, all);
  },
);

test.serial(
  '[R24] an address as text is an address, and one that is missing is added behind it',
  async (t) => {
    const all = await beside(t);
    const { daemon } = all;
    await daemon.appSaves((config) => {
      config.interface.vlan['eth1.10'].ipv6 = MAIN.toUpperCase();
      config.interface.vlan['eth1.20'].ipv6 = 'fd00::20/64';
    });
    await until('IoT has both', () => daemon.leg('eth1.20').ipv6.length === 2);
    await all.quiet();
    t.is(daemon.posts.length, 1);
    t.is(daemon.leg('eth1.10').ipv6, MAIN.toUpperCase());
    t.deepEqual(daemon.leg('eth1.20').ipv6, ['fd00::20/64', 'fd5e:21aa:90c4:20::1/64']);
    await cleanly(t, all);
  },
);

for (const slip of ['refusesButApplies', 'resetsButApplies', 'hangsButApplies'] as const) {
  test.serial(`[R25] a daemon that ${slip} is read, believed, and not written to again`, async (t) => {
    const all = await beside(t, {}, { writeTimeoutMs: 400 });
    const { daemon, leg } = all;
    daemon.slips.push(slip);
    await daemon.appSaves(lacks('eth1.10'));
    await until('Main is whole again', () => leg('eth1.10').context.healed === 1);
    await all.quiet();
    t.is(daemon.posts.length, 1);
    t.deepEqual(all.alerts, []);
    await cleanly(t, all);
  });
}

test.serial(
  '[R25] other writers win races, 500s and broken answers come, and in the end the leg is whole',
  async (t) => {
    const all = await beside(t);
    const { daemon } = all;
    daemon.mishaps.push('resetsMidAnswer', 'answersEmpty404', 'answers500', 'answersHtml');
    daemon.slips.push('applyFails');
    await daemon.appSaves(lacks('eth1.10'));
    await until('Main has its address', isWhole(daemon));
    t.deepEqual(daemon.mishaps, []);
    await cleanly(t, all);
  },
);

test.serial('[R24] a slow apply is waited for: one post, though events come meanwhile', async (t) => {
  const all = await beside(t);
  const { daemon } = all;
  daemon.applyMs = 400;
  await daemon.appSaves(lacks('eth1.10'));
  await until('it is posted', () => daemon.posts.length === 1);
  await daemon.publish('firerouter.iface_change_applied', '');
  await until('Main has its address', isWhole(daemon));
  await all.quiet();
  t.is(daemon.posts.length, 1);
  await cleanly(t, all);
});

test.serial("[R24] somebody's transaction is waited for, and never joined", async (t) => {
  const all = await beside(t);
  const { daemon, leg } = all;
  daemon.transaction = { transID: 'somebody', before: daemon.config };
  await daemon.appSaves(lacks('eth1.10'));
  await until('it waits', () => leg('eth1.10').state === 'waiting');
  t.is(daemon.leg('eth1.10').ipv6, undefined);
  daemon.transaction = undefined;
  await until('Main has its address', isWhole(daemon));
  t.true(daemon.posts.every((body) => !('transactionOp' in body) && !('reqId' in body)));
  await cleanly(t, all);
});

test.serial(
  '[R24] a daemon that is away and comes back is read again, and its legs are healed',
  async (t) => {
    const all = await beside(t, { maxTries: 3, resyncMs: 400 });
    const { daemon, alerts } = all;
    await daemon.stop();
    await daemon.appSaves(lacks('eth1.10'));
    await until('a person is told', () => alerts.length > 0);
    await daemon.listen();
    await until('Main has its address', isWhole(daemon));
    await cleanly(t, all);
  },
);
