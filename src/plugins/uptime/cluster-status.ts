import { z } from 'zod';
import type { KubernetesApi, KubernetesObject } from '../../core/contracts/kubernetes.ts';
import { serveOperation } from '../../core/host/operations/serve.ts';
import type { PluginContext } from '../../core/host/plugin/definition.ts';
import type { Clock } from '../../core/kernel/clock.ts';
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
export function registerClusterStatus(
  context: PluginContext<{ readonly cluster: KubernetesApi | undefined; readonly clock: Clock }>,
): void {
  context.control((surface, { cluster, clock }) => {
    serveOperation(surface, CLUSTER_PATH, statusFields, async ({ namespace }) => {
      if (!cluster) return { secret: 'unknown', why: 'no plugin provides a cluster' } satisfies ClusterStatus;
      try {
        return await readStatus(cluster, namespace, AbortSignal.timeout(DEADLINE_MS), clock.now());
      } catch (error) {
        if (!isCoded(error)) throw error;
        return { secret: 'unknown', why: error.what } satisfies ClusterStatus;
      }
    });
  });
}

/**
 * @param now epoch milliseconds
 * @throws HF_KUBERNETES_UNREACHABLE, HF_KUBERNETES_REFUSED
 */
export async function readStatus(
  cluster: KubernetesApi,
  namespace: string,
  signal: AbortSignal,
  now: number,
): Promise<ClusterStatus> {
  const sync = { apiVersion: 'external-secrets.io/v1', kind: 'ExternalSecret' };
  const found = await cluster.get(sync, NAME, namespace, signal);
  const job = await cluster.get({ apiVersion: 'batch/v1', kind: 'CronJob' }, NAME, namespace, signal);
  const image = job && imageOf(job);
  return { ...syncOf(found, namespace, now), ...(image !== undefined && { image }) };
}

function syncOf(
  object: KubernetesObject | undefined,
  namespace: string,
  now: number,
): Omit<ClusterStatus, 'image'> {
  const name = `ExternalSecret ${namespace}/${NAME}`;
  if (!object) return { secret: 'absent', why: `there is no ${name}` };
  const conditions =
    isObject(object.status) && Array.isArray(object.status.conditions) ? object.status.conditions : [];
  const ready = conditions.find((condition) => isObject(condition) && condition.type === 'Ready');
  const isSynced = ready?.status === 'True' && ready?.reason === 'SecretSynced';
  const says = ready ? `Ready ${String(ready.status)}, ${String(ready.reason)}` : 'no condition Ready';
  if (!isSynced) return { secret: 'not synced', why: `${name}: ${says}` };
  const old = oldRefresh(object, now);
  // The condition stays as it is while the operator does not work.
  if (old !== undefined) return { secret: 'unknown', why: `${name}: ${says}, but ${old}` };
  return { secret: 'synced', why: `${name}: ${says}` };
}

const refreshed = z.object({
  spec: z
    .object({ refreshPolicy: z.string().default('Periodic'), refreshInterval: z.string().default('1h') })
    .prefault({}),
  status: z.object({ refreshTime: z.string().nullish() }),
});
const UNITS = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1, us: 0.001, µs: 0.001, ns: 0.000_001 } as const;
/** How much later than its interval a refresh may come: the operator tries again after an error. */
const LATE_MS = 10 * 60_000;

/** @returns why the last refresh says nothing of now; undefined when it came in its interval, or none is due */
function oldRefresh(object: KubernetesObject, now: number): string | undefined {
  const { data } = refreshed.safeParse(object);
  if (!data) return 'it does not say when it was refreshed';
  const { spec, status } = data;
  const at = Date.parse(status.refreshTime ?? '');
  if (Number.isNaN(at)) return 'it does not say when it was refreshed';
  const intervalMs = goDuration(spec.refreshInterval);
  // Only a periodic one with an interval is refreshed again by itself.
  if (spec.refreshPolicy !== 'Periodic' || intervalMs === 0) return undefined;
  if (intervalMs !== undefined && now - at <= 2 * intervalMs + LATE_MS) return undefined;
  return `it was refreshed on ${status.refreshTime}, and every ${spec.refreshInterval} is its interval`;
}

/** `1h30m` in milliseconds; undefined for another form. */
function goDuration(text: string): number | undefined {
  if (text === '0') return 0;
  if (!/^(?:\d+(?:\.\d+)?(?:h|ms|m|us|µs|ns|s))+$/.test(text)) return undefined;
  return [...text.matchAll(/(\d+(?:\.\d+)?)(h|ms|m|us|µs|ns|s)/g)].reduce(
    (sum, [, count, unit]) => sum + Number(count) * UNITS[unit as keyof typeof UNITS],
    0,
  );
}

function imageOf({ spec }: KubernetesObject): string | undefined {
  const parsed = JSON.parse(JSON.stringify(spec ?? {}));
  const image = parsed.jobTemplate?.spec?.template?.spec?.containers?.[0]?.image;
  return typeof image === 'string' ? image : undefined;
}
