/** Volumes of Longhorn by its own objects (`longhorn.io/v1beta2`): the health of their replicas, and their backups. */
import { z } from 'zod';
import type { KubernetesApi, KubernetesObject } from '../../../core/contracts/kubernetes.ts';
import type { CheckResult } from '../../../core/host/plugin/diagnosis.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { isAhead, isRecent } from '../../../machines/backup-age.ts';
import type { StackOptions } from '../options.ts';
import { unknown, worst } from './unknown.ts';

const API = 'longhorn.io/v1beta2';
/** Tasks of recurring jobs that make backups; the others make snapshots on the same disks, or clean up. */
const BACKUP_TASKS = ['backup', 'backup-force-create'];
const LABEL = { job: 'recurring-job.longhorn.io/', group: 'recurring-job-group.longhorn.io/' } as const;
const ENABLED = 'enabled';
const HOUR_MS = 3_600_000;

const named = z.object({
  name: z.string(),
  labels: z.record(z.string(), z.string()).default({}),
});
const volumeShape = z.object({
  metadata: named,
  spec: z
    .object({ numberOfReplicas: z.int().optional(), backupTargetName: z.string().default('default') })
    .prefault({}),
  status: z
    .object({
      state: z.string().default(''),
      robustness: z.string().default(''),
      kubernetesStatus: z
        .object({
          namespace: z.string().default(''),
          pvcName: z.string().default(''),
          // Set when the claim that is named was its last one, and is gone.
          lastPVCRefAt: z.string().default(''),
        })
        .prefault({}),
    })
    .prefault({}),
});
const replicaShape = z.object({
  spec: z.object({
    volumeName: z.string().default(''),
    healthyAt: z.string().default(''),
    failedAt: z.string().default(''),
  }),
  status: z.object({ currentState: z.string().default('') }).prefault({}),
});
const backupShape = z.object({
  metadata: named,
  // A new one has no status.
  status: z
    .object({
      state: z.string().default(''),
      error: z.string().default(''),
      volumeName: z.string().default(''),
      // The time of the data; the upload ends later.
      snapshotCreatedAt: z.string().default(''),
    })
    .prefault({}),
});
const targetShape = z.object({
  status: z.object({ available: z.boolean().default(false), lastSyncedAt: z.string().nullish() }),
});
const jobShape = z.object({
  metadata: named,
  spec: z.object({ task: z.string().default(''), groups: z.array(z.string()).nullish() }),
});

type Volume = z.output<typeof volumeShape>;
type State = CheckResult['state'];

interface Assessment {
  readonly state: State;
  readonly text: string;
}

/** A list of which every object is needed. */
class NotWhole extends Error {}

/**
 * Whether each volume of the stack's namespace has all its replicas (O29).
 *
 * @returns `unknown` where the cluster has no such volumes, or Longhorn does not say how they are
 * @throws what the cluster throws
 */
export async function replicasCheck(
  cluster: KubernetesApi,
  { namespace, longhorn }: StackOptions,
  signal: AbortSignal,
): Promise<CheckResult> {
  const lookedAt = `replicas of Longhorn's volumes in ${namespace}`;
  try {
    const volumes = await volumesOf(cluster, namespace, longhorn.namespace, signal);
    if (volumes.length === 0) return unknown(lookedAt, 'Longhorn has no volume of a claim there');
    const replicas = await listOf(cluster, 'Replica', longhorn.namespace, replicaShape, signal);
    const seen = volumes.map((volume) =>
      healthOf(
        volume,
        replicas.filter(({ spec }) => spec.volumeName === volume.metadata.name),
      ),
    );
    const state = worst(seen.map((each) => each.state));
    const found = seen.map(({ text }) => text).join('; ');
    if (state === 'ok') return { state, lookedAt, found };
    if (state === 'unknown') return unknown(lookedAt, found);
    const remedy = "Look at Longhorn's nodes and disks: a volume is lost with its last replica.";
    return { state, lookedAt, found, remedy };
  } catch (error) {
    if (error instanceof NotWhole) return unknown(lookedAt, error.message);
    if (isCoded(error, 'HF_KUBERNETES_KIND')) return unknown(lookedAt, 'the cluster has no Longhorn');
    throw error;
  }
}

function healthOf(
  { metadata, spec, status: { state, robustness, kubernetesStatus } }: Volume,
  replicas: readonly z.output<typeof replicaShape>[],
): Assessment {
  const place = `${kubernetesStatus.pvcName} (${metadata.name})`;
  const healthy = replicas.filter(
    ({ spec: { healthyAt, failedAt }, status: { currentState } }) =>
      healthyAt !== '' && failedAt === '' && currentState === 'running',
  ).length;
  const wanted = spec.numberOfReplicas;
  const counts = `${healthy} of ${wanted ?? 'an unknown number of'} replicas are healthy`;
  switch (robustness) {
    case 'faulted':
      return { state: 'fail', text: `${place} is faulted: no replica of it can be used` };
    case 'degraded':
      return { state: 'warn', text: `${place} is degraded: ${counts}` };
    case 'healthy':
      if (wanted === undefined) return { state: 'unknown', text: `${place}: ${counts}` };
      if (healthy < wanted) return { state: 'warn', text: `${place}: ${counts}` };
      return { state: 'ok', text: `${place}: ${counts}` };
    default: {
      const why =
        state === 'detached' ? 'of a detached volume Longhorn knows no health' : `it is ${state || 'new'}`;
      return { state: 'unknown', text: `${place}: ${why}` };
    }
  }
}

