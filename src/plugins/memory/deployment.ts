/** The memory store's deployment in a cluster (B7): its object-store settings, and the backups of its volume. */
import { z } from 'zod';
import type { KubernetesApi } from '../../core/contracts/kubernetes.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../core/kernel/json.ts';
import { isAhead } from '../../machines/backup-age.ts';
import { isUnusualSize } from '../../machines/memory/backups-rules.ts';
import { type GoodBackup, goodBackups } from './backups/cluster-backups.ts';
import type { MemoryOptions } from './options.ts';

/** What was seen of a deployment: what is wrong, and what could not be looked at, as sentences for a person. */
export interface DeploymentSeen {
  readonly findings: readonly string[];
  readonly unseen: readonly string[];
}

/** Without these the store writes its snapshots to its own disk, and recurring snapshots stop (B7). */
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
const sourceReference = z.object({ name: z.string(), optional: z.boolean().default(false) });
/** A source in a container's `envFrom`: all entries of a ConfigMap or Secret become variables. */
const variablesSource = z.object({
  prefix: z.string().default(''),
  configMapRef: sourceReference.optional(),
  secretRef: sourceReference.optional(),
});
const deploymentShape = z.object({
  spec: z.object({
    template: z.object({
      spec: z.object({
        containers: z.array(
          z.object({
            env: z.array(variable).default([]),
            envFrom: z.array(variablesSource).default([]),
          }),
        ),
      }),
    }),
  }),
});
/** Variables of a container. For one that comes from a Secret only the fact that it is set is kept, not its value. */
type Variables = ReadonlyMap<string, string | undefined>;
const COPIES = [
  { apiVersion: 'velero.io/v1', kind: 'PodVolumeBackup' },
  { apiVersion: 'velero.io/v2alpha1', kind: 'DataUpload' },
] as const;
const copyShape = z.object({
  spec: z.object({ sourcePVC: z.string().optional() }).optional(),
  status: z.object({ progress: z.object({ totalBytes: z.number().optional() }).optional() }).optional(),
});
const HOUR_MS = 3_600_000;
/** Bytes of the volume, where nothing is configured. */
const USUAL_BYTES = 196_000_000;

/**
 * The object-store settings that a deployment of the store lacks; a value from a Secret counts as set.
 *
 * @param sources variables of the ConfigMaps and Secrets that `envFrom` names, by `kind name`
 */
export function missingSettings(
  deployment: unknown,
  sources: ReadonlyMap<string, Variables> = new Map(),
): string[] {
  const parsed = deploymentShape.safeParse(deployment);
  if (!parsed.success) return [...SETTINGS];
  const set = new Map<string, string | undefined>();
  for (const { env, envFrom } of parsed.data.spec.template.spec.containers) {
    for (const { prefix, ...references } of envFrom) {
      for (const source of sourcesOf(references)) {
        for (const [name, value] of sources.get(source.key) ?? []) set.set(prefix + name, value);
      }
    }
    // `env` takes precedence over `envFrom`.
    for (const { name, value, valueFrom } of env)
      set.set(name, valueFrom === undefined ? (value ?? '') : undefined);
  }
  return SETTINGS.filter((name) => {
    const value = set.get(name);
    const isSet = set.has(name) && value !== '';
    return !isSet || (name === SETTINGS[0] && value === 'local');
  });
}

interface Source {
  readonly kind: 'ConfigMap' | 'Secret';
  readonly name: string;
  readonly key: string;
  readonly optional: boolean;
}

function sourcesOf({
  configMapRef,
  secretRef,
}: Pick<z.output<typeof variablesSource>, 'configMapRef' | 'secretRef'>): Source[] {
  return (
    [
      ['ConfigMap', configMapRef],
      ['Secret', secretRef],
    ] as const
  ).flatMap(([kind, reference]) =>
    reference ? [{ kind, ...reference, key: `${kind} ${reference.name}` }] : [],
  );
}

/**
 * Reads what `envFrom` of the deployment names.
 *
 * @returns the variables, and what is not there or may not be read, as sentences
 */
