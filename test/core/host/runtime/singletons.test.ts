import type { ExecutionContext } from 'ava';
import test from 'ava';
import { z } from 'zod';
import { defineTopic } from '../../../../src/bus/topic.ts';
import { defineToken } from '../../../../src/core/contracts/token.ts';
import { resolveConfig } from '../../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../../src/core/host/logging/logger.ts';
import { postControl } from '../../../../src/core/host/operations/control-client.ts';
import { serveOperation } from '../../../../src/core/host/operations/serve.ts';
import { definePlugin, type Services } from '../../../../src/core/host/plugin/definition.ts';
import { createRuntime } from '../../../../src/core/host/runtime/runtime.ts';
import { recover } from '../../../../src/core/kernel/actors/recover.ts';
import { SqliteReader } from '../../../../src/core/kernel/log/sqlite-reader.ts';
import { door } from '../../../support/door.ts';
import { holdLog } from '../../../support/held-log.ts';
import { tempDir } from '../../../support/temp.ts';
import { MemoryCluster, startHost, type TestHost } from '../../../support/two-hosts.ts';
import { until } from '../../../support/until.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const BulbToken = defineToken<{ readonly start: number }>('test.bulb');
const tick = defineTopic('test.minute', z.object({}), 'A minute has passed.');

/** An effect as a handler saw it. */
interface Carried {
  readonly host: string;
  readonly type: string;
  readonly id: string;
  readonly token: string | undefined;
  readonly recovered: boolean;
}

/** What a test watches and changes of the plugins of all hosts. */
class Bench {
  readonly cluster = new MemoryCluster();
  readonly carried: Carried[] = [];
  /** Hosts on which the plugin cannot start. */
  readonly broken = new Set<string>();
  /** While set, effects hang until their signal is aborted. */
  hangs = false;
  /** While set, effects take until it is settled, if they are not interrupted before. */
  takes: Promise<void> | undefined;
  /** While set, the start of the second plugin waits for it. */
  holdStart: Promise<void> | undefined;
  /** When the schedule runs: in a test of real time never. */
  cron = '0 0 29 2 *';
  #starts = 0;

  /** Two plugins of one singleton, and one that uses what they provide while they are there. */
  plugins(host: string) {
    const { cluster, carried, broken } = this;
    const bench = this;
    const handler =
      (type: string) =>
      async (
        _params: unknown,
        {
          id,
          fencingToken: token,
          recovered,
          signal,
        }: { id: string; fencingToken?: string; recovered: boolean; signal: AbortSignal },
      ) => {
        carried.push({ host, type, id, token, recovered });
        if (!bench.hangs && !bench.takes) return;
        await new Promise<void>((resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason));
          void bench.takes?.then(resolve);
        });
      };
    const lamp = definePlugin({
      name: 'lamp',
      options: z.strictObject({}),
      singleton: 'lamps',
      provides: [BulbToken],
      start(services) {
        bench.#starts += 1;
        cluster.story.push(`${host} starts lamp`);
        return { services, start: bench.#starts };
      },
      register(context) {
        context.provide(BulbToken, ({ start }) => ({ start }));
        context.actor(door);
        context.route(tick, door, (_tick, { start }) => [
          { key: 'clock', event: { type: 'OPEN', by: `start ${start}` } },
        ]);
        context.effect('lamp.on', handler('lamp.on'), { onRecovery: 'retry' });
        context.effect('bell.ring', handler('bell.ring'), { onRecovery: 'fail' });
        context.schedule(bench.cron, tick);
        context.control((surface, { start }) =>
          serveOperation(surface, '/lamp/start', z.strictObject({}), () => ({ host, start })),
        );
        context.health('lamp', ({ start }) => ({ start }));
        context.onReady(() => void cluster.story.push(`${host} lamp is ready`));
        context.onStop((_started, reason) => void cluster.story.push(`${host} stops lamp: ${reason}`));
      },
    });
    const shade = definePlugin({
      name: 'shade',
      options: z.strictObject({}),
      singleton: 'lamps',
      requires: [BulbToken],
      async start({ get }) {
        const { start } = get(BulbToken);
        await bench.holdStart;
        if (broken.has(host)) throw new Error('no cloth');
        cluster.story.push(`${host} starts shade on ${start}`);
      },
      register(context) {
        context.onStop(() => void cluster.story.push(`${host} stops shade`));
      },
    });
    const wall = definePlugin({
      name: 'wall',
      options: z.strictObject({}),
      wants: [BulbToken],
      start: (services) => services,
      register(context) {
        context.health('wall', ({ find }) => ({ bulb: find(BulbToken)?.start ?? 'none' }));
      },
    });
    return [lamp(), shade(), wall()];
  }

  host(t: ExecutionContext, name: string, options: Parameters<typeof startHost>[4] = {}): Promise<TestHost> {
    return startHost(t, this.cluster, name, this.plugins(name), options);
  }

  async pair(t: ExecutionContext): Promise<readonly [TestHost, TestHost]> {
    this.cluster.deals = false;
    return [await this.host(t, 'a'), await this.host(t, 'b')];
  }
}

