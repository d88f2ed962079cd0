import { cpSync } from 'node:fs';
import test, { type ExecutionContext } from 'ava';
import { z } from 'zod';
import { defineTopic } from '../../../src/bus/topic.ts';
import { type Cluster, ClusterToken } from '../../../src/core/contracts/cluster.ts';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { definePlugin, type PluginEntry, type Services } from '../../../src/core/host/plugin/definition.ts';
import { createRuntime } from '../../../src/core/host/runtime/runtime.ts';
import { defineActor } from '../../../src/core/kernel/actors/definition.ts';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { asEpochMs } from '../../../src/core/kernel/ids.ts';
import { hostActor } from '../../../src/plugins/cluster/actors.ts';
import { cluster } from '../../../src/plugins/cluster/index.ts';
import { ClusterKey } from '../../../src/plugins/cluster/keys.ts';
import { incarnationsNamed } from '../../../src/plugins/cluster/mirror/incarnations.ts';
import { ClusterPosition } from '../../../src/plugins/cluster/mirror/position.ts';
import { operated } from '../../../src/plugins/cluster/operate/operated.ts';
import { clusterView } from '../../../src/plugins/cluster/operate/view.ts';
import { ClusterSystem } from '../../../src/plugins/cluster/system.ts';
import { openLink, silent } from '../../support/cluster.ts';
import { door as doorOfOneHost } from '../../support/door.ts';
import { holdLog } from '../../support/held-log.ts';
import { joinCluster, keyIn } from '../../support/joined-host.ts';
import { startNats } from '../../support/nats.ts';
import { tempDir } from '../../support/temp.ts';
import { until } from '../../support/until.ts';

const nothing = async () => {};
const doors = { name: 'doors', actorTypes: ['test.door'], machines: {}, begin: nothing, end: nothing };

test('[C13,G14] a host that wakes with its machine counts as cut off at once, before any timer, until it has read what others said', async (t) => {
  const nats = await startNats(t);
  let suspendedMs = 0;
  const clock = {
    ...systemClock,
    now: () => asEpochMs(systemClock.now() + suspendedMs),
    sinceBoot: () => ({ boot: 'one', ms: systemClock.monotonic() + suspendedMs }),
  };
  const { system } = await joinCluster(t, nats.url(), keyIn(t), 'attic', { clock });
  system.compete([doors]);
  const knowsAll = () => !system.standing().isIsolated && !system.standing().isBehind;
  await until('it knows what others said', knowsAll);
  suspendedMs += 60_000;
  t.like(system.standing(), { isIsolated: true, isBehind: true });
  t.true(system.standing().silentMs >= 60_000);
  await until('it knows what others said', knowsAll);
});

test('[C13] a message is acknowledged when a successor can know of it: the holder has it on its stream', async (t) => {
  const nats = await startNats(t);
  const keyFile = keyIn(t);
  const attic = await joinCluster(t, nats.url(), keyFile, 'attic');
  const barn = await joinCluster(t, nats.url(), keyFile, 'barn');
  let recorded: number | undefined;
  attic.system.onArrived(async ({ topic }) => {
    attic.services.actors.send(hostActor, topic, { type: 'LEFT', at: 1 });
    recorded = attic.services.log.lastSeq();
  });
  // The stream takes nothing yet.
  const stream = Promise.withResolvers<void>();
  const waitsFor: number[] = [];
  const { outbox } = attic.system;
  const mirrored = outbox.mirrored.bind(outbox);
  outbox.mirrored = async (seq) => {
    waitsFor.push(seq);
    await stream.promise;
    return mirrored(seq);
  };
  attic.system.compete([doors]);
  let isTaken = false;
  const message = { topic: 'tests.topic', payload: null, correlation: 'c' };
  const sent = barn.system.toHolder('doors', message).then(() => {
    isTaken = true;
  });
  await until('the holder has recorded it', () => recorded !== undefined);
  await attic.services.log.whenDurable(recorded ?? 0);
  await until('it waits for the stream', () => waitsFor.includes(recorded ?? 0));
  // Whatever it had answered would be there by now.
  attic.system.onAsked('tests.ping', () => 'pong');
  await until('the other host answers', async () => {
    const { answers } = await barn.system.ask('tests.ping', null, 60_000);
    return answers.length > 0;
  });
  t.false(isTaken);
  stream.resolve();
  await sent;
  t.true(outbox.position.seq >= (recorded ?? 0));
});

