/**
 * Where the ingest key is in a cluster: the effective config of the collector's pods, the Secret that the secrets store is
 * synced to, and the variable of the workloads that read it. Everything here is secret until it is a fingerprint.
 */
import type { KubernetesApi, KubernetesObject } from '../../core/contracts/kubernetes.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../core/kernel/json.ts';
import { type EffectiveConfig, readEffectiveConfig, unreadable } from './effective-config.ts';
import type { CollectorOptions } from './options.ts';

export type CollectorPods = NonNullable<CollectorOptions['collectorPods']>;
export type Refresh = NonNullable<CollectorOptions['refresh']>;

/** More pods than this are not read; the result gives their number. */
const MOST_PODS = 64;

/** A value that was read, or why it could not be. */
export type Found =
  | { readonly kind: 'value'; readonly value: string }
  | { readonly kind: 'missing'; readonly reason: string }
  | { readonly kind: 'unknown'; readonly reason: string };

/** A pod that should run. */
export interface WorkloadPod {
  /** E.g. `DaemonSet scraper-node`. */
  readonly workload: string;
  readonly name: string;
  readonly isRunning: boolean;
  /** When the oldest of its containers was started, epoch milliseconds: its environment is as old. */
  readonly startedAt?: number | undefined;
}

/** The effective config of each running collector pod, by name. @throws what the cluster throws */
export async function readCollectorPods(
  cluster: KubernetesApi,
  { namespace, labels, container, file }: CollectorPods,
  signal: AbortSignal,
): Promise<readonly { readonly pod: string; readonly config: EffectiveConfig }[]> {
  const { objects, whole } = await cluster.list(
    { apiVersion: 'v1', kind: 'Pod' },
    { namespace, labels },
    signal,
  );
  const all = objects.filter(runs);
  const running = all.slice(0, MOST_PODS);
  const rest = unseen(all.length - running.length, whole);
  const read = running.map(async ({ metadata: { name: pod } }) => {
    const result = await attempt(() => cluster.exec(namespace, pod, ['cat', file], { container, signal }));
    if (typeof result === 'string') return { pod, config: unreadable(result) };
    const { exitCode, output, errors } = result;
    const config =
      exitCode === 0
        ? readEffectiveConfig(output)
        : unreadable(`\`cat ${file}\` in pod ${pod} ended with ${exitCode}${lineOf(errors)}`);
    return { pod, config };
  });
  const seen = (await Promise.all(read)).sort((one, other) => (one.pod < other.pod ? -1 : 1));
  return rest === undefined ? seen : [...seen, { pod: 'the other pods', config: unreadable(rest) }];
}

/** @param more pods that are not checked; @param whole whether the list of pods is */
function unseen(more: number, whole: boolean): string | undefined {
  if (!whole) return 'the list of pods was too long to be read whole';
  return more > 0 ? `${more} more pods were not checked` : undefined;
}

/** The value of the synced Secret, and when the Secret was last changed (epoch milliseconds). */
export async function readSyncedSecret(
  cluster: KubernetesApi | undefined,
  refresh: Refresh | undefined,
  signal: AbortSignal,
): Promise<{ readonly found: Found; readonly changedAt?: number | undefined }> {
  if (!refresh?.syncedSecret) {
    return { found: unknown("no synced Secret is named (the collector's option refresh.syncedSecret)") };
  }
  if (!cluster) return { found: unknown('no cluster is configured (HOLDFAST_KUBECONFIG)') };
  const { namespace, syncedSecret } = refresh;
  const { name, property } = syncedSecret;
  const secret = await attempt(() =>
    cluster.get({ apiVersion: 'v1', kind: 'Secret' }, name, namespace, signal),
  );
  if (typeof secret === 'string') return { found: unknown(secret) };
  if (!secret) return { found: { kind: 'missing', reason: `there is no Secret ${name} in ${namespace}` } };
  const data = isObject(secret.data) ? secret.data[property] : undefined;
  if (typeof data !== 'string' || data === '') {
    return { found: { kind: 'missing', reason: `Secret ${name} has no property ${property}` } };
  }
  const value = Buffer.from(data, 'base64').toString('utf8').trim();
  return { found: { kind: 'value', value }, changedAt: changedAt(secret) };
}

