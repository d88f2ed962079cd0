import type { ClusterKind } from '../../core/contracts/cluster.ts';
import { HoldfastError } from '../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../core/kernel/json.ts';
import type { Connection } from './connection.ts';

/** How the API calls a kind in its paths. */
interface Resource {
  readonly plural: string;
  readonly namespaced: boolean;
}

/** Where objects of a kind are, as the API's own lists of resources say. */
export class Kinds {
  readonly #connection: Connection;
  readonly #known = new Map<string, Resource>();

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** @throws HF_CLUSTER_KIND and what a call throws */
  async path(
    { apiVersion, kind }: ClusterKind,
    { namespace, name }: { readonly namespace?: string | undefined; readonly name?: string | undefined },
    signal?: AbortSignal,
  ): Promise<string> {
    const resource =
      this.#known.get(`${apiVersion} ${kind}`) ?? (await this.#find({ apiVersion, kind }, signal));
    const parts = [
      root(apiVersion),
      ...(resource.namespaced && namespace !== undefined
        ? ['namespaces', encodeURIComponent(namespace)]
        : []),
      resource.plural,
      ...(name === undefined ? [] : [encodeURIComponent(name)]),
    ];
    return parts.join('/');
  }

  async #find({ apiVersion, kind }: ClusterKind, signal: AbortSignal | undefined): Promise<Resource> {
    const { place } = this.#connection;
    const answer = await this.#connection.call({ method: 'GET', path: root(apiVersion), signal });
    if (answer.status !== 200 && answer.status !== 404) {
      const reason = typeof answer.body.message === 'string' ? answer.body.message : 'it does not say why';
      const what = `the kinds of ${apiVersion}`;
      throw new HoldfastError('HF_CLUSTER_REFUSED', {
        place,
        action: 'list',
        what,
        reason,
        status: answer.status,
      });
    }
    const resources = Array.isArray(answer.body.resources) ? answer.body.resources.filter(isObject) : [];
    // `deployments/status` is a resource of the same kind.
    const found = resources.find((row) => row.kind === kind && !String(row.name).includes('/'));
    if (found === undefined) throw new HoldfastError('HF_CLUSTER_KIND', { place, apiVersion, kind });
    const resource = { plural: String(found.name), namespaced: found.namespaced === true };
    this.#known.set(`${apiVersion} ${kind}`, resource);
    return resource;
  }
}

/** The core group, `v1`, lies apart from all others. */
function root(apiVersion: string): string {
  return apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
}
