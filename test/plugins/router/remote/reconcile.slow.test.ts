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
    ...remote,
  });
  const rig = await reconcilerRig(t, { legs: exampleLegs, adopted: true, ...options }, router);
  const shown = () => rig.runtime.health().router as any;
  await until('subscribed', () => shown().events.subscribed);
  await rig.quiet();
  return { daemon, redis, ...rig, shown, events: () => shown().events };
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

/** Patience of minutes, so that nothing but what is tested ends an outage. */
const PATIENT = {
  backOffMs: 60_000,
  backOffLimitMs: 60_000,
  resyncMs: 600_000,
  linkSettleMs: 10_000,
} as const;

test.serial(
  '[R24,R25] a daemon that is away is told of once, and its first answer has every leg looked at',
  async (t) => {
    const remote = { lookMs: 100, probeMs: 100, alertAfterMs: 400 };
    const all = await beside(t, { ...PATIENT, maxTries: 1 }, remote);
    const { daemon, alerts, health } = all;
    await daemon.stop();
    await daemon.appSaves((config) => {
      for (const intf of LISTED) delete config.interface.vlan[intf].ipv6;
    });
    // Of the events a person may be told, too: on a busy machine Redis is slow.
    const isTold = (name: string) => alerts.some((alert) => alert.name === name);
    await until('a person is told', () => isTold('router.api.unreachable'));
    await until('every leg shows it', () =>
      health().legs.every(({ state, since }: any) => state === 'unreachable' && since !== undefined),
    );
    t.like(health(), { ok: false, whole: 0 });
    await daemon.listen();
    await until('every leg has its address', isWhole(daemon));
    await until('its end is told', () => isTold('router.api.answers_again'));
    t.is(alerts.filter(({ name }) => name === 'router.api.unreachable').length, 1);
    t.is(alerts.filter(({ severity }) => severity === 'critical').length, 1);
    await cleanly(t, all);
  },
);

test.serial(
  '[R25] a daemon that refuses six times is not given up, and has the address soon after',
  async (t) => {
    const all = await beside(t, { backOffMs: 100, backOffLimitMs: 60_000 });
    const { daemon, alerts } = all;
    daemon.slips.push(...Array.from({ length: 6 }, () => 'applyFails' as const));
    await daemon.appSaves(lacks('eth1.10'));
    await until('Main has its address', isWhole(daemon));
    t.is(daemon.posts.length, 7, 'the events of a failed apply hurry no write');
    t.deepEqual(alerts, []);
    await cleanly(t, all);
  },
);

test.serial('[R25] a restarted daemon publishes nothing, and every leg is looked at', async (t) => {
  const all = await beside(t, PATIENT, { lookMs: 60_000, probeMs: 100 });
  const { daemon, leg, shown } = all;
  daemon.mute = true;
  await until('a connection is held', () => daemon.idle > 0);
  await daemon.stop();
  await daemon.appSaves(lacks('eth1.10'));
  await until('its end is noticed', () => shown().unreachable);
  await daemon.listen();
  await until('Main has its address', isWhole(daemon));
  await until('it was read again', () => leg('eth1.10').context.healed === 1);
  await cleanly(t, all);
});

test.serial('[R26] while the subscription is down a save is found by the next look', async (t) => {
  const all = await beside(t, PATIENT, { lookMs: 100 });
  const { daemon, redis, events } = all;
  await redis.down();
  await until('lost', () => !events().subscribed);
  await daemon.appSaves(lacks('eth1.10'));
  await until('Main has its address', isWhole(daemon));
  t.false(events().subscribed);
  await cleanly(t, all);
});

test.serial('[R24] a leg that the app has renamed to Guest is never written, and told', async (t) => {
  const all = await beside(t, PATIENT, { lookMs: 100 });
  const { daemon, leg, alerts, health } = all;
  await daemon.appSaves((config) => {
    lacks('eth1.70')(config);
    config.interface.vlan['eth1.70'].meta.name = ' GUEST\u200b';
  });
  await until('it is refused', () => leg('eth1.70').state === 'refusedByName');
  await until('told', () => alerts.length > 0);
  t.like(alerts[0], { name: 'reconciler.leg.refused_by_name', severity: 'critical' });
  t.like(health(), { ok: false });
  await daemon.appSaves(lacks('eth1.10'));
  await until('Main has its address', () => daemon.leg('eth1.10').ipv6);
  await all.quiet();
  t.is(daemon.leg('eth1.70').ipv6, undefined);
  t.true(daemon.posts.every((body) => body.interface.vlan['eth1.70'].ipv6 === undefined));
  // A rename alone publishes nothing. A change right after an event counts as the one that was announced.
  daemon.mute = true;
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  await daemon.appSaves((config) => {
    config.interface.vlan['eth1.70'].meta.name = 'MainWireless';
  });
  await until('it has its address', isWhole(daemon));
  await cleanly(t, all);
});

