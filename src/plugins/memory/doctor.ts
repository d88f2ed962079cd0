import { z } from 'zod';
import { type Cluster, ClusterToken } from '../../core/contracts/cluster.ts';
import type { MemoryStores } from '../../core/contracts/memory-store.ts';
import { askInstance } from '../../core/host/operations/control-client.ts';
import type { Services } from '../../core/host/plugin/definition.ts';
import type { CheckContext, CheckDefinition, CheckResult } from '../../core/host/plugin/diagnosis.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../core/kernel/json.ts';
import { isAhead } from '../../machines/backup-age.ts';
import { deploymentChecked } from './backups/actor.ts';
import { type GoodBackup, goodBackups } from './backups/cluster-backups.ts';
import { BACKUP_PATHS } from './backups/control.ts';
import { EMPTY_STORE } from './backups/effects.ts';
import type { Inspection } from './backups/inspect.ts';
import type { MemoryOptions } from './options.ts';

const CHECK_MS = 30_000;
/** The check comes every hour; what is older says nothing of now. */
const OLD_MS = 2.5 * 3_600_000;
const deploymentFact = z.object({
  findings: z.array(z.string()),
  unseen: z.array(z.string()),
  at: z.string(),
  isOld: z.boolean(),
});
const STALE_REMEDY = 'Run `holdfast backup snapshot`; the alerts `memory.` in the log say why none was made.';
const UNREAD_REMEDY =
  'Run `holdfast backup snapshot`; a copy of the volume is made by its schedule. A store whose files lie elsewhere is proven by `holdfast restore drill`.';
const FINDINGS_REMEDY =
  'Run `holdfast backup snapshot` and `holdfast restore drill --path a`; make sure that only one retention prunes (docs/memory.md).';
const SETTINGS_REMEDY =
  "Put the object-store settings into the environment of the store's deployment, or its chart; without them recurring snapshots stop.";

/** What was seen of a deployment: what is wrong, and what could not be looked at, as sentences for a person. */
interface DeploymentSeen {
  readonly findings: readonly string[];
  readonly unseen: readonly string[];
}

/** What the running instance reports of it. A type and not an interface, because only types count as JSON for the compiler. */
export type DeploymentFact = {
  readonly findings: readonly string[];
  readonly unseen: readonly string[];
  /** When the cluster was asked, ISO 8601. */
  readonly at: string;
  /** Two hourly checks have not come since. */
  readonly isOld: boolean;
};

/** Checks the store's version and its deployment in the cluster every hour, and keeps the findings. */
export class DeploymentChecks {
  /** Version that the live store reported last. */
  version: string | undefined;
  /** Undefined until a cluster was asked. */
  #seen: (DeploymentSeen & { readonly at: number }) | undefined;
  readonly #services: Services;
  readonly #options: MemoryOptions;
  readonly #stores: MemoryStores;

  constructor(services: Services, options: MemoryOptions, stores: MemoryStores) {
    this.#services = services;
    this.#options = options;
    this.#stores = stores;
  }

