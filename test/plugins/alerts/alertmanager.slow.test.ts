import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import { createRuntime } from '../../../src/core/host/runtime/runtime.ts';
import type { Notice } from '../../../src/machines/alerts/notice.ts';
import { formats } from '../../../src/plugins/alerts/payloads.ts';
import { uptimeMonitor } from '../../../src/plugins/uptime-monitor/index.ts';
import { tempDir } from '../../support/temp.ts';
import { PATIENCE_MS } from '../../support/until.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { Alertmanager, pause } from './alertmanager.ts';
import { rig } from './rig.ts';

test('[O17,O16] a real Alertmanager takes our alerts and their ends, and its own webhook is a beat of our monitor', async (t) => {
  const dataDir = tempDir(t);
  const entries = [uptimeMonitor({ port: 0, monitors: [{ name: 'alertmanager', interval: 60 }] })];
  const { plugins } = resolveConfig({ plugins: entries }, { env: {} });
  const runtime = createRuntime({ plugins, dataDir, logger: createLogger({ level: 'silent' }) });
  t.teardown(() => runtime.stop('test over'));
  await runtime.start();
  const token = readFileSync(join(dataDir, 'secrets/push/alertmanager'), 'utf8').trim();
  const manager = await Alertmanager.start(t, `${runtime.surfaces.uptime!.url}/api/push/${token}`);
  const { url } = manager;

  const since = Date.now() - 5_000;
  const notice: Notice = {
    state: 'firing',
    name: 'uptime-monitor.down',
    severity: 'critical',
    title: 'Watchdog is DOWN',
    text: 'Watchdog is DOWN: no beat for 10 min.',
    labels: { monitor: 'clickstack-watchdog', state: 'firing' },
    since,
  };
  const tell = async (more: Partial<Notice>) => {
    const items = [{ id: '1', at: Date.now(), notice: { ...notice, ...more } }];
    const { headers, body } = formats['alertmanager-api'](items, 'k1', Date.now());
    const answer = await fetch(`${url}/api/v2/alerts`, { method: 'POST', headers, body });
    t.is(answer.status, 200, await answer.text());
  };
  const alerts = () => manager.alerts();

  await tell({});
  await tell({ state: 'reminder', labels: { ...notice.labels, reminder: '1' } });
  const [first, ...more] = await alerts();
  t.deepEqual(more, [], 'a reminder is the same alert');
  t.like(first, {
    labels: { alertname: 'uptime-monitor.down', monitor: 'clickstack-watchdog', severity: 'critical' },
    annotations: { summary: 'Watchdog is DOWN' },
    status: { state: 'active' },
  });
  const heldMs = Date.parse(first.endsAt) - Date.now();
  t.true(heldMs > 120_000 && heldMs <= 240_000, 'it ends by itself when nobody tells of it again');

  const monitor = () => runtime.services.actors.snapshot('uptime-monitor.monitor/alertmanager');
  while (monitor()?.value !== 'up') await pause();
  t.like(monitor()!.context, { lastMsg: 'OK' }, 'whatever its body says, it lives');

  await tell({ state: 'resolved', labels: { ...notice.labels, state: 'resolved' } });
  while ((await alerts()).length > 0) await pause();
});

test('[O17] an Alertmanager that restarts and forgets has every alert that fires again within a minute', async (t) => {
  const manager = await Alertmanager.start(t, 'http://127.0.0.1:9/');
  // Its clock goes on with the Alertmanager's, and is never ahead of it.
  const clock = new VirtualClock(Date.now() - 120_000);
  const options = {
    receivers: {
      manager: { url: `${manager.url}/api/v2/alerts`, format: 'alertmanager-api' as const, batchSeconds: 0 },
    },
    routes: [{ steps: [{ to: ['manager'] }] }],
    rules: [],
  };
  const alerts = await rig(t, options, { clock });
  const held = async () => (await manager.alerts()).map(({ labels }) => labels.store).toSorted();
  const until = async (what: string, wanted: readonly string[]) => {
    const end = performance.now() + PATIENCE_MS;
    for (;;) {
      const seen = await held();
      if (seen.join() === wanted.join()) return;
      if (performance.now() > end) throw new Error(`${what}: ${seen.join()}`);
      await alerts.settled();
      await pause();
    }
  };
  for (const store of ['a', 'b', 'c']) alerts.raise('store.full', 'firing', { store });
  await alerts.pass(0.001);
  await until('they fire', ['a', 'b', 'c']);
  alerts.raise('store.full', 'resolved', { store: 'b' });
  await alerts.pass(0.001);
  await until('one ends', ['a', 'c']);

  await manager.restart();
  t.deepEqual(await held(), [], 'it has forgotten all of them');
  await alerts.pass(59, 1);
  t.deepEqual(await held(), []);
  await alerts.pass(2, 1);
  await until('it is told again', ['a', 'c']);
  const [first] = await manager.alerts();
  t.is(first.labels.severity, 'critical');
  t.regex(first.annotations.description, /\nWhere: .*\nSince: .*\nFirst: .*\nMore: docs\//);

  for (const store of ['a', 'c']) alerts.raise('store.full', 'resolved', { store });
  await alerts.pass(2, 1);
  await until('all are over', []);
  t.is(alerts.divergence(), undefined);
});
