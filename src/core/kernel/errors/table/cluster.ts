import { type ErrorEntry, entry } from '../entry.ts';

/** Of the cluster's API. */
export const clusterErrors = {
  HF_CLUSTER_CONFIG: entry(
    500,
    'The cluster cannot be addressed by {file}: {reason}.',
    'Set HOLDFAST_KUBECONFIG to a kubeconfig that `kubectl --kubeconfig FILE get namespaces` works with.',
  ),
  HF_CLUSTER_UNREACHABLE: entry(
    502,
    'The cluster API at {place} gave no usable answer: {reason}.',
    'Check with `kubectl version` that it can be reached from here, and that the kubeconfig names the right server.',
  ),
  HF_CLUSTER_REFUSED: entry(
    502,
    'The cluster API at {place} refused to {action} {what}: {reason} (HTTP {status}).',
    'Give the account that right (`kubectl auth can-i` shows what it may do), or correct what the answer complains of.',
  ),
  HF_CLUSTER_EXISTS: entry(
    409,
    'The cluster has {what} already.',
    'Look at it with `kubectl get`; delete it when nobody needs it.',
  ),
  HF_CLUSTER_KIND: entry(
    502,
    'The cluster API at {place} knows no {kind} ({apiVersion}).',
    'Install what brings that kind, e.g. the backup operator, or correct the version.',
  ),
} as const satisfies Record<string, ErrorEntry>;
