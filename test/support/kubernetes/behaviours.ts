import type { ClusterApi } from './index.ts';
import type { Thing } from './store.ts';

/** Claims are bound at once, and a deployment has one pod that becomes ready. @param readyMs `Infinity` for never */
export function runsDeployments({ store }: ClusterApi, { readyMs = 1 } = {}): void {
  store.on('created', 'PersistentVolumeClaim', ({ metadata: { name, namespace } }) =>
    store.set('PersistentVolumeClaim', name, namespace, { status: { phase: 'Bound' } }),
  );
  store.on('created', 'Deployment', (deployment) => {
    const { name, namespace } = deployment.metadata;
    if (!store.find('Deployment', name, namespace)) return;
    const pod = podOf(deployment, `${name}-0`);
    store.create(pod);
    store.later(readyMs, () => {
      const ready = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
      store.set('Pod', pod.metadata.name, namespace, { status: ready });
      store.set('Deployment', name, namespace, {
        status: { replicas: 1, readyReplicas: 1, availableReplicas: 1 },
      });
    });
  });
}

/** A pod from the template of whatever owns it, not yet running. */
export function podOf(owner: Thing, name: string): Thing {
  const { template } = owner.spec;
  const { apiVersion, kind, metadata } = owner;
  const reference = { apiVersion, kind, name: metadata.name, uid: metadata.uid, controller: true };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...template.metadata,
      name,
      ...(metadata.namespace !== undefined && { namespace: metadata.namespace }),
      ownerReferences: [reference],
    },
    spec: template.spec,
    status: { phase: 'Pending' },
  };
}
