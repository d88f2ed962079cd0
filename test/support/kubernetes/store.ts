import { randomUUID } from 'node:crypto';
import { RESOURCES, type Resource } from './kinds.ts';
import { complaints } from './schema.ts';

/** An object of the cluster, as tests look into it. */
export type Thing = Record<string, any> & {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; [field: string]: any };
};

/** What the API answers instead of doing what it was asked. */
export class Refusal extends Error {
  readonly status: number;
  readonly reason: string;
  /** Of the `Status` object. */
  readonly metadata: object;

  constructor(status: number, reason: string, message: string, metadata: object = {}) {
    super(message);
    this.status = status;
    this.reason = reason;
    this.metadata = metadata;
  }
}

export type Change = 'created' | 'changed' | 'deleted';
export type Hook = (object: Thing) => void;

const LONGEST_HISTORY = 1_000;

/** A kind by its name; where several operators have one of that name, with its `apiVersion`. */
export type KindName = string | { readonly apiVersion: string; readonly kind: string };

const keyOf = ({ apiVersion, plural }: Resource, name: string, namespace = '') =>
  `${apiVersion} ${plural}/${namespace}/${name}`;

/** The objects of a cluster and the rules of its API server; what controllers do with them are hooks. */
export class ClusterStore {
  readonly #objects = new Map<string, Thing>();
  readonly #hooks: { readonly change: Change; readonly kind: string; readonly hook: Hook }[] = [];
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly watchers = new Set<(change: Change, object: Thing) => void>();
  /** What watchers that come later have missed. */
  readonly #history: { readonly version: number; readonly change: Change; readonly object: Thing }[] = [];
  /** Of the newest change. */
  version = 0;
  /** How long a namespace stays `Terminating`; `Infinity` for one that never goes. */
  namespaceEndsMs = 5;

  /** A controller: it is called some time after the change, with the object as it is then. */
  on(change: Change, kind: string, hook: Hook): void {
    this.#hooks.push({ change, kind, hook });
  }

