import type { z } from 'zod';
import type { ruleOptions } from './rule.ts';

type RuleInput = z.input<typeof ruleOptions>;

/**
 * The rules that come with Holdfast: of the NAS backup (O17, O18), of the watchdog's pushes (O19), and of the
 * reconciler's own sign of life (R28). Those that fire on silence wait for the first sample: an install that
 * sends no telemetry yet raises no alert, and `holdfast doctor alerts` reports it. `alerts({ rules: [...documentedRules, …] })` keeps them beside one's own.
 */
export const documentedRules: readonly RuleInput[] = [
  {
    name: 'nas-backup-failed',
    title: 'NAS backup snapshot FAILED',
    severity: 'critical',
    // Emitted once for each failed source and only then: a healthy run is silent.
    measure: { table: 'gauge', metric: 'nas.backup.snapshot.failed', take: 'max' },
    above: 0,
    window: '1d',
    every: '1h',
    onNoData: 'ok',
    nameBy: 'source',
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
    onNeverSeen: 'ok',
  },
  {
    name: 'nas-backup-stale',
    title: 'NAS backup STALE',
    severity: 'critical',
    // The timer on the host reports the same without this process; a dark collector is the rule above.
    measure: { table: 'sum', metric: 'file.mtime', take: 'age' },
    above: 36,
    window: '7d',
    every: '1h',
    onNoData: 'ok',
    labels: { priority: '1' },
  },
  {
    name: 'watchdog-push-failing',
    title: 'Observability watchdog push delivery FAILING',
    severity: 'critical',
    // A job that fails stays in its hour: over after a whole one without it. Other jobs have alerts of their own.
    measure: {
      table: 'gauge',
      metric: 'kube_job_failed',
      where: { job_name: 'clickstack-watchdog*' },
      take: 'max',
      buckets: true,
    },
    above: 0,
    window: '1h',
    every: '5m',
    onNoData: 'ok',
    nameBy: 'job_name',
  },
  {
    name: 'router-ula-reconcile',
    title: 'Router ULA reconciler NOT RUNNING',
    severity: 'critical',
    measure: { table: 'gauge', metric: 'router.ula_reconcile.up', take: 'last' },
    below: 1,
    window: '5m',
    every: '1m',
    onNoData: 'fire',
    onNeverSeen: 'ok',
    explain: {
      measure: { table: 'gauge', metric: 'router.diag.heartbeat', take: 'count' },
      present: 'the heartbeat of the same host arrives: the unit is down',
      absent: 'the heartbeat is silent too: the host or its collector is dark',
    },
  },
];
