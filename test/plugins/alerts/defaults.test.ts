import test from 'ava';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { alerts } from '../../../src/plugins/alerts/index.ts';
import { raisedTargets } from '../../../src/plugins/alerts/routing.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const [plugin] = resolveConfig({ plugins: [alerts()] }, { env: {} }).plugins;
const options = plugin?.options as ReturnType<typeof alerts.definition.options.parse>;

test('[O17,O18,O19,R28] the documented rules have their bounds, windows, intervals and meaning of silence', (t) => {
  const rows = options.rules.map(({ name, measure, above, below, window, every, onNoData, expect }) => [
    name,
    `${measure.take} ${measure.table} ${measure.metric}`,
    above === undefined ? `below ${below}` : `above ${above}`,
    `${window} every ${every}`,
    `${onNoData} ${expect}`,
  ]);
  t.deepEqual(rows, [
    ['nas-backup-failed', 'max gauge nas.backup.snapshot.failed', 'above 0', '1d every 1h', 'ok optional'],
    ['nas-backup-missing', 'count sum file.mtime', 'below 1', '1h every 1h', 'fire steady'],
    ['nas-backup-stale', 'age sum file.mtime', 'above 36', '7d every 1h', 'ok steady'],
    ['watchdog-push-failing', 'max gauge kube_job_failed', 'above 0', '1h every 5m', 'ok optional'],
    ['router-ula-reconcile', 'last gauge router.ula_reconcile.up', 'below 1', '5m every 1m', 'fire steady'],
  ]);
});

test('[O28] the rule of a stale backup has priority 1, and no other rule has one of its own', (t) => {
  t.deepEqual(
    options.rules
      .filter(({ labels }) => labels.priority !== undefined)
      .map(({ name, labels }) => [name, labels]),
    [['nas-backup-stale', { priority: '1' }]],
  );
});

test('[O17] alerts of one name about two monitors are two conditions, and about one monitor one', (t) => {
  const routing = {
    actors: { get: () => undefined, list: () => [], send: () => t.fail() },
    clock: new VirtualClock(),
    routes: options.routes,
    isReady: () => true,
  };
  const keyOf = (labels: Record<string, string>) => {
    const payload = { name: 'uptime-monitor.down', severity: 'critical', text: 'x', labels } as const;
    const [target] = raisedTargets({ topic: 'alerts.raised', correlation: 'c', payload }, routing as never);
    return target?.key;
  };
  const keys = [
    { monitor: 'a', state: 'firing' },
    { monitor: 'b', state: 'firing' },
    { monitor: 'a', state: 'resolved', reminder: '2' },
  ].map(keyOf);
  t.is(keys[0], keys[2]);
  t.not(keys[0], keys[1]);
});
