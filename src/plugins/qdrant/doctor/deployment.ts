import { z } from 'zod';
import type { Cluster } from '../../../core/adapters/cluster.ts';
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
    })
    .optional(),
});

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

/** When the newest backup of the volume completed without errors or warnings, epoch milliseconds. */
export function lastGoodBackup(backups: readonly unknown[]): number | undefined {
  const times = backups.flatMap((backup) => {
    const status = backupShape.safeParse(backup).data?.status;
    const isGood = status?.phase === 'Completed' && status.errors === 0 && status.warnings === 0;
    const at = Date.parse(status?.completionTimestamp ?? '');
    return isGood && !Number.isNaN(at) ? [at] : [];
  });
  return times.length === 0 ? undefined : Math.max(...times);
}

/**
 * What is wrong with the store's deployment and the backups of its volume, as sentences for a person.
 *
 * @throws HF_CLUSTER_UNREACHABLE, HF_CLUSTER_REFUSED
 */
export async function deploymentFindings(
  cluster: Cluster,
  { deployment, staleHours }: QdrantOptions,
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
  const isStale = last === undefined || now - last > staleHours * 3_600_000;
  return [
    ...(missing.length > 0 ? [`${namespace}/${name} lacks ${missing.join(', ')}`] : []),
    ...(isStale ? [`${backupSchedule} has had no good backup of the volume for ${staleHours} h`] : []),
  ];
}
