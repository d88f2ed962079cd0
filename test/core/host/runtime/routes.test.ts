import type { ExecutionContext } from 'ava';
import test from 'ava';
import { z } from 'zod';
import { defineTopic, type Topic } from '../../../../src/bus/topic.ts';
import { definePlugin, type PluginEntry } from '../../../../src/core/host/plugin/definition.ts';
import { defineActor } from '../../../../src/core/kernel/actors/definition.ts';
import { newCorrelation } from '../../../../src/core/kernel/clock.ts';
import { doorMachine, door as doorOfOneHost } from '../../../support/door.ts';
import { holdLog } from '../../../support/held-log.ts';
import { MemoryCluster, startHost, type TestHost } from '../../../support/two-hosts.ts';
import { read, until } from '../../../support/until.ts';

const knock = defineTopic('test.knock', z.object({ by: z.string() }), 'Somebody wants in.');
const strict = defineTopic('test.knock', z.object({ by: z.string().max(3) }), 'Somebody wants in.');
const counted = defineTopic(
  'test.knock',
  z.object({ by: z.string(), times: z.bigint().optional() }),
  'Somebody wants in.',
);

const door = defineActor({ ...doorOfOneHost, hear: () => undefined });

/** Doors on every host, or on one, that open at a knock. */
function doors(
  singleton?: string,
  topic: Topic<{ readonly by: string }> = knock,
  ownHost = false,
): PluginEntry {
  return definePlugin({
    name: 'doors',
    options: z.strictObject({}),
    ...(singleton !== undefined && { singleton }),
    start: (services) => ({ services, by: 'the plugin' }),
    register(context) {
      context.actor(door);
      context.effect('lamp.on', () => {}, { onRecovery: 'retry' });
      context.effect('bell.ring', () => {}, { onRecovery: 'retry' });
      context.route(
        topic,
        door,
        ({ payload, order }, _started) => [
          { key: order === undefined ? 'unordered' : `${order}`, event: { type: 'OPEN', by: payload.by } },
        ],
        singleton === undefined ? { everyHost: true } : { ownHost },
      );
    },
  })();
}

const opened = ({ runtime }: TestHost) =>
  runtime.services.actors.list(door).map(({ key, context }) => `${key} ${context.by}`);
const publish = ({ runtime }: TestHost, by: string, correlation = newCorrelation()) =>
  runtime.services.bus.publish(knock, { by }, { correlation });
const dropped = async ({ runtime }: TestHost) =>
  /events_dropped_total\{topic="test.knock"\} (\d+)/.exec(await runtime.services.metrics.text())?.[1];

async function pair(t: ExecutionContext, ...plugins: readonly PluginEntry[]) {
  const cluster = new MemoryCluster();
  cluster.deals = false;
  const hosts = [
    await startHost(t, cluster, 'a', plugins),
    await startHost(t, cluster, 'b', plugins),
  ] as const;
  return { cluster, a: hosts[0], b: hosts[1] };
}

test('[C13] a route to every host takes the messages of all hosts in one order, and says where each came from', async (t) => {
  const { a, b } = await pair(t, doors());
  publish(a, 'ann');
  publish(b, 'bob');
  publish(a, 'cid');
  const all = ['1 ann', '2 bob', '3 cid'];
  await until('both have all', () => opened(a).length === 3 && opened(b).length === 3);
  t.deepEqual(opened(a), all);
  t.deepEqual(opened(b), all);
  const origins = async ({ runtime: { services } }: TestHost) => {
    await services.log.whenDurable(services.log.lastSeq());
    const records = await Array.fromAsync(services.log.read({}));
    return records.filter(({ event }) => event.type === 'OPEN').map(({ origin }) => origin?.host);
  };
  t.deepEqual(await origins(a), [undefined, 'b', undefined]);
  t.deepEqual(await origins(b), ['a', undefined, 'a']);
});

