import { Agent } from 'undici';
import { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import { readTokenFile } from '../../../core/kernel/secret-file.ts';

export interface KvOptions {
  /** Base of the server, e.g. `https://vault.example:8200`. */
  readonly url: string;
  /** Absolute path. */
  readonly tokenFile: string;
  readonly mount: string;
  readonly prefix?: string | undefined;
  readonly namespace?: string | undefined;
  /** PEM. */
  readonly ca?: string | undefined;
  readonly deadlineMs: number;
}

export interface KvAnswer {
  readonly status: number;
  /** Undefined when the body is no JSON. */
  readonly json: unknown;
}

const LARGEST_ANSWER = 1024 * 1024;
const TYPES = { GET: undefined, POST: 'application/json', PATCH: 'application/merge-patch+json' } as const;

/** HTTP with one KV version 2 server: bounded answers, a deadline each, redirects never followed. */
export class KvServer {
  /** Without credentials. */
  readonly origin: string;
  readonly #agent: Agent;
  readonly #options: KvOptions;

  constructor(options: KvOptions) {
    this.#options = options;
    this.origin = new URL(options.url).origin;
    this.#agent = new Agent({
      connections: 2,
      connect: { timeout: options.deadlineMs, ...(options.ca !== undefined && { ca: options.ca }) },
    });
  }

  /** URL of a path's data. */
  place(path: string): string {
    const { url, mount, prefix } = this.#options;
    const parts = [...(prefix?.split('/') ?? []), ...path.split('/')].map(encodeURIComponent);
    return `${url.replace(/\/+$/, '')}/v1/${mount}/data/${parts.join('/')}`;
  }

  /**
   * @throws HF_CONFIG_SECRET_* the token's file can't be used; nothing was sent
   * @throws HF_SECRET_STORE_UNREACHABLE no whole answer came in time
   */
  async call(
    method: keyof typeof TYPES,
    path: string,
    body: object | undefined,
    signal: AbortSignal,
  ): Promise<KvAnswer> {
    const { tokenFile, namespace, deadlineMs } = this.#options;
    const type = TYPES[method];
    const { origin, pathname } = new URL(this.place(path));
    const headers = {
      'x-vault-token': readTokenFile(tokenFile),
      'x-vault-request': 'true',
      ...(namespace !== undefined && { 'x-vault-namespace': namespace }),
      ...(type !== undefined && { 'content-type': type }),
    };
    try {
      const answer = await this.#agent.request({
        origin,
        path: pathname,
        method,
        headers,
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: AbortSignal.any([signal, AbortSignal.timeout(deadlineMs)]),
      });
      return { status: answer.statusCode, json: await jsonOf(answer.body) };
    } catch (error) {
      if (signal.aborted) throw error;
      throw new HoldfastError('HF_SECRET_STORE_UNREACHABLE', { place: this.origin, reason: faultOf(error) });
    }
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }
}

async function jsonOf(body: AsyncIterable<Uint8Array>): Promise<unknown> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > LARGEST_ANSWER) throw new Error('too large');
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch {
    return undefined;
  }
}

/** Only a code: a message of the network may quote what was sent. */
function faultOf(error: unknown): string {
  if (!(error instanceof Error)) return 'it broke off';
  if (error.name === 'TimeoutError') return 'nothing came in time';
  if (error.message === 'too large') return `its answer is larger than ${LARGEST_ANSWER} bytes`;
  return 'code' in error ? String(error.code) : 'it broke off';
}