const open = ({ runtime }: TestHost, key = 'front') =>
  runtime.services.actors.send(door, key, { type: 'OPEN', by: 'ann' });
const stateOf = ({ runtime }: TestHost, key = 'front') => runtime.services.actors.get(door, key);
const askLamp = ({ dataDir }: TestHost) =>
  postControl(dataDir, '/lamp/start', {}, AbortSignal.timeout(30_000));
const pluginOf = ({ runtime }: TestHost, wanted: string) => {
  const line = runtime.bootReport().find((text) => text.includes(`${wanted} `));
  return line ?? '';
};

test('[C13] the plugins of a singleton start where its lease is, move with their actors, and come back', async (t) => {
  const bench = new Bench();
  const { cluster } = bench;
  const [a, b] = await bench.pair(t);
  t.deepEqual(cluster.story, []);
  const { actorTypes, machines } = a.member.singleton('lamps');
  t.deepEqual(machines, Object.fromEntries(actorTypes.map((type) => [type, 1])));
  t.throws(() => open(a), { code: 'HF_ACTOR_ELSEWHERE' });

  await cluster.move('lamps', 'a');
  t.deepEqual(cluster.story, ['a starts lamp', 'a starts shade on 1', 'a lamp is ready']);
  open(a);
  t.is(stateOf(a)?.context.opened, 1);
  t.throws(() => open(b), { code: 'HF_ACTOR_ELSEWHERE' });
  t.like(a.runtime.health(), { lamp: { start: 1 }, wall: { bulb: 1 } });
  t.like(b.runtime.health(), { wall: { bulb: 'none' } });
  t.is(b.runtime.health().lamp, undefined);
  t.regex(pluginOf(b, 'lamp'), /waits: it runs on a/);

  cluster.story.length = 0;
  await cluster.move('lamps', 'b');
  t.deepEqual(cluster.story, [
    'a stops shade',
    'a stops lamp: moved to b',
    'b starts lamp',
    'b starts shade on 2',
    'b lamp is ready',
  ]);
  t.is(stateOf(a), undefined);
  t.is(stateOf(b)?.context.opened, 1);
  open(b, 'back');
  t.like(a.runtime.health(), { wall: { bulb: 'none' } });
  t.like(b.runtime.health(), { lamp: { start: 2 }, wall: { bulb: 2 } });

  await cluster.move('lamps', 'a');
  t.like(a.runtime.health(), { lamp: { start: 3 }, wall: { bulb: 3 } });
  t.is(stateOf(a, 'back')?.context.opened, 1);
  t.is(stateOf(b, 'back'), undefined);
});

test('[C13] effects of a singleton wait until their record is on the stream, and carry the fencing token', async (t) => {
  const bench = new Bench();
  const [a] = await bench.pair(t);
  await bench.cluster.move('lamps', 'a');
  const letThrough = a.member.holdMirror();
  const { durable } = open(a);
  await durable();
  await a.runtime.services.log.whenDurable(a.runtime.services.log.lastSeq());
  t.deepEqual(bench.carried, []);
  letThrough();
  await until('the effect ran', () => bench.carried.length > 0);
  t.like(bench.carried, [{ host: 'a', type: 'lamp.on', token: '1:1' }]);
});

