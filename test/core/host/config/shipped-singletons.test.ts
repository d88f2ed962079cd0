import test from 'ava';
import { alertRaised } from '../../../../src/core/contracts/alerts.ts';
import { resolveConfig } from '../../../../src/core/host/config/resolve.ts';
import type { PluginEntry } from '../../../../src/core/host/plugin/definition.ts';
import { PluginHost } from '../../../../src/core/host/plugin/host.ts';
import { alertActor } from '../../../../src/plugins/alerts/actors.ts';
import { alerts } from '../../../../src/plugins/alerts/index.ts';
import { columnar } from '../../../../src/plugins/columnar/index.ts';
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
const SINGLETONS = ['alerts', 'memory', 'reconciler', 'watchdog'];

/** What shares its state with other hosts, and what works on it. */
const elsewhere = (): PluginEntry[] => [
  ...[routerRemote({ url }), columnar({ url }), memory({ url }), uptime({ url })],
  ...[reconciler(), watchdog(), alerts(), restore()],
];

function movable(plugins: readonly PluginEntry[]): string[] {
  const member = new Member(new MemoryCluster(), 'a', '/nowhere');
  const configured = resolveConfig({ plugins: [...plugins, joining(member)] }, { env: {} }).plugins;
  return [...new PluginHost(configured).movable().keys()].sort();
}

test('[C13] what works on something elsewhere can be on any host, what works on a store of its own host stays there', (t) => {
  t.deepEqual(movable(elsewhere()), SINGLETONS);
  const workers = [reconciler(), watchdog(), alerts(), restore()];
  t.deepEqual(movable([router(), columnar(), memoryStore(), memory(), uptime(), ...workers]), []);
  t.deepEqual(movable([routerRemote({ url }), columnar(), uptime(), reconciler(), alerts()]), ['reconciler']);
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
