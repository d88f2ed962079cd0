/** Dates of the backups of the stack's volumes (O29): made by Velero or Longhorn, or as snapshots of the claims. */
import { z } from 'zod';
import type { KubernetesApi } from '../../../core/contracts/kubernetes.ts';
import type { CheckResult } from '../../../core/host/plugin/diagnosis.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { isAhead } from '../../../machines/backup-age.ts';
import type { StackOptions, VolumeBackup } from '../options.ts';
import { longhornBackups } from './longhorn.ts';
import { unknown, worst } from './unknown.ts';

const HOUR_MS = 3_600_000;
const VOLUMES = {
  columnarDatabase: 'columnar database',
  documentDatabase: 'document database',
  coordinationKeeper: 'coordination keeper',
} as const;
const REMEDY = 'Look at the backup operator: a volume without a good backup is lost with its disk.';

const names = z.array(z.string()).nullish();
const veleroBackup = z.object({
  metadata: z.object({ name: z.string() }),
  spec: z.object({ includedNamespaces: names, excludedNamespaces: names }).prefault({}),
  status: z
    .object({
      phase: z.string().optional(),
      completionTimestamp: z.string().nullish(),
      errors: z.number().default(0),
      warnings: z.number().default(0),
      volumeSnapshotsCompleted: z.number().default(0),
      csiVolumeSnapshotsCompleted: z.number().default(0),
    })
    .optional(),
});
const snapshot = z.object({
  spec: z.object({ source: z.object({ persistentVolumeClaimName: z.string().optional() }) }),
  status: z
    .object({
      readyToUse: z.boolean().optional(),
      creationTime: z.string().nullish(),
      error: z.unknown().optional(),
    })
    .optional(),
});

interface Assessment {
  readonly state: CheckResult['state'];
  readonly text: string;
}

/**
 * The age of the newest good backup of each volume.
 *
 * @param now epoch milliseconds
 */
export async function volumesCheck(
  cluster: KubernetesApi,
  stack: StackOptions,
  now: number,
  signal: AbortSignal,
): Promise<CheckResult> {
  const lookedAt = `backups of the stack's volumes in ${stack.namespace}`;
  const seen: Assessment[] = [];
  for (const [volume, name] of Object.entries(VOLUMES)) {
    const ways = stack.volumes[volume as keyof typeof VOLUMES];
    if (!ways)
      seen.push({
        state: 'unknown',
        text: `${name}: \`stack.volumes.${volume}\` does not say how it is backed up`,
      });
    for (const way of ways ?? []) {
      const { state, text } = await look(cluster, stack, way, now, signal);
      seen.push({ state, text: `${name}: ${text}` });
    }
  }
  const state = worst(seen.map((each) => each.state));
  const text = seen.map((each) => each.text).join('; ');
  if (state === 'unknown') return unknown(lookedAt, text);
  const found = `${text}; all of them crash-consistent, none a backup by the database itself`;
  return state === 'ok' ? { state, lookedAt, found } : { state, lookedAt, found, remedy: REMEDY };
}

async function look(
  cluster: KubernetesApi,
  stack: StackOptions,
  way: VolumeBackup,
  now: number,
  signal: AbortSignal,
): Promise<Assessment> {
  try {
    if (way.by === 'velero') {
      const { backup, whole } = await newestOfSchedule(cluster, stack.namespace, way, signal);
      const what = `Velero's schedule ${way.schedule}`;
      const seen = assess(what, backup?.at, whole, stack.staleHours, now);
      if (seen.state !== 'ok' || !backup) return seen;
      const data = await dataIn(cluster, way.namespace, backup, stack.namespace, signal);
      if (data === 'some') return seen;
      if (data === 'unknown')
        return { state: 'unknown', text: `${what}: its copies of volumes could not be read` };
      return { state: 'fail', text: `${what}: ${backup.name} is complete, and holds no copy of a volume` };
    }
    if (way.by === 'longhorn') return await longhornBackups(cluster, stack, way.claims, now, signal);
    const { dates, whole } = await newestOfClaims(cluster, stack.namespace, way.claims, signal);
    const each = way.claims.map((claim) =>
      assess(`snapshot of ${claim}`, dates.get(claim), whole, stack.staleHours, now),
    );
    return { state: worst(each.map(({ state }) => state)), text: each.map(({ text }) => text).join(', ') };
  } catch (error) {
    if (!isCoded(error)) throw error;
    return { state: 'unknown', text: error.what };
  }
}

/** @param whole whether all backups were seen: a newer one may be among the others, good or bad */
function assess(
  what: string,
  at: number | undefined,
  whole: boolean,
  staleHours: number,
  now: number,
): Assessment {
  if (!whole) return { state: 'unknown', text: `${what}: there are more than could be read` };
  if (at === undefined) return { state: 'fail', text: `${what}: there is no good one` };
  if (isAhead(at, now)) return { state: 'fail', text: `${what}: the newest good one is dated in the future` };
  const hours = Math.floor((now - at) / HOUR_MS);
  if (now - at > staleHours * HOUR_MS)
    return { state: 'fail', text: `${what}: the newest good one is ${hours} h old` };
  return { state: 'ok', text: `${what}: ${Math.max(0, hours)} h ago` };
}