test('[C13] a second process of one name never replaces the stream of the first, however late that answers', async (t) => {
  const nats = await startNats(t);
  const keyFile = keyIn(t);
  const proxy = await nats.proxyTo(0);
  const first = await joinCluster(t, proxy.url, keyFile, 'attic');
  first.system.compete([]);
  const { actors, log } = first.services;
  const record = async () => {
    actors.send(hostActor, 'barn', { type: 'LEFT', at: 1 });
    await first.system.mirrored(log.lastSeq());
  };
  await record();
  // Its answers take 0.8 s.
  proxy.set({ delayMs: 400 });
  const second = await joinCluster(t, nats.url(), keyFile, 'attic').catch((error: unknown) => error);
  if (!(second instanceof Error)) {
    const { system } = second as Awaited<ReturnType<typeof joinCluster>>;
    system.compete([]);
    await until('the second has left', () => system.leftBecause);
    t.like(system.leftBecause, { code: 'HF_CLUSTER_NAME_TAKEN' });
    await system.leave();
  }
  proxy.heal();
  await record();
  t.deepEqual(await incarnationsNamed(first.system.streams, 'attic'), [1]);
  t.is(first.system.leftBecause, undefined);
});

test('[C13] a host says in the ledger where on its stream the newest states of its actors stand', async (t) => {
  const nats = await startNats(t);
  const { system, services } = await joinCluster(t, nats.url(), keyIn(t), 'attic');
  system.compete([doors]);
  for (let sent = 0; sent < 2_000; sent += 1)
    services.actors.send(hostActor, 'barn', { type: 'LEFT', at: sent });
  const told = () => system.leases.hosts().get('attic')?.mirror?.states;
  await until('the ledger says so', () => told() !== undefined && told() === system.outbox.position.states);
  t.pass();
});

test('[C13] a host whose name another process has taken says so as long as it runs', async (t) => {
  const nats = await startNats(t);
  const keyFile = keyIn(t);
  const proxy = await nats.proxyTo(0);
  const first = await joinCluster(t, nats.url(), keyFile, 'attic');
  first.system.compete([]);
  // The later one starts while it cannot see the first.
  proxy.refuse();
  const later = await joinCluster(t, proxy.url, keyFile, 'attic');
  later.system.compete([]);
  const view = () => clusterView(operated(later.system, later.services));
  proxy.heal();
  await until('it has left', () => later.system.leftBecause);
  await later.system.leave();
  later.services.actors.send(hostActor, 'barn', { type: 'LEFT', at: 1 });
  await later.services.log.whenDurable(later.services.log.lastSeq());
  t.regex(view().problems[0] ?? '', /^this host has left the cluster.*Another process is the host attic/);
  t.is(first.system.leftBecause, undefined);
});

interface HostWish {
  readonly host?: string;
  readonly plugins?: readonly PluginEntry[];
}

/** Runs a host on a data folder, with the plugin as it is shipped. */
async function runHost(
  t: ExecutionContext,
  servers: string,
  keyFile: string,
  dataDir: string,
  { host = 'attic', plugins: more = [] }: HostWish = {},
) {
  let joined: Cluster | undefined;
  let log: Services['log'] | undefined;
  const witness = definePlugin({
    name: 'test-witness',
    options: z.strictObject({}),
    requires: [ClusterToken],
    start: (services) => {
      joined = services.get(ClusterToken);
      log = services.log;
      return services;
    },
    register: () => {},
  });
  const plugins = [cluster({ servers, keyFile, name: 'left', host }), witness(), ...more];
  const runtime = createRuntime({
    ...resolveConfig({ plugins }, {}),
    dataDir,
    logger: silent,
    patienceMs: 50,
  });
  t.teardown(() => runtime.stop('test'));
  await runtime.start();
  if (!(joined instanceof ClusterSystem)) throw new Error('it is another cluster');
  const system = joined;
  return { runtime, system, allMirrored: () => system.mirrored(log?.lastSeq() ?? 0) };
}

