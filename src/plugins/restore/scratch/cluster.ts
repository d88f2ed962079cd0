import type { KubernetesApi, KubernetesKind, KubernetesObject } from '../../../core/contracts/kubernetes.ts';
import type {
  MemoryStores,
  ScratchInstance,
  ScratchOrigin,
  ScratchStores,
} from '../../../core/contracts/memory-store.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { RestoreError } from '../errors.ts';
import type { ClusterPlaces } from '../options.ts';
import { REST_PORT, type ScratchNamespaces } from './namespaces.ts';

/** The document's own. */
const CLAIM_SIZE = '5Gi';
export const CLAIM_BYTES = 5 * 1024 ** 3;
const LABELS = { app: 'holdfast-scratch-store' };
const DEPLOYMENT: KubernetesKind = { apiVersion: 'apps/v1', kind: 'Deployment' };

/** Instances in a namespace of their own: a claim, a deployment of one replica, a forwarded port (B9). */
export class ClusterScratch implements ScratchStores {
  readonly kind = 'cluster';
  readonly #namespaces: ScratchNamespaces;
  readonly #cluster: KubernetesApi;
  readonly #stores: MemoryStores;
  readonly #places: ClusterPlaces;

  constructor(
    namespaces: ScratchNamespaces,
    cluster: KubernetesApi,
    stores: MemoryStores,
    places: ClusterPlaces,
  ) {
    this.#namespaces = namespaces;
    this.#cluster = cluster;
    this.#stores = stores;
    this.#places = places;
  }

  async create(id: string, from: ScratchOrigin, signal: AbortSignal): Promise<ScratchInstance> {
    if (from !== 'empty') {
      throw new RestoreError('HF_RESTORE_SCRATCH', {
        reason: 'a volume is copied by a backup in the cluster',
      });
    }
    const { storageClass } = this.#places;
    await this.#namespaces.create(id, storeObjects(await this.#image(signal), storageClass), signal);
    return { id, url: await this.#namespaces.reach(id, signal) };
  }

  remove(id: string, signal: AbortSignal): Promise<void> {
    return this.#namespaces.remove(id, signal);
  }

  list(signal: AbortSignal) {
    return this.#namespaces.list(signal);
  }

  /** What the live store runs, by its deployment; else by what it says of itself. */
  async #image(signal: AbortSignal): Promise<string> {
    const { image, namespace, claim } = this.#places;
    if (image !== undefined) return image;
    const { objects } = await this.#cluster.list(DEPLOYMENT, { namespace }, signal);
    const found = objects.map((deployment) => imageOn(deployment, claim)).find((one) => one !== undefined);
    return found ?? `qdrant/qdrant:v${(await this.#stores.live.about(signal)).version}`;
  }
}

/** The image of the first container of a deployment whose pods mount the claim. */
function imageOn({ spec }: KubernetesObject, claim: string): string | undefined {
  const template = isObject(spec) && isObject(spec.template) ? spec.template : {};
  const pod = isObject(template.spec) ? template.spec : {};
  const volumes = Array.isArray(pod.volumes) ? pod.volumes.filter(isObject) : [];
  const mounts = volumes.some(
    ({ persistentVolumeClaim }) =>
      isObject(persistentVolumeClaim) && persistentVolumeClaim.claimName === claim,
  );
  const [container] = Array.isArray(pod.containers) ? pod.containers.filter(isObject) : [];
  return mounts && typeof container?.image === 'string' ? container.image : undefined;
}

/** A store without any object-store settings: it keeps everything on its claim. */
export function storeObjects(image: string, storageClassName: string): KubernetesObject[] {
  const claim = {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'storage', labels: LABELS },
    spec: {
      accessModes: ['ReadWriteOnce'],
      storageClassName,
      resources: { requests: { storage: CLAIM_SIZE } },
    },
  };
  const container = {
    name: 'store',
    image,
    ports: [{ containerPort: REST_PORT }],
    readinessProbe: { httpGet: { path: '/readyz', port: REST_PORT }, periodSeconds: 2 },
    volumeMounts: [{ name: 'storage', mountPath: '/qdrant/storage' }],
  };
  const deployment = {
    ...DEPLOYMENT,
    metadata: { name: 'store', labels: LABELS },
    spec: {
      replicas: 1,
      strategy: { type: 'Recreate' },
      selector: { matchLabels: LABELS },
      template: {
        metadata: { labels: LABELS },
        spec: {
          automountServiceAccountToken: false,
          enableServiceLinks: false,
          containers: [container],
          volumes: [{ name: 'storage', persistentVolumeClaim: { claimName: 'storage' } }],
        },
      },
    },
  };
  return [claim, deployment];
}
