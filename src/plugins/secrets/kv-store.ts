import { z } from 'zod';
import { SecretsError, type SecretsStore } from '../../core/contracts/secrets-store.ts';
import { HttpCallError, HttpClient } from '../../core/host/http/client.ts';
import { readTokenFile } from '../../core/host/secrets/token-file.ts';
import type { HoldfastError } from '../../core/kernel/errors/holdfast-error.ts';
import { KernelError } from '../../core/kernel/errors/kernel-error.ts';

export interface KvOptions {
  /** Base URL of the server, e.g. `https://vault.example:8200`. */
  readonly url: string;
  /** Absolute path. */
  readonly tokenFile: string;
  /** Where the server mounts its KV engine, e.g. `secret`. */
  readonly mount: string;
  readonly prefix?: string | undefined;
  readonly namespace?: string | undefined;
  /** PEM. */
  readonly ca?: string | undefined;
  /** Deadline of one call, milliseconds. */
  readonly deadlineMs: number;
}

interface KvAnswer {
  readonly status: number;
  /** Undefined when the body is no JSON. */
  readonly json: unknown;
}

const body = z.looseObject({
  data: z.looseObject({
    data: z.record(z.string(), z.unknown()).nullable(),
    metadata: z.looseObject({ version: z.int().min(0), created_time: z.string() }),
  }),
});

const capabilities = z.looseObject({ capabilities: z.array(z.string()) });

/** The newest version of a path; 0 when it was never written. */
interface Version {
  readonly properties: Readonly<Record<string, unknown>>;
  readonly version: number;
  readonly changedAt?: number | undefined;
}

/** Attempts to write while others write to the same path. */
const MOST_ATTEMPTS = 4;

/**
 * A secrets store on a server of the KV version 2 protocol: the secret `<path>#<property>` is a property of
 * `<mount>/data/<path>`.
 */
