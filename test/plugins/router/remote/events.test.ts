/** The router's channels, from a real Redis to the bus. */
import { createServer, type Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { type AlertRaised, alertRaised } from '../../../../src/core/contracts/alerts.ts';
import { routerChannels, routerConnected } from '../../../../src/core/contracts/router.ts';
import { RedisServer, until } from '../../../support/redis.ts';
import { remote } from './rig.ts';

const NOBODY = 'http://127.0.0.1:9';

/** A runtime that hears a Redis, and keeps what it heard. */
async function listening(t: ExecutionContext<any>, options: { redisUrl?: string; [name: string]: unknown }) {
  const heard: { topic: string; payload: any }[] = [];
  const alerts: AlertRaised[] = [];
  let connected = 0;
  const rig = await remote(
    t,
    { url: NOBODY, channelPrefix: 'firerouter.', pingMs: 200, ...options },
    {
      heard({ bus }) {
        for (const topic of Object.values(routerChannels))
          bus.subscribe(topic, 'test', ({ payload }) => heard.push({ topic: topic.name, payload }));
        bus.subscribe(routerConnected, 'test', () => {
          connected += 1;
        });
        bus.subscribe(alertRaised, 'test', ({ payload }) => alerts.push(payload));
      },
    },
  );
  return { ...rig, heard, alerts, connected: () => connected };
}

test.serial(
  '[R18] every channel arrives by its documented name, whatever the prefix, stamped when received',
  async (t) => {
    const redis = await RedisServer.start(t);
    const { heard, connected, health } = await listening(t, { redisUrl: redis.url });
    await until('subscribed', () => health().events.subscribed);
    t.is(connected(), 1);
    const publisher = redis.client(t);
    const before = Date.now();
    for (const name of Object.keys(NAMES)) t.is(await publisher.publish(`firerouter.${name}`, ''), 1);
    await publisher.publish('router.change_applied', 'not ours');
    await publisher.publish('firerouter.iface_change_applied', '{"ncid":"n1","intf":"eth1.10","at":12}');
    await until('all are heard', () => heard.length === 6);
    t.deepEqual(
      heard.map(({ topic }) => topic),
      [...Object.values(NAMES), 'router.iface_change_applied'],
    );
    t.true(heard.every(({ payload }) => payload.at >= before && payload.at <= Date.now()));
    t.like(heard.at(-1), { payload: { ncid: 'n1', intf: 'eth1.10' } });
  },
);

const NAMES = {
  iface_change_applied: 'router.iface_change_applied',
  change_applied: 'router.change_applied',
  wan_conn_changed: 'router.wan_conn_changed',
  wan_state_changed: 'router.wan_state_changed',
  apc_change_applied: 'router.apc_change_applied',
};

test.serial(
  '[R18] a payload that is not understood is told once, and its event is heard all the same',
  async (t) => {
    const redis = await RedisServer.start(t);
    const { heard, health, lines, runtime } = await listening(t, { redisUrl: redis.url });
    await until('subscribed', () => health().events.subscribed);
    const publisher = redis.client(t);
    const payloads = [
      '{"ncid":',
      '[1]',
      '7',
      '{"ncid":7,"intf":"eth1.10"}',
      'x'.repeat(100_000),
      'wpa-secret',
    ];
    for (const payload of payloads) await publisher.publish('firerouter.iface_change_applied', payload);
    await publisher.publish('firerouter.wan_conn_changed', '{"active":true,"wans":[{"intf":"eth0"}]}');
    await until('all are heard', () => heard.length === payloads.length + 1);
    t.deepEqual(Object.keys(heard[3]!.payload).toSorted(), ['at', 'intf']);
    t.deepEqual(Object.keys(heard.at(-1)!.payload), ['at']);
    const told = lines.filter((line) => line.includes('router.payload_not_understood'));
    t.is(told.length, 1);
    t.notRegex(lines.join(''), /wpa-secret/);
    const metrics = await runtime.services.metrics.text();
    t.regex(metrics, /router_events_total\{channel="router.iface_change_applied",payload="bad"\} 6/);
    t.regex(metrics, /router_events_total\{channel="router.wan_conn_changed",payload="good"\} 1/);
  },
);

test.serial(
  '[R28] the subscription is acknowledged on /healthz and in the metrics, and so is its loss',
  async (t) => {
    const redis = await RedisServer.start(t);
    const { health, runtime, connected, alerts } = await listening(t, {
      redisUrl: redis.url,
      alertAfterMs: 300,
    });
    await until('subscribed', () => health().events.subscribed);
    t.regex(await runtime.services.metrics.text(), /router_events_subscribed 1/);
    await redis.down();
    await until('lost', () => !health().events.subscribed);
    t.like(health(), { ok: false });
    t.truthy(health().events.fault);
    t.regex(await runtime.services.metrics.text(), /router_events_subscribed 0/);
    await until('told', () => alerts.some(({ name }) => name === 'router.events.lost'));
    await redis.up();
    await until('subscribed again', () => health().events.subscribed);
    t.like(health(), { ok: true });
    t.is(connected(), 2, 'and everyone is told to read again');
    await until('told', () => alerts.some(({ name }) => name === 'router.events.heard_again'));
  },
);

test.serial('[R28] a Redis that falls silent is given up, and heard again when it answers', async (t) => {
  const redis = await RedisServer.start(t);
  const { health, connected } = await listening(t, { redisUrl: redis.url });
  await until('subscribed', () => health().events.subscribed);
  redis.pause();
  await until('given up', () => !health().events.subscribed);
  redis.resume();
  await until('subscribed again', () => health().events.subscribed);
  t.true(connected() >= 2);
});

test.serial(
  '[R28] a Redis that is down at start keeps nobody from starting, and is heard when it comes',
  async (t) => {
    const redis = await RedisServer.start(t);
    await redis.down();
    const { health, connected, heard } = await listening(t, { redisUrl: redis.url });
    t.false(health().events.subscribed);
    t.is(connected(), 0);
    await redis.up();
    await until('subscribed', () => health().events.subscribed);
    await redis.client(t).publish('firerouter.change_applied', '');
    await until('heard', () => heard.length === 1);
    t.is(connected(), 1);
  },
);

test.serial(
  '[R32] the password of a Redis is on no page and in no line, also when it is wrong',
  async (t) => {
    const redis = await RedisServer.start(t, { password: 'hunter2-hunter2' });
    const good = await listening(t, { redisUrl: redis.url });
    await until('subscribed', () => good.health().events.subscribed);
    const bad = await listening(t, { redisUrl: redis.url.replace('hunter2-', 'hunter3-') });
    await until('refused', () => /WRONGPASS|AUTH/i.test(bad.health().events.fault));
    t.false(bad.health().events.subscribed);
    t.notRegex(JSON.stringify([good.health(), bad.health()]) + good.lines + bad.lines, /hunter/);
  },
);

test.serial('[R24] without the URL of a Redis it says at start how often a save is looked for', async (t) => {
  const { lines, health } = await listening(t, {});
  t.true(lines.some((line) => line.includes('router.events_off') && line.includes('every 10 s')));
  t.like(health(), { events: { subscribed: false } });
});

test.serial('a stop ends the connection, and one that is being made too', async (t) => {
  const redis = await RedisServer.start(t);
  const { runtime, health } = await listening(t, { redisUrl: redis.url });
  await until('subscribed', () => health().events.subscribed);
  await runtime.stop('test');
  const admin = redis.client(t);
  const clients = async () => (await admin.client('LIST')) as string;
  await until('gone', async () => !(await clients()).includes('holdfast-router-events'));

  const held = new Set<Socket>();
  const mute = createServer((socket) => held.add(socket.on('error', () => {}).resume()));
  await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    for (const socket of held) socket.destroy();
    mute.close();
  });
  const { port } = mute.address() as { port: number };
  const second = await listening(t, { redisUrl: `redis://127.0.0.1:${port}` });
  await until('it connects', () => held.size > 0);
  await second.runtime.stop('test');
  await until('it has let go', () => [...held].every((socket) => socket.destroyed || socket.readableEnded));
  t.pass();
});
