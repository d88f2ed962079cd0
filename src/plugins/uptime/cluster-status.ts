import { z } from 'zod';
import type { Cluster, ClusterObject } from '../../core/contracts/cluster.ts';
import { serveOperation } from '../../core/host/operations/serve.ts';
import type { PluginContext } from '../../core/host/plugin/definition.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../core/kernel/json.ts';

/** The path that `holdfast push doctor` posts to: only the running instance reaches the cluster. */
export const CLUSTER_PATH = '/uptime/cluster';
const DEADLINE_MS = 15_000;
const NAME = 'clickstack-watchdog';
const statusFields = z.strictObject({ namespace: z.string().max(253).default('clickstack') });

/** The job and its token in the cluster. */
export interface ClusterStatus {
  readonly secret: 'synced' | 'not synced' | 'absent' | 'unknown';
  readonly why: string;
  /** The image of the scheduled job. */
  readonly image?: string;
}

/** Serves what `holdfast push doctor` shows of the cluster. */
export function registerClusterStatus(context: PluginContext<{ cluster: Cluster | undefined }>): void {
  context.control((surface, { cluster }) => {
    serveOperation(surface, CLUSTER_PATH, statusFields, async ({ namespace }) => {
      if (!cluster) return { secret: 'unknown', why: 'no plugin provides a cluster' } satisfies ClusterStatus;
      try {
        return await readStatus(cluster, namespace, AbortSignal.timeout(DEADLINE_MS));
      } catch (error) {
        if (!isCoded(error)) throw error;
        return { secret: 'unknown', why: error.what } satisfies ClusterStatus;
      }
    });
  });
}

/** @throws HF_CLUSTER_UNREACHABLE, HF_CLUSTER_REFUSED */
export async function readStatus(
  cluster: Cluster,
  namespace: string,
  signal: AbortSignal,
): Promise<ClusterStatus> {
  const sync = { apiVersion: 'external-secrets.io/v1', kind: 'ExternalSecret' };
  const found = await cluster.get(sync, NAME, namespace, signal);
  const job = await cluster.get({ apiVersion: 'batch/v1', kind: 'CronJob' }, NAME, namespace, signal);
  const image = job && imageOf(job);
  return { ...syncOf(found, namespace), ...(image !== undefined && { image }) };
}

function syncOf(object: ClusterObject | undefined, namespace: string): Omit<ClusterStatus, 'image'> {
  const name = `ExternalSecret ${namespace}/${NAME}`;
  if (!object) return { secret: 'absent', why: `there is no ${name}` };
  const conditions =
    isObject(object.status) && Array.isArray(object.status.conditions) ? object.status.conditions : [];
  const ready = conditions.find((condition) => isObject(condition) && condition.type === 'Ready');
  const isSynced = ready?.status === 'True' && ready?.reason === 'SecretSynced';
  const says = ready ? `Ready ${String(ready.status)}, ${String(ready.reason)}` : 'no condition Ready';
  return { secret: isSynced ? 'synced' : 'not synced', why: `${name}: ${says}` };
}

function imageOf({ spec }: ClusterObject): string | undefined {
  const parsed = JSON.parse(JSON.stringify(spec ?? {}));
  const image = parsed.jobTemplate?.spec?.template?.spec?.containers?.[0]?.image;
  return typeof image === 'string' ? image : undefined;
}
