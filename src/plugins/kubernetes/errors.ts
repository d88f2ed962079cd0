import { defineErrors } from '../../core/kernel/errors/holdfast-error.ts';

/** Errors of the cluster's API. */
export const KubernetesError = defineErrors({
  HF_KUBERNETES_CONFIG: {
    status: 500,
    what: 'The cluster cannot be addressed by {file}: {reason}.',
    remedy:
      'Set HOLDFAST_KUBECONFIG to a kubeconfig that `kubectl --kubeconfig FILE get namespaces` works with.',
  },
  HF_KUBERNETES_UNREACHABLE: {
    status: 502,
    what: 'The cluster API at {place} gave no usable answer: {reason}.',
    remedy:
      'Check with `kubectl version` that it can be reached from here, and that the kubeconfig names the right server.',
  },
  HF_KUBERNETES_REFUSED: {
    status: 502,
    what: 'The cluster API at {place} refused to {action} {what}: {reason} (HTTP {status}).',
    remedy:
      'Give the account that right (`kubectl auth can-i` shows what it may do), or correct what the answer names.',
  },
  HF_KUBERNETES_EXISTS: {
    status: 409,
    what: 'The cluster already has {what}.',
    remedy: 'Look at it with `kubectl get`; delete it when nobody needs it.',
  },
  HF_KUBERNETES_KIND: {
    status: 502,
    what: 'The cluster API at {place} has no kind {kind} ({apiVersion}).',
    remedy: 'Install what brings that kind, e.g. the backup operator, or correct the version.',
  },
});
