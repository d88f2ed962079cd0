import type { Cluster } from '../../../core/contracts/cluster.ts';
import type { CollectorOptions } from '../options.ts';

type Refresh = NonNullable<CollectorOptions['refresh']>;

/**
 * Has a new key taken up now: the secret-sync object is annotated, which makes it read the secrets store, and what
 * holds the old value in its environment is restarted.
 *
 * @param at when it was asked for, epoch ms: the same again after a crash, so nothing restarts twice
 * @returns what was done, for people
 * @throws HF_CLUSTER_UNREACHABLE, HF_CLUSTER_REFUSED
 */
export async function forceRefresh(
  cluster: Cluster,
  { namespace, secretSync, deployments, daemonSets }: Refresh,
  at: number,
  signal: AbortSignal,
): Promise<string[]> {
  const done: string[] = [];
  if (secretSync) {
    const { apiVersion, kind, name, annotation } = secretSync;
    const patch = { metadata: { annotations: { [annotation]: String(at) } } };
    await cluster.patch({ apiVersion, kind }, name, namespace, patch, signal);
    done.push(`annotated ${kind} ${name}`);
  }
  const restartedAt = new Date(at).toISOString();
  const restart = {
    spec: { template: { metadata: { annotations: { 'kubectl.kubernetes.io/restartedAt': restartedAt } } } },
  };
  const workloads = [
    ...deployments.map((name) => ({ kind: 'Deployment', name })),
    ...daemonSets.map((name) => ({ kind: 'DaemonSet', name })),
  ];
  for (const { kind, name } of workloads) {
    await cluster.patch({ apiVersion: 'apps/v1', kind }, name, namespace, restart, signal);
    done.push(`restarted ${kind} ${name}`);
  }
  return done;
}
