import { runsDeployments } from '../../support/kubernetes/behaviours.ts';
import type { ClusterApi, Thing } from '../../support/kubernetes/index.ts';
import type { FieldStore } from './field-store.ts';

const places = { namespace: 'agent-memory', claim: 'qdrant-data' };
const labels = { app: 'qdrant' };

const liveDeployment = (): Thing => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'qdrant', namespace: places.namespace, labels },
  spec: {
    replicas: 1,
    selector: { matchLabels: labels },
    template: {
      metadata: { labels },
      spec: {
        containers: [{ name: 'qdrant', image: 'registry.example/qdrant:v1.19.0' }],
        volumes: [{ name: 'data', persistentVolumeClaim: { claimName: places.claim } }],
      },
    },
  },
});

/** Puts the live store into a cluster; the pods of other namespaces are all one scratch instance. */
export function runsStore(api: ClusterApi, scratch: FieldStore, readyMs?: number): void {
  for (const name of [places.namespace, 'velero']) {
    api.store.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  }
  api.store.create(liveDeployment());
  runsDeployments(api, readyMs === undefined ? {} : { readyMs });
  api.reach = ({ metadata }, port) =>
    metadata.namespace !== places.namespace && port === 6333 ? scratch.port : undefined;
}

/** Names of the namespaces that drills made. */
export const left = (api: ClusterApi) =>
  api.store
    .all('Namespace')
    .map(({ metadata }) => metadata.name)
    .filter((name) => name.startsWith('holdfast-drill'));

export const backup = (name: string, completionTimestamp: string, status: object): Thing => ({
  apiVersion: 'velero.io/v1',
  kind: 'Backup',
  metadata: { name, namespace: 'velero', labels: { 'velero.io/schedule-name': 'agent-memory-pvc-backup' } },
  status: { completionTimestamp, ...status },
});

/** What the operator makes of a Restore: phase after phase, and the store with the last. */
export function restores(
  api: ClusterApi,
  live: FieldStore,
  scratch: FieldStore,
  phases: readonly object[],
): Thing[] {
  const seen: Thing[] = [];
  api.store.on('created', 'Restore', (restore) => {
    seen.push(restore);
    const { name, namespace } = restore.metadata;
    const [target] = Object.values(restore.spec.namespaceMapping) as string[];
    for (const [index, status] of phases.entries()) {
      api.store.later(20 * (index + 1), () => api.store.set('Restore', name, namespace, { status }));
    }
    api.store.later(20 * phases.length - 5, () => {
      scratch.collections.set('memory', live.collections.get('memory')!);
      const claim = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '5Gi' } } };
      const metadata = { name: places.claim, namespace: target! };
      api.store.create({ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata, spec: claim });
      const { spec, ...deployment } = liveDeployment();
      api.store.create({ ...deployment, spec, metadata: { ...deployment.metadata, namespace: target! } });
    });
  });
  return seen;
}
