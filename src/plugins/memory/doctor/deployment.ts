import { z } from 'zod';
import type { Cluster } from '../../../core/contracts/cluster.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type { QdrantOptions } from '../options.ts';

/** Without these the store writes its snapshots to its own disk, and the recurring ones end (B7). */
const SETTINGS = [
  'QDRANT__STORAGE__SNAPSHOTS_CONFIG__SNAPSHOTS_STORAGE',
  'QDRANT__STORAGE__SNAPSHOTS_CONFIG__S3_CONFIG__BUCKET',
  'QDRANT__STORAGE__SNAPSHOTS_CONFIG__S3_CONFIG__ACCESS_KEY',
  'QDRANT__STORAGE__SNAPSHOTS_CONFIG__S3_CONFIG__SECRET_KEY',
] as const;

const variable = z.object({
  name: z.string(),
  value: z.string().optional(),
  valueFrom: z.unknown().optional(),
});
const deploymentShape = z.object({
  spec: z.object({
    template: z.object({
      spec: z.object({ containers: z.array(z.object({ env: z.array(variable).default([]) })) }),
    }),
  }),
});
const backupShape = z.object({
  metadata: z.object({ name: z.string() }),
  status: z
    .object({
      phase: z.string().optional(),
      completionTimestamp: z.string().optional(),
      errors: z.number().default(0),
      warnings: z.number().default(0),
      formatVersion: z.string().optional(),
    })
    .optional(),
});

const COPIES = [
  { apiVersion: 'velero.io/v1', kind: 'PodVolumeBackup' },
  { apiVersion: 'velero.io/v2alpha1', kind: 'DataUpload' },
] as const;
const copyShape = z.object({
  spec: z.object({ sourcePVC: z.string().optional() }).optional(),
  status: z.object({ progress: z.object({ totalBytes: z.number().optional() }).optional() }).optional(),
});
const HOUR_MS = 3_600_000;
const USUAL_BYTES = 196_000_000;
/** So many times larger or smaller than usual is far from it. */
const FAR = 4;

/** The object-store settings that a deployment of the store lacks; from a Secret counts as set. */
export function missingSettings(deployment: unknown): string[] {
  const parsed = deploymentShape.safeParse(deployment);
  if (!parsed.success) return [...SETTINGS];
  const env = parsed.data.spec.template.spec.containers.flatMap((container) => container.env);
  const isSet = (name: string) =>
    env.some((one) => one.name === name && (one.valueFrom !== undefined || (one.value ?? '') !== ''));
  const storage = env.find(({ name }) => name === SETTINGS[0]);
  return SETTINGS.filter((name) => !isSet(name) || (name === SETTINGS[0] && storage?.value === 'local'));
}

export interface GoodBackup {
  readonly name: string;
  /** Epoch milliseconds. */
  readonly at: number;
  /** Of what it is written in; ours is read since 1.0.0. */
  readonly format: string | undefined;
}

/** The newest backup of the volume that completed without errors or warnings. */
export function lastGoodBackup(backups: readonly unknown[]): GoodBackup | undefined {
  const good = backups.flatMap((backup) => {
    const { metadata, status } = backupShape.safeParse(backup).data ?? {};
    const isGood = status?.phase === 'Completed' && status.errors === 0 && status.warnings === 0;
    const at = Date.parse(status?.completionTimestamp ?? '');
    if (!isGood || !metadata || Number.isNaN(at)) return [];
    return [{ name: metadata.name, at, format: status.formatVersion }];
  });
  return good.toSorted((a, b) => b.at - a.at)[0];
}

/** Bytes of the claim's volume in a backup: copied by the node's agent, or moved from a snapshot of the volume. */
async function sizeOf(
  cluster: Cluster,
  backup: GoodBackup,
  { backupNamespace, claim }: QdrantOptions['deployment'],
  signal: AbortSignal,
): Promise<number | undefined> {
  const where = { namespace: backupNamespace, labels: { 'velero.io/backup-name': backup.name } };
  for (const kind of COPIES) {
    const copies = await cluster.list(kind, where, signal).catch((error) => {
      // The cluster may know only one of the two.
      if (isCoded(error, 'HF_CLUSTER_KIND')) return [];
      throw error;
    });
    const sizes = copies.flatMap((copy) => {
      const { spec, status } = copyShape.safeParse(copy).data ?? {};
      const isOther = spec?.sourcePVC !== undefined && spec.sourcePVC !== claim;
      const bytes = status?.progress?.totalBytes;
      return isOther || bytes === undefined ? [] : [bytes];
    });
    if (sizes.length > 0) return Math.max(...sizes);
  }
  return undefined;
}

/**
 * What is wrong with the store's deployment and the backups of its volume, as sentences for a person.
 *
 * @throws HF_CLUSTER_UNREACHABLE, HF_CLUSTER_REFUSED
 */
export async function deploymentFindings(
  cluster: Cluster,
  { deployment, staleHours, volumeCopies }: QdrantOptions,
  now: number,
  signal: AbortSignal,
): Promise<string[]> {
  const { namespace, name, backupNamespace, backupSchedule } = deployment;
  const found = await cluster.get({ apiVersion: 'apps/v1', kind: 'Deployment' }, name, namespace, signal);
  if (!found) return [`there is no deployment ${namespace}/${name}`];
  const missing = missingSettings(found);
  const backups = await cluster.list(
    { apiVersion: 'velero.io/v1', kind: 'Backup' },
    { namespace: backupNamespace, labels: { 'velero.io/schedule-name': backupSchedule } },
    signal,
  );
  const last = lastGoodBackup(backups);
  const isStale = last === undefined || now - last.at > staleHours * HOUR_MS;
  const size = last && (await sizeOf(cluster, last, deployment, signal));
  const usual = volumeCopies.usualBytes ?? USUAL_BYTES;
  const isFar = size !== undefined && (size > usual * FAR || size < usual / FAR);
  const isOther = last?.format !== undefined && !last.format.startsWith('1.');
  return [
    ...(missing.length > 0 ? [`${namespace}/${name} lacks ${missing.join(', ')}`] : []),
    ...(isStale ? [`${backupSchedule} has had no good backup of the volume for ${staleHours} h`] : []),
    ...(isFar ? [`${last?.name} has ${size} bytes of the volume; usual are ${usual}`] : []),
    ...(isOther
      ? [`${last?.name} is written in format ${last?.format}, which a restore here may not read`]
      : []),
  ];
}