test('[C13] a host that was cut off takes the messages that it missed, in order, and refuses its own meanwhile', async (t) => {
  const { a, b } = await pair(t, doors());
  b.member.isCut = true;
  publish(a, 'ann');
  await until('the first has it', () => opened(a).length === 1);
  const correlation = newCorrelation();
  const answer = b.runtime.services.pendingReplies.open(correlation, 60_000);
  publish(b, 'bob', correlation);
  await t.throwsAsync(answer, { message: /cut off/ });
  t.is(await dropped(b), '1');
  t.deepEqual(opened(b), []);
  b.member.isCut = false;
  publish(b, 'cid');
  await until('it has caught up', () => opened(b).length === 2);
  t.deepEqual(opened(b), ['1 ann', '2 cid']);
});

/** A host whose log takes nothing, and says so. */
async function startWithoutRoom(t: ExecutionContext, cluster: MemoryCluster) {
  const host = await startHost(t, cluster, 'full', [doors()], { patienceMs: 50 });
  const { actors, log } = host.runtime.services;
  await log.whenDurable(log.lastSeq());
  const letGo = holdLog(t, host.dataDir);
  actors.send(door, 'own', { type: 'KNOCK' });
  await until('its log is frozen', () => !actors.accepting());
  return { host, letGo, actors };
}

test('[C13] while the log has no room, messages of other hosts wait however much waits here, and are decided in their order', async (t) => {
  const cluster = new MemoryCluster();
  const a = await startHost(t, cluster, 'a', [doors()]);
  const { host, letGo, actors } = await startWithoutRoom(t, cluster);
  const fill = () => {
    for (;;) actors.send(door, 'own', { type: 'KNOCK' });
  };
  t.throws(fill, { code: 'HF_ACTOR_OVERLOADED' });
  const depth = actors.mailboxDepth;
  publish(a, 'ann');
  publish(a, 'bob');
  await until('the other host has both', () => opened(a).length === 2);
  t.deepEqual([host.member.taken, actors.mailboxDepth], [0, depth]);
  letGo();
  await until('it has taken both', () => host.member.taken === 2);
  t.deepEqual(opened(host).slice(1), ['1 ann', '2 bob']);
  t.is(await dropped(host), undefined);
});

test('[C13] what this host told every host is decided here too, though its log has no room when that comes back', async (t) => {
  const { host, letGo } = await startWithoutRoom(t, new MemoryCluster());
  const correlation = newCorrelation();
  const answer = host.runtime.services.pendingReplies.open(correlation, 3_600_000);
  const heard = host.member.hear({
    topic: knock.name,
    payload: { by: 'ann' },
    correlation,
    from: 'full',
    order: 7,
  });
  letGo();
  await heard;
  t.deepEqual(opened(host).slice(1), ['7 ann']);
  host.runtime.services.pendingReplies.settle(correlation, { status: 200 });
  t.is((await answer).status, 200, 'who waits for it is not told that it was refused');
});

test('[C13] a message that does not fit the topic of this host counts as missed, and the next one comes', async (t) => {
  const cluster = new MemoryCluster();
  const a = await startHost(t, cluster, 'a', [doors()]);
  const b = await startHost(t, cluster, 'b', [doors(undefined, strict)]);
  publish(a, 'annabel');
  publish(a, 'bob');
  await until('the second came', () => opened(b).length === 1);
  t.deepEqual(opened(b), ['2 bob']);
  t.is(await dropped(b), '1');
  t.is(b.member.notUnderstood.length, 1);
  t.regex(
    b.member.notUnderstood[0] ?? '',
    /^The host a sent a message on test\.knock that this one does not understand: /,
  );
  t.deepEqual(a.member.notUnderstood, []);
});

test('[C13] messages that are no plain data are dropped, and keep no later one from leaving', async (t) => {
  const { a, b } = await pair(t, doors(undefined, counted));
  const { bus, pendingReplies } = a.runtime.services;
  const correlation = newCorrelation();
  const answer = t.throwsAsync(pendingReplies.open(correlation, 60_000), { message: /times/ });
  bus.publish(counted, { by: 'ann', times: 1n }, { correlation });
  await answer;
  for (let count = 1; count < 1_000; count += 1) bus.publish(counted, { by: 'ann', times: 1n });
  await read(
    'they are counted',
    () => dropped(a),
    (count) => count === '1000',
  );
  bus.publish(counted, { by: 'bob' });
  await until('the next one came', () => opened(b).length === 1);
  t.deepEqual(opened(b), ['1 bob']);
});

