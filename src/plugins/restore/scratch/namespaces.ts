import type {
  KubernetesApi,
  KubernetesKind,
  KubernetesObject,
  PortForward,
} from '../../../core/contracts/kubernetes.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { RestoreError } from '../errors.ts';
import { until } from '../steps.ts';

export const REST_PORT = 6333;
const NAMESPACE: KubernetesKind = { apiVersion: 'v1', kind: 'Namespace' };
const POD: KubernetesKind = { apiVersion: 'v1', kind: 'Pod' };
const OWNED = { 'app.kubernetes.io/managed-by': 'holdfast', 'holdfast.dev/role': 'scratch' };
const ID_LABEL = 'holdfast.dev/drill';
const EXPIRES = 'holdfast.dev/expires';
/** Reasons of a waiting container that do not end by themselves in time. */
const HOPELESS = ['ErrImagePull', 'ImagePullBackOff', 'InvalidImageName', 'CreateContainerConfigError'];

interface NamespacesOptions {
  readonly cluster: KubernetesApi;
  readonly clock: Clock;
  readonly pollMs: number;
  readonly readyMs: number;
  readonly expiryMs: number;
}

/** Scratch namespaces: marked with their drill and expiry, and one without that mark is never removed. */
export class ScratchNamespaces {
  readonly #options: NamespacesOptions;
  readonly #forwards = new Map<string, PortForward>();

  constructor(options: NamespacesOptions) {
    this.#options = options;
  }

  nameOf(id: string): string {
    return `holdfast-drill-${id}`.toLowerCase();
  }

  /** Makes a namespace with its objects; existing ones are from the same drill. @throws HF_RESTORE_SCRATCH, HF_KUBERNETES_* */
  async create(id: string, objects: readonly KubernetesObject[], signal: AbortSignal): Promise<void> {
    const { cluster, clock, expiryMs } = this.#options;
    const name = this.nameOf(id);
    const expires = new Date(clock.now() + expiryMs).toISOString();
    const namespace: KubernetesObject = {
      ...NAMESPACE,
      metadata: { name, labels: { ...OWNED, [ID_LABEL]: id }, annotations: { [EXPIRES]: expires } },
    };
    await ensure(cluster, namespace, signal);
    const made = await cluster.get(NAMESPACE, name, undefined, signal);
    if (made && !isMarked(made, id)) {
      throw new RestoreError('HF_RESTORE_SCRATCH', { reason: `namespace ${name} belongs to somebody else` });
    }
    for (const object of objects) {
      await ensure(cluster, { ...object, metadata: { ...object.metadata, namespace: name } }, signal);
    }
  }

  /** Waits for a pod that is ready. @returns a loopback URL of its REST port; @throws HF_RESTORE_SCRATCH, HF_KUBERNETES_* */
  async reach(id: string, signal: AbortSignal): Promise<string> {
    const { cluster, clock, pollMs, readyMs } = this.#options;
    const namespace = this.nameOf(id);
    const look = async () => {
      const { objects: pods } = await cluster.list(POD, { namespace }, signal).catch((error: unknown) => {
        if (isCoded(error, 'HF_KUBERNETES_UNREACHABLE') && !signal.aborted) return { objects: [] };
        throw error;
      });
      const stuck = pods.map(hopeless).find((reason) => reason !== undefined);
      if (stuck !== undefined)
        throw new RestoreError('HF_RESTORE_SCRATCH', { reason: `its pod waits: ${stuck}` });
      return pods.find(isReady);
    };
    const pod = await until(look, { clock, everyMs: pollMs, withinMs: readyMs, signal });
    if (!pod) {
      const reason = `no pod of namespace ${namespace} is ready after ${readyMs / 1_000} s`;
      throw new RestoreError('HF_RESTORE_SCRATCH', { reason });
    }
    const open = this.#forwards.get(id);
    const forward = open ?? (await cluster.forward(namespace, pod.metadata.name, REST_PORT, signal));
    this.#forwards.set(id, forward);
    return `http://127.0.0.1:${forward.port}`;
  }

  /** Resolves when it is gone. @throws HF_KUBERNETES_* */
  async remove(id: string, signal: AbortSignal): Promise<void> {
    const { cluster, clock, pollMs } = this.#options;
    await this.#forwards.get(id)?.close();
    this.#forwards.delete(id);
    const name = this.nameOf(id);
    const found = await cluster.get(NAMESPACE, name, undefined, signal);
    // A namespace without the mark of this drill belongs to somebody else, and is never removed.
    if (!found || !isMarked(found, id)) return;
    await cluster.delete(NAMESPACE, name, undefined, signal);
    const gone = async () => ((await cluster.get(NAMESPACE, name, undefined, signal)) ? undefined : true);
    // This wait has no limit of its own, because the effect has a deadline.
    await until(gone, { clock, everyMs: pollMs, withinMs: Number.POSITIVE_INFINITY, signal });
  }

  async list(signal: AbortSignal): Promise<readonly { readonly id: string; readonly expiresAt: number }[]> {
    // What a partial list leaves out is found once these are removed.
    const { objects } = await this.#options.cluster.list(NAMESPACE, { labels: OWNED }, signal);
    return objects.flatMap(({ metadata: { labels, annotations } }) => {
      const id = labels?.[ID_LABEL];
      const expiresAt = Date.parse(annotations?.[EXPIRES] ?? '');
      // A date that cannot be read is no permission to remove anything.
      return id === undefined || Number.isNaN(expiresAt) ? [] : [{ id, expiresAt }];
    });
  }
}

/** Creates it, unless it is there already. */
export async function ensure(
  cluster: KubernetesApi,
  object: KubernetesObject,
  signal: AbortSignal,
): Promise<void> {
  try {
    await cluster.create(object, signal);
  } catch (error) {
    if (!isCoded(error, 'HF_KUBERNETES_EXISTS')) throw error;
  }
}

function isMarked({ metadata: { labels } }: KubernetesObject, id: string): boolean {
  return labels?.[ID_LABEL] === id && labels['holdfast.dev/role'] === OWNED['holdfast.dev/role'];
}

function isReady({ status }: KubernetesObject): boolean {
  const conditions = isObject(status) && Array.isArray(status.conditions) ? status.conditions : [];
  return conditions.filter(isObject).some(({ type, status: state }) => type === 'Ready' && state === 'True');
}

function hopeless({ status }: KubernetesObject): string | undefined {
  const containers =
    isObject(status) && Array.isArray(status.containerStatuses) ? status.containerStatuses : [];
  for (const { state } of containers.filter(isObject)) {
    const waiting = isObject(state) && isObject(state.waiting) ? String(state.waiting.reason) : '';
    if (HOPELESS.includes(waiting)) return waiting;
  }
  return undefined;
}
