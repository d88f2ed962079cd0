import { resolve } from 'node:path';
import { KubernetesToken } from '../../core/contracts/kubernetes.ts';
import { definePlugin } from '../../core/host/plugin/definition.ts';
import type { CheckDefinition } from '../../core/host/plugin/diagnosis.ts';
import { systemClock } from '../../core/kernel/clock.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { type KubernetesOptions, kubernetesOptions } from './connection.ts';
import { KubernetesError } from './errors.ts';
import { RemoteKubernetes } from './remote-kubernetes.ts';

/**
 * The cluster's API: reads, creates, changes and deletes objects of any kind, and forwards ports of pods
 * (`remote-kubernetes.ts`). The library that knows kubeconfigs is loaded with the first call, so an instance that needs no
 * cluster does not pay for it.
 *
 * Imports core; no other plugin.
 */

/**
 * Provides the cluster, by a kubeconfig or by the account of the pod that Holdfast runs in.
 *
 * @example kubernetes({ kubeconfig: '/etc/holdfast/kubeconfig', context: 'home' })
 * @public
 */
export const kubernetes = definePlugin({
  name: 'kubernetes',
  about: {
    area: 'Kubernetes',
    what: "the cluster's API, for drills, jobs and the rotation of keys",
    docs: 'kubernetes.md',
  },
  options: kubernetesOptions,
  env: { HOLDFAST_KUBECONFIG: 'kubeconfig', HOLDFAST_KUBE_CONTEXT: 'context' },
  variables: {
    HOLDFAST_KUBECONFIG: 'File that names the cluster; in a pod its own account unless set.',
    HOLDFAST_KUBE_CONTEXT: 'Another context of that file than its current one.',
  },
  errors: KubernetesError,
  provides: [KubernetesToken],
  onFailure: 'continue',
  start({ clock }, options) {
    return { adapter: new RemoteKubernetes(absolute(options), clock) };
  },
  register(context, options) {
    context.provide(KubernetesToken, ({ adapter }) => adapter);
    context.check(kubernetesCheck(absolute(options)));
    context.onStop(({ adapter }) => adapter.close());
  },
});

const absolute = (options: KubernetesOptions): KubernetesOptions => ({
  ...options,
  ...(options.kubeconfig !== undefined && { kubeconfig: resolve(options.kubeconfig) }),
});

/** The check of `holdfast doctor kubernetes`. @experimental */
export function kubernetesCheck(options: KubernetesOptions): CheckDefinition {
  return {
    name: 'kubernetes.api',
    async run({ signal }) {
      const cluster = new RemoteKubernetes(options, systemClock);
      const began = performance.now();
      try {
        const { objects, whole } = await cluster.list({ apiVersion: 'v1', kind: 'Namespace' }, {}, signal);
        const ms = Math.round(performance.now() - began);
        return {
          state: 'ok',
          lookedAt: cluster.place,
          found: `it answers in ${ms} ms and has ${objects.length} namespaces${whole ? '' : ' or more'}`,
        };
      } catch (error) {
        if (!isCoded(error)) throw error;
        return { state: 'fail', lookedAt: cluster.place, found: error.what, remedy: error.remedy };
      }
    },
  };
}
