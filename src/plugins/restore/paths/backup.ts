import type { KubernetesApi, KubernetesKind, KubernetesObject } from '../../../core/contracts/kubernetes.ts';
import type { MemoryStores, SnapshotRecords } from '../../../core/contracts/memory-store.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../../core/kernel/json.ts';
import type { Drill, Source } from '../../../machines/restore/drill-shapes.ts';
import { RestoreError } from '../errors.ts';
import type { ClusterPlaces } from '../options.ts';
import { refuseLiveAddress } from '../safety.ts';
import { ensure, type ScratchNamespaces } from '../scratch/namespaces.ts';
import type { PathSettings, RestorePath, StepContext } from '../steps.ts';
import { until } from '../steps.ts';

const BACKUP: KubernetesKind = { apiVersion: 'velero.io/v1', kind: 'Backup' };
const RESTORE: KubernetesKind = { apiVersion: 'velero.io/v1', kind: 'Restore' };
const CLAIM: KubernetesKind = { apiVersion: 'v1', kind: 'PersistentVolumeClaim' };
const SCHEDULE_LABEL = 'velero.io/schedule-name';
/** The four kinds that make a store out of a volume. */
const RESOURCES = ['persistentvolumeclaims', 'persistentvolumes', 'deployments', 'services'];
/** Phases from which no good end is reached; those that go on are not listed. */
const BAD = [
  'FailedValidation',
  'WaitingForPluginOperationsPartiallyFailed',
  'FinalizingPartiallyFailed',
  'PartiallyFailed',
  'Failed',
];

interface BackupPathOptions extends PathSettings {
  readonly cluster: KubernetesApi;
  readonly namespaces: ScratchNamespaces;
  readonly places: ClusterPlaces;
  readonly stores: MemoryStores;
  readonly records: SnapshotRecords | undefined;
}

/** What the operator says of one of its objects. */
interface Status {
  readonly phase: string;
  readonly errors: number;
  readonly warnings: number;
  readonly reasons: string;
}

/** Path B in a cluster: a backup of the volume, restored into a namespace of its own (B3). */
export class BackupPath implements RestorePath {
  readonly #options: BackupPathOptions;

  constructor(options: BackupPathOptions) {
    this.#options = options;
  }

  async choose({ snapshot: wanted }: Drill, { signal }: StepContext): Promise<Source> {
    const { cluster, places, records } = this.#options;
    await records?.recordSeen(signal);
    const { schedule, backupNamespace: namespace } = places;
    const labels = { [SCHEDULE_LABEL]: schedule };
    const { objects, whole } = await cluster.list(BACKUP, { namespace, labels }, signal);
    if (!whole && wanted === undefined) {
      const reason = `schedule ${schedule} has more backups than the ${objects.length} that could be read, so the newest is unknown; name one by --snapshot`;
      throw new RestoreError('HF_RESTORE_NOTHING', { reason });
    }
    const named = objects.filter(({ metadata }) => wanted === undefined || metadata.name === wanted);
    const good = named.filter((backup) => isGood(statusOf(backup)));
    const chosen = good.toSorted((a, b) => (timeOf(a) < timeOf(b) ? 1 : -1)).at(0);
    if (!chosen) {
      const which = wanted === undefined ? '' : ` called ${wanted}`;
      const found = named
        .map((backup) => `${backup.metadata.name}: ${sentence(statusOf(backup))}`)
        .slice(0, 5);
      const rest = found.length > 0 ? ` (${found.join('; ')})` : '';
      const among = whole ? '' : ` among the ${objects.length} that could be read`;
      const reason = `schedule ${schedule} has no completed backup${which} without errors and warnings${among}${rest}`;
      throw new RestoreError('HF_RESTORE_NOTHING', { reason });
    }
    const { name } = chosen.metadata;
    const count = records?.of(name)?.content.count;
    return { kind: 'backup', name, madeAt: timeOf(chosen), ...(count !== undefined && { count }) };
  }

