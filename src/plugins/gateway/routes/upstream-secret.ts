import type { SecretsStore } from '../../../core/contracts/secrets-store.ts';
import { parseSecretReference } from '../../../core/host/secrets/secret-reference.ts';
import { readTokenFile } from '../../../core/host/secrets/token-file.ts';
import { type HoldfastError, isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { KernelError } from '../../../core/kernel/errors/kernel-error.ts';
import { GatewayError } from '../errors.ts';
import type { Environment } from './entry.ts';

/** Age at which a token is read again, so that a rotated one needs no restart. */
const MAX_AGE_MS = 5_000;
const STORE_TIMEOUT_MS = 5_000;

/** The places that tokens are read from. */
export interface SecretSources {
  readonly env: Environment;
  /** Undefined when no plugin provides one. */
  readonly store: SecretsStore | undefined;
}

/**
 * The token of a route. It is read when it is needed, and again after five seconds; while it can't be read, the last one
 * stays in use. It is kept in this object and in requests only.
 */
export class UpstreamSecret {
  readonly #source: string;
  readonly #fetch: () => string | Promise<string>;
  #token: string | undefined;
  #problem: HoldfastError | undefined;
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  /** @param source `file:<path>`, `env:<variable>` or `store:<path>#<property>` */
  constructor(source: string, sources: SecretSources) {
    this.#source = source;
    this.#fetch = fetcher(source, sources);
  }

  /**
   * Reads it for the first time.
   *
   * @throws HF_GATEWAY_ROUTE it begins with the scheme; HF_CONFIG_SECRET_MODE, HF_CONFIG_SECRET_INVALID. A token that
   * does not exist yet throws nothing: it is `missing`.
   */
  async load(): Promise<void> {
    this.#refresh();
    await this.#reading;
    if (this.#problem && !isCoded(this.#problem, 'HF_CONFIG_SECRET_MISSING')) throw this.#problem;
  }

  /** Whether there is no token now. The reason may name a path, so clients do not see it. */
  get missing(): boolean {
    this.#refresh();
    return this.#token === undefined;
  }

  /** The kind of place that should hold it, for messages. */
  get keeper(): string {
    if (this.#source.startsWith('file:')) return 'its file';
    return this.#source.startsWith('env:') ? 'its variable' : 'the secrets store';
  }

  /** @throws HF_CONFIG_SECRET_*, HF_GATEWAY_ROUTE it could never be read */
  read(): string {
    this.#refresh();
    if (this.#token === undefined) throw this.#problem ?? this.#unusable('it has not been read yet');
    return this.#token;
  }

  #refresh(): void {
    const now = performance.now();
    if (now - this.#readAt < MAX_AGE_MS || this.#reading !== undefined) return;
    this.#readAt = now;
    try {
      const read = this.#fetch();
      if (typeof read === 'string') {
        this.#take(read);
        return;
      }
      this.#reading = read
        .then((token) => this.#take(token))
        .catch((error) => this.#fail(error))
        .finally(() => {
          this.#reading = undefined;
        });
    } catch (error) {
      this.#fail(error);
    }
  }

  /** A stored value that begins with `Bearer` would be sent with the scheme twice (G7). */
  #take(token: string): void {
    const bare = token.trim();
    if (/^bearer\s/i.test(bare)) {
      throw this.#unusable(
        'the token begins with the word Bearer, which the gateway adds itself: it is 7 characters too long',
      );
    }
    this.#token = bare;
    this.#problem = undefined;
  }

  #fail(error: unknown): void {
    this.#problem = isCoded(error) ? error : this.#unusable('it could not be read');
  }

  #unusable(reason: string): HoldfastError {
    return new GatewayError('HF_GATEWAY_ROUTE', { variable: this.#source.replace(/^\w+:/, ''), reason });
  }
}

function fetcher(source: string, { env, store }: SecretSources): () => string | Promise<string> {
  const at = source.indexOf(':');
  const place = source.slice(at + 1);
  switch (source.slice(0, at)) {
    case 'file':
      return () => readTokenFile(place);
    case 'env':
      return () => env[place] || missing(place, 'the variable is not set');
    default: {
      if (!store) return () => missing(place, 'no plugin provides a secrets store');
      const { path, property } = parseSecretReference(place);
      return () => store.read(path, property, AbortSignal.timeout(STORE_TIMEOUT_MS));
    }
  }
}

function missing(file: string, reason: string): never {
  throw new KernelError('HF_CONFIG_SECRET_MISSING', { file, reason });
}