export function kvStore(options: KvOptions): SecretsStore & { close(): Promise<void> } {
  const server = new KvServer(options);

  async function newest(path: string, signal: AbortSignal): Promise<Version> {
    const answer = await server.call('GET', path, undefined, signal);
    if (answer.status === 403) throw refused('read', path);
    const parsed = body.safeParse(answer.json);
    if (answer.status === 404) {
      // A deleted path still has versions, and a write must name the last one.
      return { properties: {}, version: parsed.data?.data.metadata.version ?? 0 };
    }
    if (answer.status !== 200 || !parsed.success) throw unusable(answer);
    const { data, metadata } = parsed.data.data;
    const changedAt = Date.parse(metadata.created_time);
    return {
      properties: data ?? {},
      version: metadata.version,
      changedAt: Number.isNaN(changedAt) ? undefined : changedAt,
    };
  }

  return {
    async read(path, property, signal) {
      const { properties } = await newest(path, signal);
      const value = Object.hasOwn(properties, property) ? properties[property] : undefined;
      if (typeof value === 'string' && value.trim() !== '') return value.trim();
      const reason = value === undefined ? 'there is none' : 'it is empty, or not a text';
      throw new KernelError('HF_CONFIG_SECRET_MISSING', { file: placeOf(path, property), reason });
    },

    async write(path, property, value, signal) {
      for (let attempt = 1; ; attempt += 1) {
        const { properties, version } = await newest(path, signal);
        const answer = await change(path, { properties, version }, { [property]: value }, signal);
        if (answer.status === 200 || answer.status === 204) return;
        if (answer.status === 403) throw refused('write', path);
        if (answer.status !== 400 || !isMismatch(answer)) throw unusable(answer);
        if (attempt === MOST_ATTEMPTS) {
          throw new SecretsError('HF_SECRETS_CONFLICT', { place: placeOf(path, property) });
        }
      }
    },

    async rights(path, signal) {
      const answer = await server.capabilities(path, signal);
      if (answer.status === 403) throw refused('read the policy of', path);
      const parsed = capabilities.safeParse(answer.json);
      if (answer.status !== 200 || !parsed.success) throw unusable(answer);
      return parsed.data.capabilities;
    },

    async describe(path, property, signal) {
      const { properties, changedAt } = await newest(path, signal);
      const exists = Object.hasOwn(properties, property);
      return { exists, place: placeOf(path, property), ...(exists && { changedAt }) };
    },

    close: () => server.close(),
  };

  /** Changes one property. A server that cannot merge gets all properties, on the version that was read. */
  async function change(
    path: string,
    { properties, version }: Version,
    changed: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<KvAnswer> {
    const check = { options: { cas: version } };
    if (Object.keys(properties).length > 0) {
      const patched = await server.call('PATCH', path, { ...check, data: changed }, signal);
      if (patched.status !== 405 && patched.status !== 403) return patched;
    }
    return server.call('POST', path, { ...check, data: { ...properties, ...changed } }, signal);
  }

  function placeOf(path: string, property: string): string {
    return `${server.place(path)}#${property}`;
  }

  function refused(what: string, path: string): HoldfastError {
    return new SecretsError('HF_SECRETS_REFUSED', { what, place: server.place(path) });
  }

  function unusable({ status }: KvAnswer): HoldfastError {
    const reason = status === 503 ? 'it is sealed or in maintenance (503)' : `it answered ${status}`;
    return new SecretsError('HF_SECRETS_UNREACHABLE', { place: server.origin, reason });
  }
}

function isMismatch({ json }: KvAnswer): boolean {
  const { errors = [] } = z.looseObject({ errors: z.array(z.string()) }).safeParse(json).data ?? {};
  return errors.some((text) => text.includes('check-and-set'));
}

const LARGEST_ANSWER = 1024 * 1024;
const TYPES = { GET: undefined, POST: 'application/json', PATCH: 'application/merge-patch+json' } as const;

/** Calls of one KV version 2 server. */
class KvServer {
  /** Without credentials. */
  readonly origin: string;
  readonly #http: HttpClient;
  readonly #options: KvOptions;

  constructor(options: KvOptions) {
    this.#options = options;
    this.origin = new URL(options.url).origin;
    const { deadlineMs: timeoutMs, ca } = options;
    this.#http = new HttpClient({ timeoutMs, answerLimit: LARGEST_ANSWER, ca, connections: 2 });
  }

  /** URL of the data under a path. */
  place(path: string): string {
    return `${this.#api}/${this.#dataPath(path).split('/').map(encodeURIComponent).join('/')}`;
  }

  get #api(): string {
    return `${this.#options.url.replace(/\/+$/, '')}/v1`;
  }

  #dataPath(path: string): string {
    const { mount, prefix } = this.#options;
    return [mount, 'data', ...(prefix === undefined ? [] : [prefix]), path].join('/');
  }

  /** What the policies of the token allow on a path; the server's default policy lets every token ask this of itself. */
  capabilities(path: string, signal: AbortSignal): Promise<KvAnswer> {
    const body = { paths: [this.#dataPath(path)] };
    return this.#send('POST', `${this.#api}/sys/capabilities-self`, 'application/json', body, signal);
  }

  /**
   * @throws HF_CONFIG_SECRET_* the token's file can't be used; nothing was sent
   * @throws HF_SECRETS_UNREACHABLE no whole answer came in time
   */
  call(
    method: keyof typeof TYPES,
    path: string,
    body: object | undefined,
    signal: AbortSignal,
  ): Promise<KvAnswer> {
    return this.#send(method, this.place(path), TYPES[method], body, signal);
  }

  async #send(
    method: keyof typeof TYPES,
    url: string,
    type: string | undefined,
    body: object | undefined,
    signal: AbortSignal,
  ): Promise<KvAnswer> {
    const { tokenFile, namespace } = this.#options;
    const headers = {
      'x-vault-token': readTokenFile(tokenFile),
      'x-vault-request': 'true',
      ...(namespace !== undefined && { 'x-vault-namespace': namespace }),
      ...(type !== undefined && { 'content-type': type }),
    };
    try {
      const answer = await this.#http.call({ method, url, headers, json: body, signal });
      return { status: answer.status, json: answer.json() };
    } catch (error) {
      if (!(error instanceof HttpCallError)) throw error;
      const { reason } = error;
      throw new SecretsError('HF_SECRETS_UNREACHABLE', { place: this.origin, reason });
    }
  }

  close(): Promise<void> {
    return this.#http.close();
  }
}