  async run(): Promise<void> {
    const { clock, find, bus } = this.#services;
    this.version = (await this.#stores.live.about().catch(() => undefined))?.version ?? this.version;
    const cluster = this.#stores.kind === 'remote' ? find(ClusterToken) : undefined;
    if (!cluster) return;
    const at = clock.now();
    try {
      const signal = AbortSignal.timeout(CHECK_MS);
      const { findings, unread, unseen } = await lookAtDeployment(cluster, this.#options, at, signal);
      this.#seen = { findings, unseen: [...unread, ...unseen], at };
      bus.publish(deploymentChecked, { findings: [...unread, ...findings] });
    } catch (error) {
      // An error of the cluster is no finding about the deployment: the machine gets no event.
      this.#seen = { findings: [], unseen: [isCoded(error) ? error.what : String(error)], at };
    }
  }

  /** What was seen last, for doctor; undefined until a cluster was asked. */
  get seen(): DeploymentFact | undefined {
    if (!this.#seen) return undefined;
    const { at, ...seen } = this.#seen;
    const isOld = this.#services.clock.now() - at > OLD_MS;
    return { ...seen, at: new Date(at).toISOString(), isOld };
  }
}

/** The checks of `holdfast doctor memory`, from what the running instance reports of its store and backups. */
export const memoryChecks: readonly CheckDefinition[] = [
  { name: 'memory.backups', run: backupsCheck },
  { name: 'memory.deployment', run: deploymentCheck },
];

function factsOf({ running }: CheckContext): Record<string, unknown> | undefined {
  const facts = running?.facts.memory;
  return isObject(facts) ? facts : undefined;
}

const notRunning = (lookedAt: string): CheckResult => ({
  state: 'unknown',
  lookedAt,
  found: 'not checked, because no instance with a memory store runs here',
  remedy: 'Start it with `holdfast start`.',
});

/** Whether backups are made: none failed, none is too old, and there are seeds to prove a restore by. */
async function backupsCheck(context: CheckContext): Promise<CheckResult> {
  const lookedAt = 'snapshots and volume copies of the memory store';
  const facts = factsOf(context);
  if (!facts) return notRunning(lookedAt);
  const kinds = ['snapshot', 'volume'].map((kind) => facts[kind]).filter(isObject);
  if (kinds.length > 0 && kinds.every(({ fault, stale }) => fault === EMPTY_STORE && stale !== true)) {
    const remedy = 'Nothing to do: backups begin by themselves once something is stored.';
    return { state: 'warn', lookedAt, found: EMPTY_STORE, remedy };
  }
  const wrong = ['snapshot', 'volume'].flatMap((kind) => {
    const one = facts[kind];
    if (!isObject(one)) return [];
    return [
      ...(one.stale === true ? [`no good ${kind} for too long`] : []),
      ...(typeof one.fault === 'string' ? [`the last ${kind}: ${one.fault}`] : []),
    ];
  });
  if (wrong.length > 0) return { state: 'fail', lookedAt, found: wrong.join('; '), remedy: STALE_REMEDY };
  const findings = ['snapshot', 'volume'].flatMap((kind) => {
    const one = facts[kind];
    return isObject(one) && Array.isArray(one.findings) ? one.findings : [];
  });
  if (findings.length > 0)
    return { state: 'warn', lookedAt, found: findings.join('; '), remedy: FINDINGS_REMEDY };
  if (facts.seeds === 0) {
    const remedy = 'Run `holdfast backup seed`: fixed points prove a restore.';
    return { state: 'warn', lookedAt, found: 'no seeds are kept in the collection', remedy };
  }
  return inspectionResult(lookedAt, await inspected(context));
}

/** The instance reads the newest backups again: that a run was good does not say that its file still is. */
async function inspected({ dataDir, signal }: CheckContext): Promise<Inspection> {
  try {
    return await askInstance<Inspection>(
      { dataDir, signal },
      BACKUP_PATHS.inspect,
      {},
      'it keeps no memory store',
    );
  } catch (error) {
    if (!isCoded(error)) throw error;
    return { seen: [], faults: [], unseen: [error.what.replace(/\.$/, '')] };
  }
}

/** `ok` only of backups that were read. */
export function inspectionResult(lookedAt: string, { seen, faults, unseen }: Inspection): CheckResult {
  if (faults.length > 0) {
    return { state: 'fail', lookedAt, found: [...faults, ...unseen].join('; '), remedy: STALE_REMEDY };
  }
  if (unseen.length > 0 || seen.length === 0) {
    const found = `not checked: ${unseen.join('; ') || 'there is no backup'}`;
    return { state: 'unknown', lookedAt, found: [found, ...seen].join('; '), remedy: UNREAD_REMEDY };
  }
  return { state: 'ok', lookedAt, found: `the last runs were good; ${seen.join('; ')}` };
}

/** Whether the store's deployment has what recurring snapshots need, where a cluster is configured. */
function deploymentCheck(context: CheckContext): CheckResult {
  const lookedAt = "the memory store's deployment in the cluster";
  const facts = factsOf(context);
  if (!facts) return notRunning(lookedAt);
  const { data: seen } = deploymentFact.safeParse(facts.deployment);
  if (!seen) {
    const found =
      'not checked: no cluster is configured, the store is embedded, or the hourly check has not run yet';
    const remedy =
      'Configure the cluster of a store elsewhere (docs/memory.md); an embedded one has no deployment.';
    return { state: 'unknown', lookedAt, found, remedy };
  }
  const { findings, unseen, at, isOld } = seen;
  const text = [...findings, ...unseen].join('; ');
  if (isOld) {
    const found = `not checked since ${at}${text === '' ? '' : `; then: ${text}`}`;
    return { state: 'unknown', lookedAt, found, remedy: 'The hourly check has not run: see its log.' };
  }
  if (findings.length > 0) return { state: 'fail', lookedAt, found: text, remedy: SETTINGS_REMEDY };
  if (unseen.length > 0) {
    const remedy =
      "Give the cluster's account the rights that docs/memory.md lists, and see `holdfast doctor cluster`.";
    return { state: 'unknown', lookedAt, found: `not checked: ${text}`, remedy };
  }
  return { state: 'ok', lookedAt, found: `its settings and volume backups are good, at ${at}` };
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
const USUAL_BYTES = 196_000_000;
/** A size this many times larger or smaller than usual is reported. */
const UNUSUAL_FACTOR = 4;

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
  cluster: Cluster,
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
      if (!isCoded(error, 'HF_CLUSTER_REFUSED')) throw error;
      refused.push(`it cannot be told what ${kind} ${namespace}/${name} sets: ${error.what}`);
    }
  }
  return { sources, absent, refused };
}

/** Bytes of the claim's volume in a backup, copied by the node's agent or moved from a snapshot of the volume. */
async function sizeOf(
  cluster: Cluster,
  backup: GoodBackup,
  { backupNamespace, claim }: MemoryOptions['deployment'],
  signal: AbortSignal,
): Promise<number | undefined> {
  const where = { namespace: backupNamespace, labels: { 'velero.io/backup-name': backup.name } };
  for (const kind of COPIES) {
    const { objects, whole } = await cluster.list(kind, where, signal).catch((error) => {
      // The cluster may have only one of the two kinds.
      if (isCoded(error, 'HF_CLUSTER_KIND')) return { objects: [], whole: true };
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
 * @throws HF_CLUSTER_UNREACHABLE, HF_CLUSTER_REFUSED
 */
export async function lookAtDeployment(
  cluster: Cluster,
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
  const isUnusual = size !== undefined && (size > usual * UNUSUAL_FACTOR || size < usual / UNUSUAL_FACTOR);
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
