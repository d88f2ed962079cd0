import { defineToken, type Token } from './token.ts';

/** A kind of object, e.g. `{ apiVersion: 'batch/v1', kind: 'Job' }`. */
export interface KubernetesKind {
  readonly apiVersion: string;
  readonly kind: string;
}

/** An object of the cluster as its API serves it; the reader checks the fields that it uses. */
export interface KubernetesObject extends KubernetesKind {
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string | undefined;
    readonly uid?: string | undefined;
    readonly creationTimestamp?: string | undefined;
    readonly labels?: Readonly<Record<string, string>> | undefined;
    readonly annotations?: Readonly<Record<string, string>> | undefined;
  };
  readonly [field: string]: unknown;
}

/** The objects of a list that were read. */
export interface KubernetesList {
  readonly objects: readonly KubernetesObject[];
  /** False when there are more than were read: what is not among them may exist all the same. */
  readonly whole: boolean;
}

/** A connection to a port inside the cluster, on a loopback port of ours. */
export interface PortForward {
  /** On 127.0.0.1. */
  readonly port: number;
  close(): Promise<void>;
}

export interface ExecOptions {
  /** The pod's only container, or its default one, unless set. */
  readonly container?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** How a command in a pod ended, and what it wrote: at most 4 MiB. */
export interface ExecResult {
  readonly exitCode: number;
  readonly output: string;
  readonly errors: string;
}

/** The cluster's API, as much of it as Holdfast needs. Every call has a deadline of its own. */
export interface KubernetesApi {
  /** For people: the server's address, without credentials. */
  readonly place: string;
  /** @returns undefined when there is none; @throws HF_KUBERNETES_UNREACHABLE, HF_KUBERNETES_REFUSED */
  get(
    kind: KubernetesKind,
    name: string,
    namespace?: string,
    signal?: AbortSignal,
  ): Promise<KubernetesObject | undefined>;
  /**
   * Reads page after page, at most 5,000 objects; a list that expired between two pages is read once more from its start.
   *
   * @throws HF_KUBERNETES_UNREACHABLE, HF_KUBERNETES_REFUSED
   */
  list(
    kind: KubernetesKind,
    where: { readonly namespace?: string; readonly labels?: Readonly<Record<string, string>> },
    signal?: AbortSignal,
  ): Promise<KubernetesList>;
  /** @throws HF_KUBERNETES_EXISTS, HF_KUBERNETES_UNREACHABLE, HF_KUBERNETES_REFUSED */
  create(object: KubernetesObject, signal?: AbortSignal): Promise<KubernetesObject>;
  /** Merges a patch (JSON merge patch) into an object. @throws HF_KUBERNETES_UNREACHABLE, HF_KUBERNETES_REFUSED */
  patch(
    kind: KubernetesKind,
    name: string,
    namespace: string,
    patch: object,
    signal?: AbortSignal,
  ): Promise<KubernetesObject>;
  /** Deletes an object with its dependents; deleting one that does not exist is no error. */
  delete(kind: KubernetesKind, name: string, namespace?: string, signal?: AbortSignal): Promise<void>;
  /** @param pod name of a running pod; @throws HF_KUBERNETES_UNREACHABLE, HF_KUBERNETES_REFUSED */
  forward(namespace: string, pod: string, port: number, signal?: AbortSignal): Promise<PortForward>;
  /**
   * Runs a command in a running pod, without a shell. What it writes may be secret: the caller must not log it.
   *
   * @throws HF_KUBERNETES_CONFIG, HF_KUBERNETES_UNREACHABLE (also: there is no such pod or program, or the right to it is missing)
   */
  exec(
    namespace: string,
    pod: string,
    command: readonly string[],
    options?: ExecOptions,
  ): Promise<ExecResult>;
}

/** Provided by the plugin that speaks to a cluster, where one is configured. */
export const KubernetesToken: Token<KubernetesApi> = defineToken('kubernetes.api');