  async prepare({ id }: Drill, _source: Source, { signal, progress }: StepContext) {
    const { namespaces } = this.#options;
    progress.begin('making a namespace');
    // The restored deployment names this Secret, and its pod would not start without; nothing is to be written there.
    const secret: KubernetesObject = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'qdrant-r2-snapshot' },
      type: 'Opaque',
      stringData: { access_key: 'placeholder', secret_key: 'placeholder' },
    };
    await namespaces.create(id, [secret], signal);
    return { place: `namespace ${namespaces.nameOf(id)}` };
  }

  async recover({ id }: Drill, { name }: Source, _url: string | undefined, context: StepContext) {
    const { cluster, namespaces, places, stores } = this.#options;
    const { signal, progress } = context;
    progress.begin(`restoring backup ${name}`);
    await ensure(cluster, this.#restoreObject(id, name), signal);
    await this.#completed(id, context);
    progress.begin('waiting for the restored store');
    const claim = await cluster.get(CLAIM, places.claim, namespaces.nameOf(id), signal);
    if (!claim) throw failed(`no claim ${places.claim} was restored`);
    const url = await namespaces.reach(id, signal);
    await refuseLiveAddress(stores.live.url, url);
    return url;
  }

  async remove(id: string, signal: AbortSignal): Promise<void> {
    const { cluster, namespaces, places } = this.#options;
    await cluster
      .delete(RESTORE, namespaces.nameOf(id), places.backupNamespace, signal)
      .catch((error: unknown) => {
        // Where restores are no kind of the cluster, none can be left.
        if (!isCoded(error, 'HF_KUBERNETES_KIND')) throw error;
      });
    await namespaces.remove(id, signal);
  }

  async leftovers(signal: AbortSignal): Promise<readonly string[]> {
    const { clock, namespaces } = this.#options;
    const now = clock.now();
    return (await namespaces.list(signal)).filter(({ expiresAt }) => expiresAt <= now).map(({ id }) => id);
  }

  #restoreObject(id: string, backupName: string): KubernetesObject {
    const { namespaces, places } = this.#options;
    const name = namespaces.nameOf(id);
    return {
      ...RESTORE,
      metadata: { name, namespace: places.backupNamespace, labels: { 'holdfast.dev/drill': id } },
      spec: {
        backupName,
        includedNamespaces: [places.namespace],
        includedResources: RESOURCES,
        namespaceMapping: { [places.namespace]: name },
      },
    };
  }

  async #completed(id: string, { signal, progress }: StepContext): Promise<void> {
    const { cluster, namespaces, places, clock, pollMs } = this.#options;
    const name = namespaces.nameOf(id);
    const look = async () => {
      const restore = await cluster
        .get(RESTORE, name, places.backupNamespace, signal)
        .catch((error: unknown) => {
          if (isCoded(error, 'HF_KUBERNETES_UNREACHABLE') && !signal.aborted) return 'unknown' as const;
          throw error;
        });
      if (restore === 'unknown') return undefined;
      if (restore === undefined) throw failed(`restore ${name} was deleted by somebody`);
      const status = statusOf(restore);
      progress.begin(`the restore is ${status.phase}`);
      if (BAD.includes(status.phase)) throw failed(`restore ${name} ends ${sentence(status)}`);
      if (status.phase !== 'Completed') return undefined;
      if (!isGood(status)) throw failed(`restore ${name} ends ${sentence(status)}`);
      return true;
    };
    // The effect's deadline ends it.
    await until(look, { clock, everyMs: pollMs, withinMs: Number.POSITIVE_INFINITY, signal });
  }
}

const failed = (reason: string) => new RestoreError('HF_RESTORE_FAILED', { reason });

/** `Completed` alone is not enough: objects that were left out are warnings. */
const isGood = ({ phase, errors, warnings }: Status) =>
  phase === 'Completed' && errors === 0 && warnings === 0;

function statusOf({ status }: KubernetesObject): Status {
  const { phase, errors, warnings, validationErrors, failureReason } = isObject(status) ? status : {};
  const reasons = [...(Array.isArray(validationErrors) ? validationErrors : []), failureReason];
  return {
    phase: typeof phase === 'string' && phase !== '' ? phase : 'New',
    errors: Number(errors ?? 0),
    warnings: Number(warnings ?? 0),
    reasons: reasons
      .filter((reason) => typeof reason === 'string' && reason !== '')
      .join('; ')
      .slice(0, 300),
  };
}

function sentence({ phase, errors, warnings, reasons }: Status): string {
  return `${phase} with ${errors} errors and ${warnings} warnings${reasons === '' ? '' : `: ${reasons}`}`;
}

function timeOf({ status, metadata }: KubernetesObject): string {
  const completed = isObject(status) ? status.completionTimestamp : undefined;
  return typeof completed === 'string' ? completed : (metadata.creationTimestamp ?? '');
}
