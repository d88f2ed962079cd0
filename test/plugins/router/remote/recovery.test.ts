/** What the adapter notices of a router that publishes nothing about it: outages, restarts, unheard saves. */
import test, { type ExecutionContext } from 'ava';
import { type AlertRaised, alertRaised } from '../../../../src/core/contracts/alerts.ts';
import { type RouterRecovered, routerApiRecovered } from '../../../../src/core/contracts/router.ts';
import { newCorrelation } from '../../../../src/core/kernel/clock.ts';
import { RedisServer, until } from '../../../support/redis.ts';
import { Daemon } from './daemon.ts';
import { remote } from './rig.ts';

/** An adapter beside a stand-in router, and what it published. */
async function beside(t: ExecutionContext<any>, options: object = {}) {
  const daemon = await Daemon.start(t);
  const recoveries: RouterRecovered[] = [];
  const alerts: AlertRaised[] = [];
  const rig = await remote(
    t,
    { url: daemon.url, channelPrefix: daemon.channelPrefix, lookMs: 100, probeMs: 50, ...options },
    {
      heard({ bus }) {
        bus.subscribe(routerApiRecovered, 'test', ({ payload }) => recoveries.push(payload));
        bus.subscribe(alertRaised, 'test', ({ payload }) => alerts.push(payload));
      },
    },
  );
  const drop = () =>
    daemon.appSaves((config) => {
      delete config.interface.vlan['eth1.10'].ipv6;
    });
  return { daemon, recoveries, alerts, drop, ...rig };
}

test.serial('[R25] an outage is noticed unasked, told once, and its end is told at once', async (t) => {
  const { daemon, recoveries, alerts, health } = await beside(t, { alertAfterMs: 300 });
  await daemon.stop();
  await until('the outage is noticed', () => health().unreachable);
  t.regex(health().unreachable.reason, /nothing listens there/);
  t.false(health().ok);
  await until('it is told', () => alerts.length > 0);
  t.like(alerts[0], { name: 'router.api.unreachable', severity: 'critical' });
  t.deepEqual(recoveries, []);
  await daemon.listen();
  await until('its end is told', () => alerts.length > 1);
  t.like(alerts[1], { name: 'router.api.answers_again', severity: 'info' });
  t.is(alerts.length, 2);
  t.is(recoveries[0]?.reason, 'answers again');
  t.true((recoveries[0]?.downMs ?? 0) >= 300);
  t.is(health().unreachable, undefined);
});

test.serial('[R25] an outage that is over in time raises no alert, and its end is published', async (t) => {
  const { daemon, recoveries, alerts, api } = await beside(t);
  daemon.mishaps.push('answers500');
  await t.throwsAsync(api.active(), { code: 'HF_ROUTER_UNREACHABLE' });
  await until('the end is published', () => recoveries.length > 0);
  t.is(recoveries[0]?.reason, 'answers again');
  t.deepEqual(alerts, []);
});

test.serial('[R25] a connection that the router closed is the sign of a restart', async (t) => {
  const { daemon, recoveries, api } = await beside(t, { lookMs: 60_000 });
  await api.active();
  daemon.mishaps.push('resetsAtOnce');
  await api.active();
  t.deepEqual(recoveries, [{ reason: 'restarted' }]);
});

test.serial(
  '[R25] a router that stops between two calls is missed at once, and its return too',
  async (t) => {
    const { daemon, recoveries, api, health } = await beside(t, { lookMs: 86_400_000 });
    await api.active();
    // More than one life: each start of the router is watched anew.
    for (const times of [1, 2]) {
      await until('a connection is held', () => daemon.idle > 0);
      await daemon.stop();
      await until('its end is noticed', () => health().unreachable);
      t.is(recoveries.length, times - 1);
      await daemon.listen();
      await until('its return is noticed', () => recoveries.length === times);
    }
    t.deepEqual(
      recoveries.map(({ reason }) => reason),
      ['answers again', 'answers again'],
    );
  },
);

test.serial(
  '[R25] a router that closes idle connections is read once for each, and counts as up',
  async (t) => {
    const { daemon, recoveries, api, health } = await beside(t, { lookMs: 86_400_000 });
    await api.active();
    await until('a connection is held', () => daemon.idle > 0);
    const { reads, connections } = daemon;
    daemon.closeIdle();
    await until('the config was read', () => daemon.reads > reads);
    await until('another connection is held', () => daemon.idle > 0);
    t.is(daemon.reads, reads + 1);
    t.true(daemon.connections > connections);
    t.is(health().unreachable, undefined);
    t.deepEqual(recoveries, []);
  },
);

test.serial('[R26] a save that nobody can be told of is found by the next look', async (t) => {
  const { daemon, recoveries, drop, api } = await beside(t);
  await api.active();
  daemon.mute = true;
  await drop();
  await until('it is noticed', () => recoveries.length > 0);
  t.deepEqual(recoveries, [{ reason: 'missed a change' }]);
});

test.serial(
  '[R26] a save that nobody was told of, soon after another event, is found by the next look',
  async (t) => {
    const redis = await RedisServer.start(t);
    const { daemon, recoveries, drop, api, health } = await beside(t, { redisUrl: redis.url });
    const publisher = redis.client(t);
    daemon.publish = (channel, payload) => publisher.publish(channel, payload);
    await until('subscribed', () => health().events.subscribed);
    await api.active();
    await drop();
    await until('it was heard', () => health().events.lastAt);
    daemon.mute = true;
    // Whoever follows the event looks again one second after it, and this save comes after that.
    await new Promise((resolve) => setTimeout(resolve, 1_050));
    t.deepEqual(recoveries, []);
    await drop();
    await until('it is noticed', () => recoveries.length > 0);
    // An event of a WAN has nobody look at the legs.
    const { received } = health().events;
    await publisher.publish(`${daemon.channelPrefix}wan_conn_changed`, '');
    await until('it was heard', () => health().events.received > received);
    await drop();
    await until('it is noticed, too', () => recoveries.length > 1);
    t.deepEqual(recoveries, [{ reason: 'missed a change' }, { reason: 'missed a change' }]);
  },
);

test.serial('[R26] a save that was heard, and one of our own, are no surprise', async (t) => {
  const redis = await RedisServer.start(t);
  const { daemon, recoveries, drop, api, health } = await beside(t, { redisUrl: redis.url });
  const publisher = redis.client(t);
  daemon.publish = (channel, payload) => publisher.publish(channel, payload);
  await until('subscribed', () => health().events.subscribed);
  await api.active();
  await drop();
  await api.active();
  const { reads } = daemon;
  await until('it has looked', () => daemon.reads > reads + 2);
  t.deepEqual(recoveries, []);
  daemon.mute = true;
  t.is((await api.set(await api.active(), newCorrelation())).kind, 'applied');
  const then = daemon.reads;
  await until('it has looked', () => daemon.reads > then + 2);
  t.deepEqual(recoveries, []);
});