test('[C13] an effect whose lease is over does not run; it does when the lease is renewed', async (t) => {
  const clock = new VirtualClock();
  const bench = new Bench();
  bench.cluster.deals = false;
  const a = await bench.host(t, 'a', { clock });
  await clock.passUntil(bench.cluster.move('lamps', 'a'), 1);
  const lease = bench.cluster.lease('lamps');
  t.truthy(lease);
  if (!lease) return;
  lease.over = true;
  await clock.passUntil(open(a).durable(), 1);
  await clock.advance(900);
  t.deepEqual(bench.carried, []);
  lease.over = false;
  for (let turns = 0; turns < 100 && bench.carried.length === 0; turns += 1) await clock.advance(1);
  t.like(bench.carried, [{ host: 'a', type: 'lamp.on', token: '1:1' }]);
});

test('[C13] a lease that runs out at the last moment before an effect keeps it from running', async (t) => {
  const bench = new Bench();
  const [a] = await bench.pair(t);
  await bench.cluster.move('lamps', 'a');
  const lease = bench.cluster.lease('lamps');
  t.truthy(lease);
  let looks = 0;
  if (lease) lease.deadline = () => (++looks > 1 ? 0 : Number.POSITIVE_INFINITY);
  open(a);
  await until('the lease was looked at twice', () => looks === 2);
  await a.member.singleton('lamps').end('the lease ran out');
  t.deepEqual(bench.carried, []);
});

test('[C13] a host whose log takes nothing comes to an end with work that it has just begun', async (t) => {
  const bench = new Bench();
  const [a, b] = await bench.pair(t);
  await bench.cluster.move('lamps', 'a');
  open(a);
  const goOn = holdLog(t, b.dataDir);
  const moved = bench.cluster.move('lamps', 'b');
  await until('it has taken the actors up', () => b.runtime.services.actors.actsHere(door));
  await b.member.singleton('lamps').end('its log takes nothing');
  await t.throwsAsync(moved, { code: 'HF_PLUGIN_INTERRUPTED' });
  t.false(b.runtime.services.actors.actsHere(door));
  goOn();
  await b.runtime.services.log.whenDurable(b.runtime.services.log.lastSeq());
  await bench.cluster.move('lamps', 'b');
  t.is(stateOf(b)?.context.opened, 1);
});

/** How many outcomes of effects a host has recorded; that the door closed after its time is none. */
const outcomesOn = async ({ runtime: { services } }: TestHost) => {
  const records = await Array.fromAsync(services.log.read({ actor: 'test.door/front' }));
  return records.filter(({ outcome, event }) => outcome !== undefined && event.type.startsWith('effect.'))
    .length;
};

test('[C13] a lease lost amid an effect interrupts it, and the next holder carries it out under the same id', async (t) => {
  const bench = new Bench();
  const [a, b] = await bench.pair(t);
  const { cluster } = bench;
  await cluster.move('lamps', 'a');
  bench.hangs = true;
  const { record } = open(a);
  await until('the effect runs', () => bench.carried.length === 1);
  await a.runtime.services.log.whenDurable(a.runtime.services.log.lastSeq());
  const old = a.member.singleton('lamps');
  bench.hangs = false;
  await cluster.give('lamps', 'b');
  await until('the effect ran again', () => bench.carried.length === 2);
  const id = `a:${record?.seq}.0`;
  t.like(bench.carried[1], { host: 'b', type: 'lamp.on', id, token: '1:2', recovered: true });
  await old.end('the lease ran out');
  t.is(await outcomesOn(a), 0, 'the first host recorded no outcome');
  await until(
    'the second host recorded it',
    () => Object.keys(b.runtime.services.actors.snapshot('test.door/front')?.effects ?? {}).length === 0,
  );
});

test('[C13] an effect under way comes to its end before its singleton moves: it runs once, with its outcome where it ran', async (t) => {
  const bench = new Bench();
  const [a, b] = await bench.pair(t);
  const { cluster } = bench;
  await cluster.move('lamps', 'a');
  const done = Promise.withResolvers<void>();
  bench.takes = done.promise;
  open(a);
  await until('the effect runs', () => bench.carried.length === 1);
  const moved = cluster.move('lamps', 'b', 600_000);
  await until('its commands are refused', async () => (await askLamp(a)).status === 409);
  t.is(cluster.holders.get('lamps')?.member.host, 'a');
  done.resolve();
  await moved;
  t.is(await outcomesOn(a), 1);
  t.deepEqual(Object.keys(b.runtime.services.actors.snapshot('test.door/front')?.effects ?? {}), []);
  t.like(bench.carried, [{ host: 'a', type: 'lamp.on', token: '1:1' }]);
});