test('[C13] a message with sealed bodies never leaves its host', async (t) => {
  const { a, b, cluster } = await pair(t, doors());
  a.runtime.services.bus.publish(knock, { by: 'ann' }, { blobs: new Map([['fp_1', new Uint8Array(1)]]) });
  t.is(await dropped(a), '1');
  t.deepEqual([opened(a), opened(b), cluster.shared], [[], [], []]);
});

test('[C13] messages for a singleton reach its holder, also while it moves', async (t) => {
  const { a, b, cluster } = await pair(t, doors('doors'));
  publish(a, 'early');
  await cluster.move('doors', 'a');
  await until('what was sent before it began came', () => opened(a).length === 1);
  publish(b, 'bob');
  const seen = async (host: TestHost, name: string) => {
    const { services } = host.runtime;
    await services.log.whenDurable(services.log.lastSeq());
    const records = await Array.fromAsync(services.log.read({ actor: 'test.door/unordered' }));
    return records.filter(({ event }) => event.by === name).length;
  };
  publish(a, 'own');
  for (const name of ['early', 'own', 'bob']) await read(`${name} came`, () => seen(a, name), Boolean);
  t.is(await seen(a, 'own'), 1);
  const moved = cluster.move('doors', 'b');
  publish(a, 'cid');
  publish(b, 'dan');
  await moved;
  for (const name of ['cid', 'dan']) await read(`${name} came`, () => seen(b, name), Boolean);
  t.is(await dropped(a), undefined);
  t.is(await dropped(b), undefined);
});

test('[C13] what does not reach the holder is counted, and the publisher hears nothing of it', async (t) => {
  const { a } = await pair(t, doors('doors'));
  a.member.toHolder = () => Promise.reject(new Error('nobody took it'));
  t.notThrows(() => publish(a, 'ann'));
  await read(
    'it is counted',
    () => dropped(a),
    (count) => count === '1',
  );
});

test('[C13] messages that wait for a holder keep none of another topic from every host', async (t) => {
  const knockedAtGate = defineTopic('test.knock_at_gate', knock.schema, 'Somebody wants in.');
  const gate = defineActor({
    ...{ type: 'test.gate', machine: doorMachine, version: 1 },
    input: () => ({ closeAfterMs: 1_000 }),
  });
  const gates = definePlugin({
    name: 'gates',
    options: z.strictObject({}),
    singleton: 'gates',
    start: () => ({}),
    register(context) {
      context.actor(gate);
      context.route(knockedAtGate, gate, ({ payload }) => [
        { key: 'one', event: { type: 'OPEN', ...payload } },
      ]);
    },
  });
  const { a, b } = await pair(t, doors(), gates());
  const { bus, metrics } = a.runtime.services;
  for (let count = 0; count < 1_001; count += 1) bus.publish(knockedAtGate, { by: 'ann' });
  const droppedOf = async (topic: string) =>
    new RegExp(`events_dropped_total\\{topic="${topic}"\\} (\\d+)`).exec(await metrics.text())?.[1];
  t.is(await droppedOf('test.knock_at_gate'), '1', 'there is an end to what may wait');
  publish(a, 'bob');
  await until('it came', () => opened(b).length === 1);
  t.deepEqual(opened(b), ['1 bob']);
});

test('[C13] a route that takes what each host sees by itself takes the messages of the holder alone', async (t) => {
  const { a, b, cluster } = await pair(t, doors('doors', knock, true));
  let sent = 0;
  b.member.toHolder = async () => {
    sent += 1;
  };
  await cluster.move('doors', 'a');
  publish(b, 'bob');
  publish(a, 'ann');
  t.deepEqual([opened(a), opened(b), sent], [['unordered ann'], [], 0]);
});
