import type { SecretsStore } from '../../../core/contracts/secrets-store.ts';
import { parseSecretReference } from '../../../core/host/secrets/secret-reference.ts';
import { CoreError } from '../../../core/kernel/errors/core-error.ts';
import { type HoldfastError, isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { readTokenFile } from '../../../core/kernel/secret-file.ts';
import { GatewayError } from '../errors.ts';
import type { Environment } from './entry.ts';

/** Tokens are read again after this long, so that a rotated one needs no restart. */
const KEPT_MS = 5_000;
const DEADLINE_MS = 5_000;

/** Where tokens are read from. */
export interface SecretSources {
  readonly env: Environment;
  /** Where some plugin provides one. */
  readonly store: SecretsStore | undefined;
}

/**
 * The token of a route: read when it is needed, and again when it is older than some seconds. One that can't be read
 * for a moment leaves the last one good. It is held here and in the request alone.
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
   * @throws HF_GATEWAY_ROUTE it carries the scheme; HF_CONFIG_SECRET_MODE, HF_CONFIG_SECRET_INVALID. One that is not
   * there (yet) is no reason to refuse the route: it is `missing`.
   */
  async load(): Promise<void> {
    this.#refresh();
    await this.#reading;
    if (this.#problem && !isCoded(this.#problem, 'HF_CONFIG_SECRET_MISSING')) throw this.#problem;
  }

  /** Whether there is no token now. Why, and at which path, is not for clients to know. */
  get missing(): boolean {
    this.#refresh();
    return this.#token === undefined;
  }

  /** Who should have it, in words. */
  get keeper(): string {
    if (this.#source.startsWith('file:')) return 'its file';
    return this.#source.startsWith('env:') ? 'its variable' : 'the secrets store';
  }

  /** @throws HF_CONFIG_SECRET_*, HF_GATEWAY_ROUTE there never was one that can be used */
  read(): string {
    this.#refresh();
    if (this.#token === undefined) throw this.#problem ?? this.#unusable('it has not been read yet');
    return this.#token;
  }

  #refresh(): void {
    const now = performance.now();
    if (now - this.#readAt < KEPT_MS || this.#reading !== undefined) return;
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

  /** A stored value that carries the scheme would go out with it twice (G7). */
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
      return () => store.read(path, property, AbortSignal.timeout(DEADLINE_MS));
    }
  }
}

function missing(file: string, reason: string): never {
  throw new CoreError('HF_CONFIG_SECRET_MISSING', { file, reason });
}