test('[C13] what is requested while a singleton is about to move is left to the next holder', async (t) => {
  const bench = new Bench();
  const [a] = await bench.pair(t);
  const { cluster } = bench;
  await cluster.move('lamps', 'a');
  const done = Promise.withResolvers<void>();
  bench.takes = done.promise;
  open(a);
  await until('the effect runs', () => bench.carried.length === 1);
  const moved = cluster.move('lamps', 'b', 600_000);
  const { record } = open(a, 'back');
  done.resolve();
  await moved;
  await until('the next holder carried it out', () => bench.carried.length === 2);
  t.like(bench.carried[1], { host: 'b', id: `a:${record?.seq}.0`, token: '1:2', recovered: true });
});

test('[C13] a lease that is lost while a singleton is about to move interrupts what is under way', async (t) => {
  const bench = new Bench();
  const [a] = await bench.pair(t);
  const { cluster } = bench;
  await cluster.move('lamps', 'a');
  bench.hangs = true;
  open(a);
  await until('the effect runs', () => bench.carried.length === 1);
  const old = a.member.singleton('lamps');
  const moved = cluster.move('lamps', 'b', 600_000);
  await old.end('the lease ran out');
  t.is(await outcomesOn(a), 0);
  bench.hangs = false;
  await moved;
  await until('the next holder carried it out', () => bench.carried.length === 2);
});

test('[C13] a stop of the runtime lets the effects of its singletons come to their end', async (t) => {
  const clock = new VirtualClock();
  const bench = new Bench();
  bench.cluster.deals = false;
  const dataDir = tempDir(t);
  const a = await bench.host(t, 'a', { clock, dataDir });
  await clock.passUntil(bench.cluster.move('lamps', 'a'), 1);
  const done = Promise.withResolvers<void>();
  bench.takes = done.promise;
  await clock.passUntil(open(a).durable(), 1);
  for (let turns = 0; turns < 100 && bench.carried.length === 0; turns += 1) await clock.advance(1);
  const stopped = a.runtime.stop('SIGTERM');
  await clock.advance(4_000);
  done.resolve();
  t.deepEqual(await clock.passUntil(stopped), []);
  const reader = new SqliteReader(dataDir);
  t.teardown(() => reader.close());
  const { states } = recover(reader);
  t.deepEqual(Object.keys(states.get('test.door/front')?.effects ?? {}), []);
  t.is(bench.carried.length, 1);
});

test('[C13] a singleton that cannot begin leaves nothing running, and can begin later', async (t) => {
  const bench = new Bench();
  const [a, b] = await bench.pair(t);
  const { cluster } = bench;
  bench.broken.add('a');
  await t.throwsAsync(cluster.move('lamps', 'a'), { code: 'HF_PLUGIN_FAILED', message: /no cloth/ });
  t.deepEqual(cluster.story, ['a starts lamp', 'a stops lamp: it did not begin']);
  t.throws(() => open(a), { code: 'HF_ACTOR_ELSEWHERE' });
  t.regex(pluginOf(a, 'shade'), /failed.*no cloth/);
  await cluster.move('lamps', 'b');
  t.is(pluginOf(b, 'shade').includes('failed'), false);
  bench.broken.clear();
  await cluster.move('lamps', 'a');
  open(a);
  t.regex(pluginOf(a, 'shade'), /^.*shade \d+ ms/);
});

test('[C13] a singleton that is to end while it begins does end', async (t) => {
  const bench = new Bench();
  const [a] = await bench.pair(t);
  const { cluster } = bench;
  const held = Promise.withResolvers<void>();
  bench.holdStart = held.promise;
  const moved = cluster.move('lamps', 'a');
  await until('it begins', () => cluster.story.length > 0);
  const ended = a.member.singleton('lamps').end('the lease ran out');
  held.resolve();
  await t.throwsAsync(moved, { code: 'HF_PLUGIN_INTERRUPTED' });
  await ended;
  t.is(cluster.story.at(-1)?.startsWith('a stops lamp'), true);
  t.throws(() => open(a), { code: 'HF_ACTOR_ELSEWHERE' });
});