interface VeleroBackup {
  readonly name: string;
  /** Epoch milliseconds. */
  readonly at: number;
  /** Snapshots of volumes that it counts. */
  readonly snapshots: number;
}

/** @returns the newest backup that completed and covers the namespace */
async function newestOfSchedule(
  cluster: KubernetesApi,
  namespace: string,
  { schedule, namespace: where }: Extract<VolumeBackup, { by: 'velero' }>,
  signal: AbortSignal,
): Promise<{ backup: VeleroBackup | undefined; whole: boolean }> {
  const labels = { 'velero.io/schedule-name': schedule };
  const { objects, whole } = await cluster.list(
    { apiVersion: 'velero.io/v1', kind: 'Backup' },
    { namespace: where, labels },
    signal,
  );
  const good = objects.flatMap((object): VeleroBackup[] => {
    const { metadata, spec, status } = veleroBackup.safeParse(object).data ?? {};
    const at = Date.parse(status?.completionTimestamp ?? '');
    const isGood = status?.phase === 'Completed' && status.errors === 0 && status.warnings === 0;
    const { includedNamespaces, excludedNamespaces } = spec ?? {};
    const isIncluded =
      !includedNamespaces?.length || includedNamespaces.some((name) => name === '*' || name === namespace);
    const isOfNamespace = isIncluded && !excludedNamespaces?.includes(namespace);
    if (!metadata || !isGood || !isOfNamespace || Number.isNaN(at)) return [];
    const snapshots = status.volumeSnapshotsCompleted + status.csiVolumeSnapshotsCompleted;
    return [{ name: metadata.name, at, snapshots }];
  });
  return { backup: good.toSorted((one, other) => other.at - one.at)[0], whole };
}

const podVolume = z.object({
  spec: z.object({ pod: z.object({ namespace: z.string().optional() }) }),
  status: z.object({ phase: z.string().optional() }).optional(),
});
const dataUpload = z.object({
  spec: z.object({ sourceNamespace: z.string() }),
  status: z.object({ phase: z.string().optional() }).optional(),
});

/** Whether a backup has data of volumes beside objects: snapshots, or copies by the node's agent. */
async function dataIn(
  cluster: KubernetesApi,
  where: string,
  { name, snapshots }: VeleroBackup,
  namespace: string,
  signal: AbortSignal,
): Promise<'some' | 'none' | 'unknown'> {
  if (snapshots > 0) return 'some';
  const labels = { 'velero.io/backup-name': name };
  const list = (apiVersion: string, kind: string) =>
    cluster.list({ apiVersion, kind }, { namespace: where, labels }, signal).catch((error: unknown) => {
      // The cluster may have only one of the two kinds.
      if (isCoded(error, 'HF_KUBERNETES_KIND')) return { objects: [], whole: true };
      throw error;
    });
  const pods = await list('velero.io/v1', 'PodVolumeBackup');
  const uploads = await list('velero.io/v2alpha1', 'DataUpload');
  const copied = [
    ...pods.objects.map((object) => {
      const { spec, status } = podVolume.safeParse(object).data ?? {};
      return { of: spec?.pod.namespace, phase: status?.phase };
    }),
    ...uploads.objects.map((object) => {
      const { spec, status } = dataUpload.safeParse(object).data ?? {};
      return { of: spec?.sourceNamespace, phase: status?.phase };
    }),
  ].some(({ of, phase }) => of === namespace && phase === 'Completed');
  if (copied) return 'some';
  return pods.whole && uploads.whole ? 'none' : 'unknown';
}

async function newestOfClaims(
  cluster: KubernetesApi,
  namespace: string,
  claims: readonly string[],
  signal: AbortSignal,
): Promise<{ dates: ReadonlyMap<string, number>; whole: boolean }> {
  const kind = { apiVersion: 'snapshot.storage.k8s.io/v1', kind: 'VolumeSnapshot' };
  const { objects, whole } = await cluster.list(kind, { namespace }, signal);
  const listed = objects.flatMap((object) => snapshot.safeParse(object).data ?? []);
  const dates = new Map(
    claims.flatMap((claim) => {
      const at = newest(
        listed
          .filter(({ spec, status }) => {
            const isGood = status?.readyToUse === true && (status.error ?? null) === null;
            return isGood && spec.source.persistentVolumeClaimName === claim;
          })
          .map(({ status }) => status?.creationTime),
      );
      return at === undefined ? [] : [[claim, at] as const];
    }),
  );
  return { dates, whole };
}

function newest(times: readonly (string | null | undefined)[]): number | undefined {
  const dates = times.map((time) => Date.parse(time ?? '')).filter((time) => !Number.isNaN(time));
  return dates.length === 0 ? undefined : Math.max(...dates);
}
