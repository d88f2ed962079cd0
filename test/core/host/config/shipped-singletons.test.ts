import test from 'ava';
import { alertRaised } from '../../../../src/core/contracts/alerts.ts';
import { resolveConfig } from '../../../../src/core/host/config/resolve.ts';
import type { PluginEntry } from '../../../../src/core/host/plugin/definition.ts';
import { PluginHost } from '../../../../src/core/host/plugin/host.ts';
import { alertActor } from '../../../../src/plugins/alerts/actors.ts';
import { alerts } from '../../../../src/plugins/alerts/index.ts';
import { cluster } from '../../../../src/plugins/cluster/index.ts';
import { collector } from '../../../../src/plugins/collector/index.ts';
import { columnar } from '../../../../src/plugins/columnar/index.ts';
import { jobs } from '../../../../src/plugins/jobs/index.ts';
import { memory } from '../../../../src/plugins/memory/index.ts';
import { memoryStore } from '../../../../src/plugins/memory-store/index.ts';
import { reconciler } from '../../../../src/plugins/reconciler/index.ts';
import { restore } from '../../../../src/plugins/restore/index.ts';
import { router, routerRemote } from '../../../../src/plugins/router/index.ts';
import { uptime } from '../../../../src/plugins/uptime/index.ts';
import { watchdog } from '../../../../src/plugins/watchdog/index.ts';
import { joining, Member, MemoryCluster, startHost } from '../../../support/two-hosts.ts';
import { until } from '../../../support/until.ts';

/** Nothing listens there. */
const url = 'http://127.0.0.1:9';
const SINGLETONS = ['alerts', 'memory', 'reconciler', 'rotation', 'watchdog'];

/** What shares its state with other hosts, and what works on it. */
const elsewhere = (): PluginEntry[] => [
  ...[routerRemote({ url }), columnar({ url }), memory({ url }), uptime({ url })],
  ...[reconciler(), watchdog(), alerts(), restore(), jobs(), collector()],
];

function movable(plugins: readonly PluginEntry[]): string[] {
  const member = new Member(new MemoryCluster(), 'a', '/nowhere');
  const configured = resolveConfig({ plugins: [...plugins, joining(member)] }, { env: {} }).plugins;
  return [...new PluginHost(configured).movable().keys()].sort();
}

test('[C13] what works on something elsewhere can be on any host, what works on a store of its own host stays there', (t) => {
  t.deepEqual(movable(elsewhere()), SINGLETONS);
  const workers = [reconciler(), watchdog(), alerts(), restore(), jobs()];
  t.deepEqual(movable([router(), columnar(), memoryStore(), memory(), uptime(), ...workers]), []);
  t.deepEqual(movable([routerRemote({ url }), columnar(), uptime(), reconciler(), alerts()]), ['reconciler']);
  // All hosts have one ingest key, so one of them rotates it, whatever database each has.
  t.deepEqual(movable([columnar(), collector()]), ['rotation']);
});

test('[C13] the shipped singletons move and come back within one process, and alerts of every host reach their rules', async (t) => {
  const cluster = new MemoryCluster();
  cluster.deals = false;
  const a = await startHost(t, cluster, 'a', elsewhere());
  const b = await startHost(t, cluster, 'b', elsewhere());
  for (const host of [a, b, a]) {
    for (const singleton of SINGLETONS) await cluster.move(singleton, host.name);
    const idle = host.runtime.bootReport().filter((line) => /waits|failed/.test(line));
    t.deepEqual(idle, []);
  }
  t.is(
    b.runtime.bootReport().filter((line) => line.includes('waits: it runs on a')).length,
    SINGLETONS.length,
  );
  const raised = {
    name: 'lamp.broken',
    severity: 'warning',
    text: 'A lamp is broken.',
    labels: { lamp: 'hall' },
  } as const;
  b.runtime.services.bus.publish(alertRaised, raised);
  await until('the alert is known', () =>
    a.runtime.services.actors.list(alertActor).some(({ key }) => key.includes('lamp.broken')),
  );
  t.deepEqual(b.runtime.services.actors.list(alertActor), []);
  for (const { runtime } of [a, b]) t.notRegex(await runtime.services.metrics.text(), /bus_failures_total\{/);
});

/** Of these every host has its own, or all hosts have the same by messages to every host: why it is no singleton's. */
const ON_EVERY_HOST: Readonly<Record<string, string>> = {
  'cluster.host': 'how this host sees the others',
  'cluster.singleton': 'what this host does with it',
  'collector.finding': 'of the config that this host reads',
  'collector.ingest_key': 'the same on all hosts',
  'collector.probe': 'of the receiver of this host',
  'columnar.backups': 'of the embedded database; one elsewhere is backed up by its operator',
  'columnar.connection': 'from this host',
  'console.access': 'who logged in here',
  'gateway.approval': 'of the host where the call waits, released from any',
  'gateway.ended_sessions': 'the same on all hosts',
  'gateway.key': 'the same on all hosts',
  'gateway.rejections': 'of the calls to this host',
  'gateway.route_health': 'from this host',
  'gateway.routes': 'the same on all hosts',
  'gateway.tool_pins': 'the same on all hosts',
  'otlp.intake': 'of the receiver of this host',
  'router.observed_config': 'as this host hears of it',
  'uptime.push': 'a push that a person made here',
};

test('[C13] every actor type of the shipped configuration is a singleton’s, bound to its host, or on every host for a reason', async (t) => {
  const { default: shipped } = await import('../../../../plugins.config.ts');
  const joined = cluster({ servers: 'nats://127.0.0.1:9', keyFile: '/nowhere/key', host: 'a' });
  const configs = [[...shipped.plugins, joined], elsewhere()];
  const found = new Set<string>();
  for (const plugins of configs) {
    const configured = resolveConfig({ plugins }, { env: {} }).plugins;
    const bound = new Set(
      configured.flatMap(({ definition }) => (definition.hostBound === true ? [definition.name] : [])),
    );
    for (const { type, owner, singleton } of new PluginHost(configured).register().actors) {
      if (singleton !== undefined || bound.has(owner) || owner === 'core') continue;
      found.add(type);
      t.true(type in ON_EVERY_HOST, `${type} of ${owner}: what of it happens where there are two hosts?`);
    }
  }
  t.deepEqual([...found].sort(), Object.keys(ON_EVERY_HOST).sort());
});

test('[C13] what the shipped plugins send to every host reaches actors that can hear of what their host missed', async (t) => {
  const { default: shipped } = await import('../../../../plugins.config.ts');
  const configured = resolveConfig({ plugins: shipped.plugins }, { env: {} }).plugins;
  const { actors, routes } = new PluginHost(configured).register();
  const everywhere = routes.filter(({ everyHost }) => everyHost);
  t.true(everywhere.length > 4);
  for (const { to } of everywhere) {
    const actor = actors.find(({ type }) => type === to);
    t.is(typeof actor?.hear, 'function', to);
  }
});
