import type { CheckDefinition } from '../../core/host/plugin/diagnosis.ts';
import { systemClock } from '../../core/kernel/clock.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { KubeCluster } from './kube-cluster.ts';
import type { ClusterOptions } from './options.ts';

/** What `holdfast doctor cluster` looks at. */
export function clusterCheck(options: ClusterOptions): CheckDefinition {
  return {
    name: 'cluster.api',
    async run({ signal }) {
      const cluster = new KubeCluster(options, systemClock);
      const began = performance.now();
      try {
        const namespaces = await cluster.list({ apiVersion: 'v1', kind: 'Namespace' }, {}, signal);
        const ms = Math.round(performance.now() - began);
        return {
          state: 'ok',
          lookedAt: cluster.place,
          found: `it answers in ${ms} ms and has ${namespaces.length} namespaces`,
        };
      } catch (error) {
        if (!isCoded(error)) throw error;
        return { state: 'fail', lookedAt: cluster.place, found: error.what, remedy: error.remedy };
      }
    },
  };
}