/**
 * The age of the newest backup of each claim's volume, and whether a recurring job makes more.
 *
 * @param now epoch milliseconds
 * @throws what the cluster throws
 */
export async function longhornBackups(
  cluster: KubernetesApi,
  { namespace, staleHours, longhorn }: StackOptions,
  claims: readonly string[],
  now: number,
  signal: AbortSignal,
): Promise<Assessment> {
  try {
    const list = <T extends z.ZodType>(kind: string, shape: T) =>
      listOf(cluster, kind, longhorn.namespace, shape, signal);
    const volumes = await volumesOf(cluster, namespace, longhorn.namespace, signal);
    const backups = await list('Backup', backupShape);
    const jobs = await list('RecurringJob', jobShape);
    const seen: Assessment[] = [];
    for (const claim of claims) {
      const volume = volumes.find(({ status }) => status.kubernetesStatus.pvcName === claim);
      if (!volume) {
        seen.push({ state: 'fail', text: `${claim}: Longhorn has no volume of this claim` });
        continue;
      }
      const kind = { apiVersion: API, kind: 'BackupTarget' };
      const { backupTargetName } = volume.spec;
      const target = await cluster.get(kind, backupTargetName, longhorn.namespace, signal);
      const fault = targetFault(target, backupTargetName, staleHours, now);
      seen.push(
        fault === undefined
          ? ageOf(claim, volume, backups, jobs, staleHours, now)
          : { state: 'unknown', text: `${claim}: ${fault}` },
      );
    }
    return { state: worst(seen.map(({ state }) => state)), text: seen.map(({ text }) => text).join(', ') };
  } catch (error) {
    if (error instanceof NotWhole) return { state: 'unknown', text: error.message };
    throw error;
  }
}

/** What Longhorn lists of a target that it cannot reach is what was there earlier. */
function targetFault(
  target: KubernetesObject | undefined,
  name: string,
  staleHours: number,
  now: number,
): string | undefined {
  const { available, lastSyncedAt } = targetShape.safeParse(target).data?.status ?? {};
  if (!target) return `there is no backup target ${name}`;
  if (!available) return `the backup target ${name} is not available`;
  const at = Date.parse(lastSyncedAt ?? '');
  if (isRecent(at, now, staleHours * HOUR_MS)) return undefined;
  return `what the backup target ${name} holds was last read ${Number.isNaN(at) ? 'never' : `on ${lastSyncedAt}`}`;
}

function ageOf(
  claim: string,
  { metadata: { name, labels } }: Volume,
  backups: readonly z.output<typeof backupShape>[],
  jobs: readonly z.output<typeof jobShape>[],
  staleHours: number,
  now: number,
): Assessment {
  const times = backups
    .filter(({ status }) => status.volumeName === name && status.state === 'Completed' && status.error === '')
    .map(({ status }) => Date.parse(status.snapshotCreatedAt))
    .filter((at) => !Number.isNaN(at));
  if (times.length === 0)
    return { state: 'fail', text: `Longhorn's backup of ${claim}: there is no good one` };
  const newest = Math.max(...times);
  const age = now - newest;
  const hours = Math.max(0, Math.floor(age / HOUR_MS));
  const text = `Longhorn's backup of ${claim}`;
  if (isAhead(newest, now))
    return { state: 'fail', text: `${text}: the newest good one is dated in the future` };
  if (age > staleHours * HOUR_MS)
    return { state: 'fail', text: `${text}: the newest good one is ${hours} h old` };
  const isBackedUp = jobs.some(
    ({ metadata, spec }) =>
      BACKUP_TASKS.includes(spec.task) &&
      (labels[LABEL.job + metadata.name] === ENABLED ||
        spec.groups?.some((group) => labels[LABEL.group + group] === ENABLED)),
  );
  if (!isBackedUp)
    return { state: 'warn', text: `${text}: ${hours} h ago, and no recurring job makes the next one` };
  return { state: 'ok', text: `${text}: ${hours} h ago` };
}

/** The volumes of claims that are in a namespace now. */
async function volumesOf(
  cluster: KubernetesApi,
  namespace: string,
  where: string,
  signal: AbortSignal,
): Promise<readonly Volume[]> {
  const volumes = await listOf(cluster, 'Volume', where, volumeShape, signal);
  return volumes.filter(({ status: { kubernetesStatus } }) => {
    const { namespace: own, pvcName, lastPVCRefAt } = kubernetesStatus;
    return own === namespace && pvcName !== '' && lastPVCRefAt === '';
  });
}

/** @throws NotWhole it is longer than can be read, or has objects of another form; what the cluster throws */
async function listOf<T extends z.ZodType>(
  cluster: KubernetesApi,
  kind: string,
  namespace: string,
  shape: T,
  signal: AbortSignal,
): Promise<readonly z.output<T>[]> {
  const { objects, whole } = await cluster.list({ apiVersion: API, kind }, { namespace }, signal);
  if (!whole) throw new NotWhole(`only the first ${objects.length} of Longhorn's ${kind}s could be read`);
  return objects.map((object) => {
    const { data } = shape.safeParse(object);
    if (data === undefined) {
      throw new NotWhole(`Longhorn's ${kind} ${object.metadata.name} has another form than ${API} says`);
    }
    return data;
  });
}