  /** Runs something later, unless the cluster has stopped by then. */
  later(ms: number, work: () => void): void {
    if (!Number.isFinite(ms)) return;
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      work();
    }, ms);
    this.#timers.add(timer);
  }

  stop(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    this.watchers.clear();
  }

  find(kind: KindName, name: string, namespace?: string): Thing | undefined {
    return this.#objects.get(keyOf(resourceOf(kind), name, namespace));
  }

  all(kind: KindName, namespace?: string): Thing[] {
    const { apiVersion, plural } = resourceOf(kind);
    const all = `${apiVersion} ${plural}/`;
    const prefix = namespace === undefined ? all : `${all}${namespace}/`;
    return [...this.#objects].filter(([key]) => key.startsWith(prefix)).map(([, object]) => object);
  }

  /** @throws Refusal */
  create(object: Thing): Thing {
    const resource = resourceOf(object);
    const { generateName, namespace } = object.metadata ?? {};
    const name = object.metadata?.name ?? (generateName && `${generateName}${randomUUID().slice(0, 5)}`);
    if (!/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/.test(name ?? '')) {
      throw new Refusal(422, 'Invalid', `${resource.plural} "${name}" is invalid: metadata.name`);
    }
    refuseInvalid(object);
    if (resource.namespaced) this.#checkNamespace(name, namespace);
    const key = keyOf(resource, name, namespace);
    if (this.#objects.has(key))
      throw new Refusal(409, 'AlreadyExists', `${resource.plural} "${name}" already exists`);
    const metadata = {
      ...object.metadata,
      name,
      uid: randomUUID(),
      creationTimestamp: new Date().toISOString().replace(/\.\d+/, ''),
      resourceVersion: String(this.version + 1),
    };
    const status = object.kind === 'Namespace' ? { status: { phase: 'Active' } } : {};
    const created: Thing = { ...structuredClone(object), metadata, ...status };
    this.#objects.set(key, created);
    this.#tell('created', created);
    return created;
  }

  /** Writes an object over the one that is there. @throws Refusal */
  replace(object: Thing): Thing {
    const resource = resourceOf(object);
    const { name, namespace, resourceVersion } = object.metadata;
    const known = this.find(object, name, namespace);
    if (!known) throw missing(resource, name);
    if (resourceVersion !== undefined && resourceVersion !== known.metadata.resourceVersion) {
      throw new Refusal(
        409,
        'Conflict',
        `Operation cannot be fulfilled on ${resource.plural} "${name}": the object has been modified; please apply your changes to the latest version and try again`,
      );
    }
    refuseInvalid(object);
    const { uid, creationTimestamp } = known.metadata;
    const metadata = {
      ...object.metadata,
      uid,
      creationTimestamp,
      resourceVersion: String(this.version + 1),
    };
    const next: Thing = { ...structuredClone(object), metadata };
    this.#objects.set(keyOf(resource, name, namespace), next);
    this.#tell('changed', next);
    if (next.metadata.deletionTimestamp && !next.metadata.finalizers?.length) this.#remove(next);
    return next;
  }

  /** Changes an object as a controller does; one that is gone stays gone. */
  set(kind: KindName, name: string, namespace: string | undefined, patch: object): void {
    const known = this.find(kind, name, namespace);
    if (known) this.replace(merge(known, patch) as Thing);
  }

  /** @throws Refusal */
  delete(kind: KindName, name: string, namespace?: string): Thing {
    const known = this.find(kind, name, namespace);
    if (!known) throw missing(resourceOf(kind), name);
    if (resourceOf(kind).kind === 'Namespace') {
      this.set(kind, name, undefined, { status: { phase: 'Terminating' } });
      this.later(this.namespaceEndsMs, () => this.#endNamespace(name));
    } else if (known.metadata.finalizers?.length) {
      this.set(kind, name, namespace, { metadata: { deletionTimestamp: new Date().toISOString() } });
    } else this.#remove(known);
    return this.find(kind, name, namespace) ?? known;
  }

  #endNamespace(name: string): void {
    for (const object of [...this.#objects.values()]) {
      if (object.metadata.namespace === name) this.#remove(object);
    }
    const namespace = this.find('Namespace', name);
    if (namespace) this.#remove(namespace);
  }

  /** With everything that belongs to it. */
  #remove(object: Thing): void {
    const { name, namespace, uid } = object.metadata;
    if (!this.#objects.delete(keyOf(resourceOf(object), name, namespace))) return;
    for (const other of [...this.#objects.values()]) {
      if (other.metadata.ownerReferences?.some((owner: Thing) => owner.uid === uid)) this.#remove(other);
    }
    this.#tell('deleted', object);
  }

  #checkNamespace(name: string, namespace: string | undefined): void {
    const found = this.find('Namespace', namespace ?? 'default');
    if (!found) throw missing(resourceOf('Namespace'), String(namespace));
    if (found.status.phase === 'Terminating') {
      const message = `"${name}" is forbidden: unable to create new content in namespace ${namespace} because it is being terminated`;
      throw new Refusal(403, 'Forbidden', message);
    }
  }

  /** Changes after a version, in order. */
  since(version: number): readonly { readonly change: Change; readonly object: Thing }[] {
    return this.#history.filter((past) => past.version > version);
  }

  #tell(change: Change, object: Thing): void {
    this.version += 1;
    this.#history.push({ version: this.version, change, object });
    if (this.#history.length > LONGEST_HISTORY) this.#history.shift();
    for (const watcher of this.watchers) watcher(change, object);
    for (const { change: wanted, kind, hook } of this.#hooks) {
      if (wanted === change && kind === object.kind) this.later(0, () => hook(object));
    }
  }
}

export function resourceOf(name: KindName): Resource {
  const { apiVersion, kind } = typeof name === 'string' ? { apiVersion: undefined, kind: name } : name;
  const found = RESOURCES.find(
    (resource) => resource.kind === kind && (apiVersion === undefined || resource.apiVersion === apiVersion),
  );
  if (!found) throw new Error(`no kind ${kind}`);
  return found;
}

/** @throws Refusal what the schema of its kind does not allow */
function refuseInvalid(object: Thing): void {
  const wrong = complaints(object);
  if (wrong.length === 0) return;
  const message = `${object.kind} in version "${object.apiVersion}" cannot be handled: strict decoding error: ${wrong.join(', ')}`;
  throw new Refusal(400, 'BadRequest', message);
}

const missing = ({ plural }: Resource, name: string) =>
  new Refusal(404, 'NotFound', `${plural} "${name}" not found`);

/** JSON merge patch (RFC 7396). */
export function merge(target: any, patch: any): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const result: Record<string, unknown> =
    typeof target === 'object' && !Array.isArray(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = merge(result[key], value);
  }
  return result;
}