test('[C13] a host that is cut off, or whose work ended though nobody else has it yet, names no holder', async (t) => {
  const bench = new Bench();
  const [a, b] = await bench.pair(t);
  await bench.cluster.move('lamps', 'a');
  const unknown = {
    status: 409,
    body: { code: 'HF_PLUGIN_ELSEWHERE', details: { where: 'which host runs it is unknown here now' } },
  };
  b.member.isCut = true;
  t.like(await askLamp(b), unknown);
  t.regex(pluginOf(b, 'lamp'), /waits: which host runs it is unknown here now/);
  b.member.isCut = false;
  t.like(await askLamp(b), { status: 409, body: { details: { where: 'it runs on a' } } });
  await a.member.singleton('lamps').end('the lease ran out');
  t.is(a.member.holderOf('lamps'), 'a');
  t.like(await askLamp(a), unknown);
});

test('[C13] a command on the wrong host is told the right one, and works again where the singleton is', async (t) => {
  const bench = new Bench();
  const [a, b] = await bench.pair(t);
  await bench.cluster.move('lamps', 'a');
  t.deepEqual(await askLamp(a), { status: 200, body: { host: 'a', start: 1 } });
  t.like(await askLamp(b), {
    status: 409,
    body: { code: 'HF_PLUGIN_ELSEWHERE', details: { what: 'Plugin lamp', where: 'it runs on a' } },
  });
  await bench.cluster.move('lamps', 'b');
  t.deepEqual(await askLamp(b), { status: 200, body: { host: 'b', start: 2 } });
  t.like(await askLamp(a), { status: 409 });
  await bench.cluster.move('lamps', 'a');
  t.deepEqual(await askLamp(a), { status: 200, body: { host: 'a', start: 3 } });
});

test('[C13] schedules run where the singleton is, and timers go on there', async (t) => {
  const clock = new VirtualClock(Date.UTC(2026, 0, 1, 12, 0, 30));
  const bench = new Bench();
  bench.cron = '* * * * *';
  const { cluster } = bench;
  cluster.deals = false;
  const a = await bench.host(t, 'a', { clock });
  const b = await bench.host(t, 'b', { clock });
  await clock.passUntil(cluster.move('lamps', 'a'), 1);
  await clock.advance(30_000);
  t.like(stateOf(a, 'clock'), { value: 'open', context: { by: 'start 1' } });
  await clock.passUntil(cluster.move('lamps', 'b'), 1);
  t.is(stateOf(b, 'clock')?.value, 'open');
  await clock.advance(2_000);
  t.is(stateOf(b, 'clock')?.value, 'closed', 'the timer ran on');
  await clock.advance(60_000);
  t.like(stateOf(b, 'clock'), { context: { opened: 2, by: 'start 2' } });
});

test('[C13] a stop ends the singletons before their leases are given back', async (t) => {
  const bench = new Bench();
  const a = await bench.host(t, 'a');
  await until('it runs', () => bench.cluster.story.includes('a lamp is ready'));
  open(a);
  bench.cluster.story.length = 0;
  t.deepEqual(await a.runtime.stop('SIGTERM'), []);
  t.deepEqual(bench.cluster.story, ['a stops shade', 'a stops lamp: SIGTERM', 'a released lamps']);
  const b = await bench.host(t, 'b');
  await until('the next host goes on', () => stateOf(b)?.context.opened === 1);
});

test('[C13] a host that restarts goes on from its own log', async (t) => {
  const bench = new Bench();
  const dataDir = tempDir(t);
  const first = await bench.host(t, 'a', { dataDir });
  await until('it runs', () => bench.cluster.story.includes('a lamp is ready'));
  open(first);
  await first.runtime.stop('SIGTERM');
  bench.cluster.story.length = 0;
  const again = await bench.host(t, 'a', { dataDir });
  await until('it runs again', () => bench.cluster.story.includes('a lamp is ready'));
  t.is(stateOf(again)?.context.opened, 1);
});

