import type { z } from 'zod';
import type { ruleOptions } from './rule.ts';

type RuleInput = z.input<typeof ruleOptions>;

/**
 * The rules that come with Holdfast: of the NAS backup (O17, O18), of the watchdog's pushes (O19), and of the
 * reconciler's own sign of life (R28). Those that fire on silence do so once their signal has come for a day: a new
 * installation or a trial of telemetry raises no critical alert, and a signal that has never arrived raises an alert of
 * its own after a day.
 * `alerts({ rules: [...documentedRules, …] })` keeps them beside one's own.
 *
 * @experimental
 */
export const documentedRules: readonly RuleInput[] = [
  {
    name: 'nas-backup-failed',
    title: 'NAS backup snapshot FAILED',
    severity: 'critical',
    // Emitted once for each failed source; a healthy run emits nothing.
    measure: { table: 'gauge', metric: 'nas.backup.snapshot.failed', take: 'max' },
    above: 0,
    window: '1d',
    every: '1h',
    onNoData: 'ok',
    expect: 'optional',
    nameBy: 'source',
    firstStep:
      'On the NAS, read the log of the backup of the named source: a full or unreachable target and a locked repository are the usual causes. Then run that backup again.',
  },
  {
    name: 'nas-backup-missing',
    title: 'NAS backup telemetry MISSING (collector dark)',
    severity: 'critical',
    measure: { table: 'sum', metric: 'file.mtime', take: 'count' },
    below: 1,
    window: '1h',
    every: '1h',
    onNoData: 'fire',
    expect: 'steady',
    firstStep:
      'On the NAS, look whether the collector runs (`systemctl status otel-collector`) and what it logs: a rotated ingest key and an unreachable gateway are the usual causes. The backup itself may be well: `holdfast freshness` there tells.',
  },
  {
    name: 'nas-backup-stale',
    title: 'NAS backup STALE',
    severity: 'critical',
    // The timer on the host reports the same without this process. A collector that sends nothing is covered by the
    // rule above.
    measure: { table: 'sum', metric: 'file.mtime', take: 'age' },
    above: 36,
    window: '7d',
    every: '1h',
    onNoData: 'ok',
    expect: 'steady',
    labels: { priority: '1' },
    reads: 'hours since the last success',
    firstStep:
      'On the NAS, look whether the backup is scheduled and how its last run ended, and start one by hand. Restore nothing and delete no old backup before one has succeeded.',
  },
  {
    name: 'watchdog-push-failing',
    title: 'Observability watchdog push delivery FAILING',
    severity: 'critical',
    // A failed job counts for its whole hour, so the alert ends after a full hour without one. Other jobs have alerts
    // of their own.
    measure: {
      table: 'gauge',
      metric: 'kube_job_failed',
      where: { job_name: 'clickstack-watchdog*' },
      take: 'max',
      buckets: true,
    },
    runs: 'clickstack-watchdog*',
    above: 0,
    window: '1h',
    every: '5m',
    onNoData: 'ok',
    expect: 'optional',
    nameBy: 'job_name',
    firstStep:
      '`holdfast jobs` tells why the run failed, and `holdfast push doctor clickstack-watchdog` tries the way to the monitor step by step. Until the heartbeat arrives again, nothing else watches the stack: see `holdfast doctor stack`.',
  },
  {
    name: 'router-ula-reconcile',
    title: 'Router ULA reconciler NOT RUNNING',
    severity: 'critical',
    measure: { table: 'gauge', metric: 'router.ula_reconcile.up', take: 'last', of: 'instance' },
    below: 1,
    window: '5m',
    every: '1m',
    onNoData: 'fire',
    expect: 'steady',
    explain: {
      measure: { table: 'gauge', metric: 'router.diag.heartbeat', take: 'count', of: 'host' },
      // holdfast-heartbeat.timer sends it, and goes on when the process of the reconciler has ended.
      sender: { 'service.name': 'holdfast-heartbeat' },
      present: 'the heartbeat of the same host arrives: the unit is down',
      absent: 'the heartbeat of the same host is silent too: the host or its collector is dark',
      unknown:
        'unknown whether the unit or the host is down: no heartbeat of this host outlives the process (holdfast-heartbeat.timer sends one)',
    },
    firstStep:
      'On the host, `systemctl status ula-reconcile` and `holdfast status`: start the unit if it is down, `holdfast router resume` if it was stopped. Legs keep their addresses until the next save of the app.',
  },
];