/** The pods of the workloads that have the key in their environment, or why a workload's cannot be named. */
export async function listWorkloadPods(
  cluster: KubernetesApi,
  { namespace, deployments, daemonSets }: Refresh,
  signal: AbortSignal,
): Promise<readonly (WorkloadPod | { readonly workload: string; readonly reason: string })[]> {
  const workloads = [
    ...deployments.map((name) => ({ kind: 'Deployment', name })),
    ...daemonSets.map((name) => ({ kind: 'DaemonSet', name })),
  ];
  const listed = workloads.map(async ({ kind, name }) => {
    const workload = `${kind} ${name}`;
    const pods = await attempt(async () => {
      const object = await cluster.get({ apiVersion: 'apps/v1', kind }, name, namespace, signal);
      const labels = object && selectorOf(object);
      if (!object) return `there is no ${workload} in ${namespace}`;
      if (!labels) return 'its selector is more than labels';
      return cluster.list({ apiVersion: 'v1', kind: 'Pod' }, { namespace, labels }, signal);
    });
    if (typeof pods === 'string') return [{ workload, reason: pods }];
    const own = pods.objects.filter((pod) => !isEnding(pod));
    if (own.length === 0 && pods.whole) return [{ workload, reason: 'it has no pod' }];
    const shown = own.slice(0, MOST_PODS).map((pod) => ({
      workload,
      name: pod.metadata.name,
      isRunning: runs(pod),
      startedAt: startedAt(pod),
    }));
    const reason = unseen(own.length - shown.length, pods.whole);
    return reason === undefined ? shown : [...shown, { workload, reason }];
  });
  return (await Promise.all(listed)).flat();
}

/** The key in the environment of a pod's container, as a program that is started in it now has it. */
export async function readPodVariable(
  cluster: KubernetesApi,
  { namespace, variable }: Refresh,
  pod: string,
  signal: AbortSignal,
): Promise<Found> {
  const result = await attempt(() => cluster.exec(namespace, pod, ['printenv', variable], { signal }));
  if (typeof result === 'string') return unknown(result);
  const value = result.output.trim();
  if (result.exitCode === 0 && value !== '') return { kind: 'value', value };
  return unknown(`it has no variable ${variable} (\`printenv\` ended with ${result.exitCode})`);
}

function unknown(reason: string): Found {
  return { kind: 'unknown', reason };
}

/** @returns the text of a coded error instead of throwing it, as the reason why a value is unknown */
async function attempt<T>(work: () => Promise<T>): Promise<T | string> {
  try {
    return await work();
  } catch (error) {
    if (isCoded(error)) return error.what.replace(/\.$/, '');
    throw error;
  }
}

/** The first line of a program's error output. */
function lineOf(errors: string): string {
  const [line = ''] = errors.trim().split('\n');
  return line === '' ? '' : `: ${line.slice(0, 200)}`;
}

function statusOf(pod: KubernetesObject): Record<string, unknown> {
  return isObject(pod.status) ? pod.status : {};
}

function isEnding({ metadata }: KubernetesObject): boolean {
  return 'deletionTimestamp' in metadata && metadata.deletionTimestamp !== undefined;
}

function runs(pod: KubernetesObject): boolean {
  return statusOf(pod).phase === 'Running' && !isEnding(pod);
}

function startedAt(pod: KubernetesObject): number | undefined {
  const { containerStatuses } = statusOf(pod);
  const times = (Array.isArray(containerStatuses) ? containerStatuses : []).map((container) => {
    const state = isObject(container) && isObject(container.state) ? container.state : {};
    return isObject(state.running) ? Date.parse(String(state.running.startedAt)) : Number.NaN;
  });
  const oldest = Math.min(...times);
  return Number.isFinite(oldest) ? oldest : undefined;
}

function selectorOf({ spec }: KubernetesObject): Record<string, string> | undefined {
  const selector = isObject(spec) && isObject(spec.selector) ? spec.selector : {};
  const { matchLabels, matchExpressions } = selector;
  if (!isObject(matchLabels) || matchExpressions !== undefined) return undefined;
  const labels = Object.entries(matchLabels).map(([label, value]) => [label, String(value)]);
  return labels.length === 0 ? undefined : Object.fromEntries(labels);
}

/** The newest of the times at which somebody changed an object's fields, else that of its creation. */
function changedAt({ metadata }: KubernetesObject): number | undefined {
  const fields = 'managedFields' in metadata ? metadata.managedFields : undefined;
  const times = (Array.isArray(fields) ? fields : []).map((one) =>
    isObject(one) ? Date.parse(String(one.time)) : Number.NaN,
  );
  const all = [...times, Date.parse(metadata.creationTimestamp ?? '')].filter(Number.isFinite);
  return all.length === 0 ? undefined : Math.max(...all);
}