test('[C13] a host on an older copy of its data folder leaves the cluster and says why: its stream has more', async (t) => {
  const nats = await startNats(t);
  const keyFile = keyIn(t);
  const [dataDir, copy] = [tempDir(t), tempDir(t)];
  const first = await runHost(t, nats.url(), keyFile, dataDir);
  await first.allMirrored();
  await first.runtime.stop('test');
  cpSync(dataDir, copy, { recursive: true });
  const next = await runHost(t, nats.url(), keyFile, dataDir);
  await next.allMirrored();
  await next.runtime.stop('test');

  const old = await runHost(t, nats.url(), keyFile, copy);
  await until('it has left', () => old.system.leftBecause);
  t.like(old.system.leftBecause, { code: 'HF_CLUSTER_OLD_FOLDER', details: { host: 'attic' } });
  await old.system.leave();
  old.system.compete([]);
  t.deepEqual(old.system.leases.table(), []);
  const { streams } = next.system;
  const link = await openLink(t, nats.url(), { key: ClusterKey.open(keyFile), name: 'left' });
  t.is((await incarnationsNamed({ ...streams, link }, 'attic')).length, 1, 'nothing hides what it has');
});

test('[C13] a host that has left the cluster competes no more, and stops as any other', async (t) => {
  const nats = await startNats(t);
  const { runtime, system } = await runHost(t, nats.url(), keyIn(t), tempDir(t));
  await system.leave();
  const work = { name: 'doors', actorTypes: [], machines: {}, begin: async () => {}, end: async () => {} };
  system.compete([work]);
  t.deepEqual(system.leases.table(), []);
  t.is(system.link.problem, 'it is closed');
  t.deepEqual(await runtime.stop('test'), []);
});

const knock = defineTopic('test.knock', z.object({ by: z.string() }), 'Somebody wants in.');
const door = defineActor({ ...doorOfOneHost, hear: () => undefined });

/** Doors on every host that open at a knock. */
const doorsPlugin = definePlugin({
  name: 'doors',
  options: z.strictObject({}),
  start: (services) => services,
  register(context) {
    context.actor(door);
    context.effect('lamp.on', () => {}, { onRecovery: 'retry' });
    context.effect('bell.ring', () => {}, { onRecovery: 'retry' });
    const opens = { everyHost: true } as const;
    context.route(knock, door, ({ payload: { by } }) => [{ key: by, event: { type: 'OPEN', by } }], opens);
  },
});

test('[C13] a message to every host that the log cannot take makes a host refuse calls, and is not noted as taken before it is durable', async (t) => {
  const nats = await startNats(t);
  const [keyFile, dataDir] = [keyIn(t), tempDir(t)];
  const barn = await runHost(t, nats.url(), keyFile, tempDir(t), { host: 'barn', plugins: [doorsPlugin()] });
  const attic = await runHost(t, nats.url(), keyFile, dataDir, { plugins: [doorsPlugin()] });
  const { actors, log } = attic.runtime.services;
  const publish = (by: string) => barn.runtime.services.bus.publish(knock, { by });
  const noted = () => ClusterPosition.open(dataDir, systemClock, () => {}).current;
  const place = () => attic.system.shared.place.seq;
  publish('ann');
  await until('both have it', () => actors.get(door, 'ann') && noted().shared?.seq === place());
  await until('it is connected', () => !attic.system.standing().isIsolated);
  const letGo = holdLog(t, dataDir);
  const own = actors.send(door, 'own', { type: 'KNOCK' });
  await until('its log takes nothing', () => !actors.accepting());

  const before = place();
  publish('bob');
  await until('the other host has it', () => barn.runtime.services.actors.get(door, 'bob'));
  await until('it has come', () => place() > before || attic.system.standing().isBehind);
  t.is(place(), before);
  t.true(attic.system.standing().isIsolated, 'as routes that write ask');
  const { problems } = clusterView(operated(attic.system, attic.runtime.services));
  t.regex(problems.join(), /may be unread here, e\.g\. a revocation: this host refuses calls/);

  // The log takes what stood before it, and nothing more.
  let letGoAgain: (() => void) | undefined;
  log.onDurable(() => {
    letGoAgain ??= holdLog(t, dataDir);
  });
  letGo();
  const { seq } = await own.durable();
  await until('it was decided', () => actors.get(door, 'bob'));
  await until('what the log took is noted', () => (noted().mirror?.seq ?? 0) >= seq);
  t.is(noted().shared?.seq, before);
  letGoAgain?.();
  await until('it is noted', () => noted().shared?.seq === place() && place() > before);
  await until('it serves again', () => !attic.system.standing().isIsolated);
});