async function readSources(
  cluster: KubernetesApi,
  deployment: unknown,
  namespace: string,
  signal: AbortSignal,
): Promise<{
  readonly sources: ReadonlyMap<string, Variables>;
  readonly absent: readonly string[];
  readonly refused: readonly string[];
}> {
  const containers = deploymentShape.safeParse(deployment).data?.spec.template.spec.containers ?? [];
  const wanted = containers.flatMap(({ envFrom }) => envFrom.flatMap(sourcesOf));
  const sources = new Map<string, Variables>();
  const absent: string[] = [];
  const refused: string[] = [];
  for (const { kind, name, key, optional } of wanted) {
    try {
      const found = await cluster.get({ apiVersion: 'v1', kind }, name, namespace, signal);
      const data = found && isObject(found.data) ? found.data : {};
      const shown = (value: unknown) => (kind === 'Secret' ? (value === '' ? '' : undefined) : String(value));
      sources.set(key, new Map(Object.entries(data).map(([entry, value]) => [entry, shown(value)])));
      if (!found && !optional)
        absent.push(`there is no ${kind} ${namespace}/${name}, which its environment names`);
    } catch (error) {
      if (!isCoded(error, 'HF_KUBERNETES_REFUSED')) throw error;
      refused.push(`it cannot be told what ${kind} ${namespace}/${name} sets: ${error.what}`);
    }
  }
  return { sources, absent, refused };
}

/** Bytes of the claim's volume in a backup, copied by the node's agent or moved from a snapshot of the volume. */
async function sizeOf(
  cluster: KubernetesApi,
  backup: GoodBackup,
  { backupNamespace, claim }: MemoryOptions['deployment'],
  signal: AbortSignal,
): Promise<number | undefined> {
  const where = { namespace: backupNamespace, labels: { 'velero.io/backup-name': backup.name } };
  for (const kind of COPIES) {
    const { objects, whole } = await cluster.list(kind, where, signal).catch((error) => {
      // The cluster may have only one of the two kinds.
      if (isCoded(error, 'HF_KUBERNETES_KIND')) return { objects: [], whole: true };
      throw error;
    });
    if (!whole) return undefined;
    const sizes = objects.flatMap((copy) => {
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
 * Looks at the store's deployment and the backups of its volume.
 *
 * @throws HF_KUBERNETES_UNREACHABLE, HF_KUBERNETES_REFUSED
 */
export async function lookAtDeployment(
  cluster: KubernetesApi,
  { deployment, staleHours, volumeCopies }: MemoryOptions,
  now: number,
  signal: AbortSignal,
): Promise<DeploymentSeen & { readonly unread: readonly string[] }> {
  const { namespace, name, backupSchedule } = deployment;
  const found = await cluster.get({ apiVersion: 'apps/v1', kind: 'Deployment' }, name, namespace, signal);
  if (!found) return { findings: [`there is no deployment ${namespace}/${name}`], unread: [], unseen: [] };
  const { sources, absent, refused } = await readSources(cluster, found, namespace, signal);
  const lacking = missingSettings(found, sources);
  // A source that is not there or could not be read may contain them.
  const missing = absent.length + refused.length > 0 ? [] : lacking;
  const unread = lacking.length > 0 ? refused : [];
  const { good, read, whole } = await goodBackups(cluster, deployment, signal);
  // A newer one may be among those that were not read.
  const last = whole ? good.find(({ at }) => !isAhead(at, now)) : undefined;
  const ahead = good.filter(({ at }) => isAhead(at, now)).map(({ name }) => name);
  const isStale = whole && (last === undefined || now - last.at > staleHours * HOUR_MS);
  const size = last && (await sizeOf(cluster, last, deployment, signal));
  const usual = volumeCopies.usualBytes ?? USUAL_BYTES;
  const isUnusual = size !== undefined && isUnusualSize(size, usual);
  const isOther = last?.format !== undefined && !last.format.startsWith('1.');
  const findings = [
    ...(lacking.length > 0 ? absent : []),
    ...(missing.length > 0 ? [`${namespace}/${name} lacks ${missing.join(', ')}`] : []),
    ...(isStale ? [`${backupSchedule} has had no good backup of the volume for ${staleHours} h`] : []),
    ...(ahead.length > 0 ? [`dated in the future: ${ahead.join(', ')}`] : []),
    ...(isUnusual ? [`${last?.name} has ${size} bytes of the volume, while ${usual} are usual`] : []),
    ...(isOther
      ? [`${last?.name} is written in format ${last?.format}, which a restore here may not read`]
      : []),
  ];
  const unseen = [
    ...(whole ? [] : [`${backupSchedule} has more backups than the ${read} that could be read`]),
    ...(last && size === undefined
      ? [`the cluster does not say how many bytes of the volume ${last.name} has`]
      : []),
  ];
  return { findings, unread, unseen };
}