test('[C13] without a cluster the plugins of a singleton start like any other, and nothing waits', async (t) => {
  const bench = new Bench();
  const runtime = createRuntime({
    plugins: resolveConfig({ plugins: bench.plugins('alone') }).plugins,
    dataDir: tempDir(t),
    logger: createLogger({ level: 'silent' }),
  });
  t.teardown(() => runtime.stop('test over'));
  await runtime.start();
  t.deepEqual(bench.cluster.story, ['alone starts lamp', 'alone starts shade on 1', 'alone lamp is ready']);
  runtime.services.actors.send(door, 'front', { type: 'OPEN', by: 'ann' });
  await until('the effect ran', () => bench.carried.length === 1);
  t.like(bench.carried, [{ host: 'alone', token: undefined }]);
});

test('[C13] a singleton that belongs to its host runs on every host', async (t) => {
  const bench = new Bench();
  const fixed = (host: string) =>
    definePlugin({
      name: 'fixed',
      options: z.strictObject({}),
      singleton: 'fixed',
      hostBound: true,
      start: (services: Services) => services,
      register: (context) =>
        void context.onReady(() => void bench.cluster.story.push(`${host} fixed is ready`)),
    })();
  for (const host of ['a', 'b']) {
    const { member } = await startHost(t, bench.cluster, host, [fixed(host)]);
    t.deepEqual(member.competesFor, []);
  }
  t.deepEqual(bench.cluster.story, ['a fixed is ready', 'b fixed is ready']);
});

test('[C13] a part of a plugin can be a singleton while the plugin serves on every host', async (t) => {
  const clock = new VirtualClock(Date.UTC(2026, 0, 1, 12, 0, 30));
  const cluster = new MemoryCluster();
  cluster.deals = false;
  const broken = new Set<string>();
  const bells = (host: string) =>
    definePlugin({
      name: 'bells',
      options: z.strictObject({}),
      onFailure: 'continue',
      start(services) {
        if (broken.has(host)) throw new Error('no bells');
        return services;
      },
      register(context) {
        const once = { singleton: 'bells' };
        context.actor(door, once);
        context.route(tick, door, () => [{ key: 'clock', event: { type: 'KNOCK' } }]);
        context.schedule('* * * * *', tick, once);
        context.effect('lamp.on', () => {}, { onRecovery: 'retry' });
        context.effect('bell.ring', () => void cluster.story.push(`${host} rings`), { onRecovery: 'retry' });
        const answer = () => ({ host });
        context.control((surface) => serveOperation(surface, '/bells/who', z.strictObject({}), answer));
        context.control(
          (surface) => serveOperation(surface, '/bells/once', z.strictObject({}), answer),
          once,
        );
      },
    })();
  const a = await startHost(t, cluster, 'a', [bells('a')], { clock });
  const b = await startHost(t, cluster, 'b', [bells('b')], { clock });
  const ask = ({ dataDir }: TestHost, path: string) =>
    postControl(dataDir, path, {}, AbortSignal.timeout(30_000));
  await clock.passUntil(cluster.move('bells', 'a'), 1);
  t.regex(pluginOf(b, 'bells'), /bells \d+ ms/, 'it has started here, too');
  await clock.advance(30_000);
  await clock.passUntil(
    until('it rang', () => cluster.story.length > 0),
    1,
  );
  t.deepEqual(cluster.story, ['a rings']);
  t.deepEqual(
    [a, b].map(({ runtime }) => runtime.services.actors.actsHere(door)),
    [true, false],
  );
  for (const host of [a, b])
    t.like(await ask(host, '/bells/who'), { status: 200, body: { host: host.name } });
  t.like(await ask(a, '/bells/once'), { status: 200 });
  t.like(await ask(b, '/bells/once'), { status: 409, body: { details: { where: 'it runs on a' } } });
  await clock.passUntil(cluster.move('bells', 'b'), 1);
  await clock.advance(60_000);
  await clock.passUntil(
    until('the other one rang', () => cluster.story.length > 1),
    1,
  );
  t.deepEqual(cluster.story, ['a rings', 'b rings']);
  t.like(await ask(b, '/bells/once'), { status: 200 });

  broken.add('c');
  await startHost(t, cluster, 'c', [bells('c')], { clock });
  await t.throwsAsync(clock.passUntil(cluster.move('bells', 'c'), 1), { code: 'HF_PLUGIN_ELSEWHERE' });
});