test.serial(
  '[R26] an address that the kernel refused is configured, not applied: told, shown, and its end too',
  async (t) => {
    const all = await beside(t, { ...PATIENT, linkSettleMs: 200 });
    const { daemon, leg, alerts, health } = all;
    daemon.kernelFails = true;
    await daemon.appSaves(lacks('eth1.10'));
    await until('the config has it again', isWhole(daemon));
    await until('it is not applied', () => leg('eth1.10').state === 'notApplied');
    await until('told', () => alerts.length > 0);
    t.like(alerts[0], { name: 'reconciler.leg.not_applied', severity: 'critical' });
    t.like(health(), { ok: false, whole: 4, of: 5 });
    t.like(health().legs[0], { intf: 'eth1.10', state: 'configured, not applied', link: 'missing' });
    t.is(daemon.reapplies, 0, 'the remedy is a person');
    daemon.kernelFails = false;
    await fetch(`${daemon.url}/v1/config/apply_current_config`, { method: 'POST' });
    await all.quiet();
    t.like(health().legs[0], { link: 'missing' }, 'it skips what it believes to be applied');
    // What `holdfast drill app-save` does: a save of this leg without its address, which Holdfast adds again.
    await daemon.appSaves(lacks('eth1.10'));
    await until('its end is told', () => alerts.length > 1);
    t.like(alerts[1], { name: 'reconciler.leg.applied', severity: 'info' });
    t.regex(alerts[1]?.text ?? '', /is on the link/);
    await all.quiet();
    t.like(health(), { whole: 5, of: 5 });
    await cleanly(t, all);
  },
);

test.serial(
  '[R26] with the remedy reapply the config is applied again once for all legs, after a pending transaction',
  async (t) => {
    const options = { ...PATIENT, linkSettleMs: 200, remedy: 'reapply' } as const;
    const all = await beside(t, options);
    const { daemon, leg, health } = all;
    daemon.kernelFails = true;
    await daemon.appSaves((config) => {
      for (const intf of LISTED) delete config.interface.vlan[intf].ipv6;
    });
    await until('the config has them again', isWhole(daemon));
    daemon.transaction = { transID: 'somebody', before: daemon.config };
    await until('it is not applied', () => leg('eth1.10').state === 'notApplied');
    const state = () => String(all.runtime.services.actors.states('reconciler.reapply')[0]?.value);
    await until('it waits', () => state() === 'waiting');
    t.is(daemon.reapplies, 0);
    daemon.transaction = undefined;
    await until('applied once', () => state() === 'resting');
    daemon.kernelFails = false;
    await new Promise((resolve) => setTimeout(resolve, 500));
    t.is(daemon.reapplies, 1, 'not again within the hour, though it had no effect');
    t.is(health().whole, 0);
    await cleanly(t, all);
  },
);

test.serial('[R26] the remedy reapply helps beside a router that applies everything again', async (t) => {
  const all = await beside(t, { ...PATIENT, linkSettleMs: 200, remedy: 'reapply' } as const);
  const { daemon, alerts, health } = all;
  daemon.reappliesAll = true;
  daemon.kernelFails = true;
  await daemon.appSaves(lacks('eth1.10'));
  await until('the config has it again', isWhole(daemon));
  daemon.kernelFails = false;
  await until('it is applied', () => alerts.some(({ name }) => name === 'reconciler.leg.applied'));
  await all.quiet();
  t.is(daemon.reapplies, 1);
  t.like(health(), { whole: 5, of: 5 });
  await cleanly(t, all);
});

test.serial('[R26] of a router that does not serve a link nothing is said to be whole', async (t) => {
  const all = await beside(t, PATIENT);
  const { daemon, health } = all;
  daemon.servesInterfaces = false;
  await daemon.appSaves(lacks('eth1.10'));
  await until('the config has it again', isWhole(daemon));
  await all.quiet();
  await until('looked at', () => health().legs[0].linkReason);
  t.like(health().legs[0], {
    state: 'configured',
    link: 'unknown',
    linkReason: 'the router does not serve the state of this interface',
  });
  t.false('ok' in health());
  await cleanly(t, all);
});
