import type {
  ExecOptions,
  ExecResult,
  KubernetesApi,
  KubernetesKind,
  KubernetesList,
  KubernetesObject,
  PortForward,
} from '../../core/contracts/kubernetes.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { isObject } from '../../core/kernel/json.ts';
import { type Answer, Connection, type KubernetesOptions } from './connection.ts';
import { KubernetesError } from './errors.ts';
import { runInPod } from './exec.ts';
import { openForward } from './forward.ts';

/** Objects of one page. */
const PAGE = 500;
/** Pages of one list: more than these are not read, and the list is not whole. */
const PAGES = 10;

type Where = { readonly namespace?: string | undefined; readonly name?: string | undefined };

/** The cluster by its REST API; objects come and go as JSON, unchanged. */
export class RemoteKubernetes implements KubernetesApi {
  readonly #connection: Connection;
  readonly #kinds: Kinds;
  readonly #forwards = new Set<PortForward>();

  constructor(options: KubernetesOptions, clock: Clock) {
    this.#connection = new Connection(options, clock);
    this.#kinds = new Kinds(this.#connection);
  }

  get place(): string {
    return this.#connection.place;
  }

  async get(kind: KubernetesKind, name: string, namespace?: string, signal?: AbortSignal) {
    const path = await this.#kinds.path(kind, { name, namespace }, signal);
    const answer = await this.#connection.call({ method: 'GET', path, signal });
    if (answer.status === 404) return undefined;
    return objectOf(this.#accepted(answer, 'read', kind, { name, namespace }));
  }

  async list(
    kind: KubernetesKind,
    { namespace, labels = {} }: Parameters<KubernetesApi['list']>[1],
    signal?: AbortSignal,
  ): Promise<KubernetesList> {
    const query = new URLSearchParams({ limit: String(PAGE) });
    const selector = Object.entries(labels).map(([label, value]) => `${label}=${value}`);
    if (selector.length > 0) query.set('labelSelector', selector.join(','));
    const path = await this.#kinds.path(kind, { namespace }, signal);
    const read = async (next: string) => {
      if (next === '') query.delete('continue');
      else query.set('continue', next);
      const answer = await this.#connection.call({ method: 'GET', path: `${path}?${query}`, signal });
      // The token of a page is valid for some minutes only (410, reason Expired).
      if (answer.status === 410 && next !== '') return 'expired';
      return this.#accepted(answer, 'list', kind, { namespace });
    };
    const first = await readPages(read);
    const { items, whole } = first.isExpired ? await readPages(read) : first;
    // The items of a list carry no kind of their own.
    return { objects: items.map((item) => objectOf({ ...kind, ...item })), whole };
  }

  async create(object: KubernetesObject, signal?: AbortSignal): Promise<KubernetesObject> {
    const { apiVersion, kind, metadata } = object;
    const path = await this.#kinds.path(object, { namespace: metadata.namespace }, signal);
    const answer = await this.#connection.call({ method: 'POST', path, body: object, signal });
    return objectOf(this.#accepted(answer, 'create', { apiVersion, kind }, metadata));
  }

  async patch(kind: KubernetesKind, name: string, namespace: string, patch: object, signal?: AbortSignal) {
    const path = await this.#kinds.path(kind, { name, namespace }, signal);
    const answer = await this.#connection.call({ method: 'PATCH', path, body: patch, signal });
    return objectOf(this.#accepted(answer, 'change', kind, { name, namespace }));
  }

  async delete(kind: KubernetesKind, name: string, namespace?: string, signal?: AbortSignal): Promise<void> {
    const path = await this.#kinds.path(kind, { name, namespace }, signal);
    const body = { kind: 'DeleteOptions', apiVersion: 'v1', propagationPolicy: 'Background' };
    const answer = await this.#connection.call({ method: 'DELETE', path, body, signal });
    if (answer.status !== 404) this.#accepted(answer, 'delete', kind, { name, namespace });
  }

  async forward(namespace: string, pod: string, port: number, signal?: AbortSignal): Promise<PortForward> {
    const forward = await openForward(this.#connection, { namespace, pod, port }, signal);
    this.#forwards.add(forward);
    return {
      port: forward.port,
      close: async () => {
        this.#forwards.delete(forward);
        await forward.close();
      },
    };
  }

  exec(
    namespace: string,
    pod: string,
    command: readonly string[],
    options: ExecOptions = {},
  ): Promise<ExecResult> {
    return runInPod(this.#connection, { ...options, namespace, pod }, command);
  }

  /** Ends what is still forwarded. */
  async close(): Promise<void> {
    await Promise.all([...this.#forwards].map((forward) => forward.close()));
    this.#forwards.clear();
  }

  #accepted({ status, body }: Answer, action: string, kind: KubernetesKind, where: Where): Answer['body'] {
    if (status < 300) return body;
    const { namespace, name } = where;
    const what = [kind.kind, name, namespace && `in namespace ${namespace}`].filter(Boolean).join(' ');
    // Only this reason means that the object exists; another conflict is a race, or a namespace that is being deleted.
    const code = body.reason === 'AlreadyExists' ? 'HF_KUBERNETES_EXISTS' : 'HF_KUBERNETES_REFUSED';
    const reason = typeof body.message === 'string' ? body.message.slice(0, 500) : 'it does not say why';
    throw new KubernetesError(code, { place: this.place, action, what, reason, status });
  }
}

interface Pages {
  readonly items: readonly Record<string, unknown>[];
  readonly whole: boolean;
  readonly isExpired: boolean;
}

/** @param read gives the page of a token; the first one with '' */
async function readPages(read: (next: string) => Promise<Answer['body'] | 'expired'>): Promise<Pages> {
  const items: Record<string, unknown>[] = [];
  let next = '';
  for (let page = 1; page <= PAGES; page += 1) {
    const body = await read(next);
    if (body === 'expired') return { items, whole: false, isExpired: true };
    // An answer without items is no list: nothing is known of what there is.
    if (!Array.isArray(body.items)) break;
    items.push(...body.items.filter(isObject));
    const { metadata } = body;
    next = isObject(metadata) && typeof metadata.continue === 'string' ? metadata.continue : '';
    if (next === '') return { items, whole: true, isExpired: false };
  }
  return { items, whole: false, isExpired: false };
}

/** Only a name is required: other fields are passed on as the API gives them. */
function isClusterObject(body: object): body is KubernetesObject {
  const metadata: unknown = 'metadata' in body ? body.metadata : undefined;
  return isObject(metadata) && typeof metadata.name === 'string';
}

function objectOf(body: Answer['body']): KubernetesObject {
  if (isClusterObject(body)) return body;
  const { apiVersion, kind, metadata } = body;
  return {
    ...body,
    apiVersion: String(apiVersion ?? ''),
    kind: String(kind ?? ''),
    metadata: { ...(isObject(metadata) && metadata), name: '' },
  };
}

/** The name of a kind in the paths of the API. */
interface Resource {
  readonly plural: string;
  readonly namespaced: boolean;
}

/** Where objects of a kind are, as the API's own lists of resources say. */
export class Kinds {
  readonly #connection: Connection;
  readonly #resources = new Map<string, Resource>();

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** @throws HF_KUBERNETES_KIND and what a call throws */
  async path(
    { apiVersion, kind }: KubernetesKind,
    { namespace, name }: { readonly namespace?: string | undefined; readonly name?: string | undefined },
    signal?: AbortSignal,
  ): Promise<string> {
    const resource =
      this.#resources.get(`${apiVersion} ${kind}`) ?? (await this.#find({ apiVersion, kind }, signal));
    const segments = [
      root(apiVersion),
      ...(resource.namespaced && namespace !== undefined
        ? ['namespaces', encodeURIComponent(namespace)]
        : []),
      resource.plural,
      ...(name === undefined ? [] : [encodeURIComponent(name)]),
    ];
    return segments.join('/');
  }

  async #find({ apiVersion, kind }: KubernetesKind, signal: AbortSignal | undefined): Promise<Resource> {
    const { place } = this.#connection;
    const answer = await this.#connection.call({ method: 'GET', path: root(apiVersion), signal });
    if (answer.status !== 200 && answer.status !== 404) {
      const reason = typeof answer.body.message === 'string' ? answer.body.message : 'it does not say why';
      const what = `the kinds of ${apiVersion}`;
      throw new KubernetesError('HF_KUBERNETES_REFUSED', {
        place,
        action: 'list',
        what,
        reason,
        status: answer.status,
      });
    }
    const listed = Array.isArray(answer.body.resources) ? answer.body.resources.filter(isObject) : [];
    // `deployments/status` is a resource of the same kind.
    const found = listed.find((row) => row.kind === kind && !String(row.name).includes('/'));
    if (found === undefined) throw new KubernetesError('HF_KUBERNETES_KIND', { place, apiVersion, kind });
    const resource = { plural: String(found.name), namespaced: found.namespaced === true };
    this.#resources.set(`${apiVersion} ${kind}`, resource);
    return resource;
  }
}

/** The core group, `v1`, lies apart from all others. */
function root(apiVersion: string): string {
  return apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
}
