/**
 * Checks that a stored key is in use: the value of the synced Secret, the start times of the pods that read it, and the
 * metrics that arrive. A check that cannot be made gives `not_checked` with the reason, and never counts as `ok`.
 */

import type { ColumnarDatabase } from '../../../core/contracts/columnar-database.ts';
import type { KubernetesApi } from '../../../core/contracts/kubernetes.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type { RefreshCheck } from '../../../machines/collector/key-rotation-rules.ts';
import { listWorkloadPods, type Refresh, readSyncedSecret } from '../cluster-keys.ts';

/** The sources of the checks. */
export interface Surroundings {
  readonly cluster: KubernetesApi | undefined;
  readonly database: ColumnarDatabase | undefined;
  readonly refresh: Refresh | undefined;
  /** Fingerprint of a value. */
  readonly fingerprintOf: (value: string) => string;
}

/** What the checks are about; times are epoch milliseconds. */
export interface Rotated {
  /** Fingerprint of the new key. */
  readonly fresh: string;
  readonly startedAt: number;
  readonly storedAt: number;
}

type Outcome = Omit<RefreshCheck, 'check'>;

const METRIC_TABLES = ['otel_metrics_gauge', 'otel_metrics_sum', 'otel_metrics_histogram'] as const;
/** Whoever sent in this many of the twelve five-minute spans before the rotation is expected to send again. */
const STEADY_SPANS = 6;
const MOST_SERVICES = 200;

/** @throws only errors without a code, which are faults of Holdfast itself */
export async function checkRefresh(
  { cluster, database, refresh, fingerprintOf }: Surroundings,
  rotated: Rotated,
  signal: AbortSignal,
): Promise<readonly RefreshCheck[]> {
  const { found, changedAt } = await readSyncedSecret(cluster, refresh, signal);
  const name = refresh?.syncedSecret?.name ?? '';
  const secret: Outcome =
    found.kind === 'unknown'
      ? notChecked(found.reason)
      : found.kind === 'missing'
        ? not(found.reason)
        : judgeSecret(name, fingerprintOf(found.value), rotated.fresh);
  const [pods, metrics] = await Promise.all([
    checkPods(cluster, refresh, { ...rotated, changedAt }, signal),
    checkMetrics(database, rotated, signal),
  ]);
  return [
    { check: 'synced_secret', ...secret },
    { check: 'pods', ...pods },
    { check: 'metrics', ...metrics },
  ];
}

function judgeSecret(name: string, has: string, fresh: string): Outcome {
  return has === fresh
    ? { result: 'ok', text: `Secret ${name} has the new key` }
    : not(`Secret ${name} has another key (${has})`);
}

/**
 * Environment variables are set when a container starts, so a pod must have been started after the Secret had the new
 * key.
 */
async function checkPods(
  cluster: KubernetesApi | undefined,
  refresh: Refresh | undefined,
  { storedAt, changedAt }: Rotated & { readonly changedAt?: number | undefined },
  signal: AbortSignal,
): Promise<Outcome> {
  if (!refresh || refresh.deployments.length + refresh.daemonSets.length === 0) {
    return notChecked("no workload is named (the collector's options refresh.deployments and .daemonSets)");
  }
  if (!cluster) return notChecked('no cluster is configured (HOLDFAST_KUBECONFIG)');
  const pods = await listWorkloadPods(cluster, refresh, signal);
  // The API gives whole seconds, so a start within the second of the change may have been before it.
  const since = Math.floor(Math.max(storedAt, changedAt ?? 0) / 1_000) * 1_000;
  const what =
    changedAt !== undefined && changedAt > storedAt ? 'its Secret was changed' : 'the key was stored';
  const old: string[] = [];
  const unseen: string[] = [];
  let restarted = 0;
  for (const pod of pods) {
    if ('reason' in pod) unseen.push(`${pod.workload}: ${pod.reason}`);
    else if (!pod.isRunning) old.push(`${pod.name} does not run yet`);
    else if (pod.startedAt === undefined) unseen.push(`${pod.name}: the cluster gives no time of its start`);
    else if (pod.startedAt < since) old.push(`${pod.name} runs since ${iso(pod.startedAt)}`);
    else restarted += 1;
  }
  if (old.length > 0) return not(`${listOf(old)}; ${what} at ${iso(since)}`);
  if (unseen.length > 0) return notChecked(listOf(unseen));
  return { result: 'ok', text: `${restarted} pods, all started since ${what} at ${iso(since)}` };
}

/** Each service that sent metrics steadily in the hour before the rotation must have sent some since the key was stored. */
async function checkMetrics(
  database: ColumnarDatabase | undefined,
  { startedAt, storedAt }: Rotated,
  signal: AbortSignal,
): Promise<Outcome> {
  if (!database) return notChecked('no database of metrics is configured');
  const spans = new Map<string, { before: number; since: number }>();
  try {
    for (const table of METRIC_TABLES) {
      const rows = await database.query<{ service: string; before: unknown; since: unknown }>(
        `SELECT ServiceName AS service,
           uniqExactIf(intDiv(toUnixTimestamp(TimeUnix), 300), TimeUnix < fromUnixTimestamp64Milli({started:Int64})) AS before,
           countIf(TimeUnix > fromUnixTimestamp64Milli({stored:Int64})) AS since
         FROM ${table}
         WHERE TimeUnix > fromUnixTimestamp64Milli({from:Int64}) AND TimeUnix < now() + INTERVAL 5 MINUTE AND ServiceName != 'holdfast'
         GROUP BY service ORDER BY service LIMIT ${MOST_SERVICES}`,
        { from: startedAt - 3_600_000, started: startedAt, stored: storedAt },
        { signal },
      );
      for (const { service, before, since } of rows) {
        const has = spans.get(service) ?? { before: 0, since: 0 };
        spans.set(service, {
          before: Math.max(has.before, Number(before)),
          since: has.since + Number(since),
        });
      }
    }
  } catch (error) {
    if (isCoded(error)) return notChecked(error.what.replace(/\.$/, ''));
    throw error;
  }
  const steady = [...spans].filter(([, { before }]) => before >= STEADY_SPANS);
  if (steady.length === 0) {
    return notChecked(
      'no service sent metrics steadily in the hour before the rotation, so none can be missed',
    );
  }
  const silent = steady
    .filter(([, { since }]) => since === 0)
    .map(([service]) => service || '(no service name)');
  if (silent.length > 0) return not(`no metrics since ${iso(storedAt)} from ${listOf(silent)}`);
  return {
    result: 'ok',
    text: `all ${steady.length} services that sent metrics before have sent some since ${iso(storedAt)}`,
  };
}

function not(text: string): Outcome {
  return { result: 'not', text };
}

function notChecked(text: string): Outcome {
  return { result: 'not_checked', text };
}

function iso(at: number): string {
  return new Date(at).toISOString().slice(0, 19).concat('Z');
}

function listOf(all: readonly string[]): string {
  const shown = all.slice(0, 5).join('; ');
  return all.length > 5 ? `${shown}; and ${all.length - 5} more` : shown;
}
