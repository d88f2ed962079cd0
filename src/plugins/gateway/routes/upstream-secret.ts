import type { SecretsStore } from '../../../core/contracts/secrets-store.ts';
import { parseSecretReference } from '../../../core/host/secrets/secret-reference.ts';
import { readTokenFile } from '../../../core/host/secrets/token-file.ts';
import { type HoldfastError, isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { KernelError } from '../../../core/kernel/errors/kernel-error.ts';
import { GatewayError } from '../errors.ts';
import type { RouteToken, TokenProblem } from '../issued/route-token.ts';
import type { Environment } from './entries.ts';

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
 * stays in use, and `problem` says why. It is kept in this object and in requests only.
 */
export class UpstreamSecret implements RouteToken {
  readonly #source: string;
  readonly #noun: string;
  readonly #fetch: () => string | Promise<string>;
  #token: string | undefined;
  #problem: HoldfastError | undefined;
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;
  #listener: (() => void) | undefined;

  /**
   * @param source `file:<path>`, `env:<variable>` or `store:<path>#<property>`
   * @param noun what it is
   */
  constructor(source: string, sources: SecretSources, noun: 'token' | 'client secret' = 'token') {
    this.#source = source;
    this.#noun = noun;
    this.#fetch = fetcher(source, sources);
  }

  /** Reads it for the first time. A token that can't be used throws nothing: see `problem`. */
  async ready(): Promise<void> {
    this.#refresh();
    await this.#reading;
  }

  /** Calls back at each read after which the problem is another one, or over. There is one listener. */
  onChange(listener: () => void): void {
    this.#listener = listener;
  }

  /** It does nothing by itself: it is read when it is needed. */
  close(): void {}

  /** Why the token can't be used as it is stored now; undefined while it can, and for a store that is away for a while. */
  get problem(): TokenProblem | undefined {
    this.#refresh();
    const error = this.#problem;
    const lastGood = this.#token !== undefined;
    if (!error || (lastGood && !isOfToken(error))) return undefined;
    const { variable, reason } = error.details;
    const place = isCoded(error, 'HF_GATEWAY_ROUTE') ? `${variable}: ${reason}` : error.what;
    return { reason: place.replace(/\.$/, ''), shown: this.#shown(error), lastGood };
  }

  /** The error that refuses the token as it is stored now; undefined where there is none to refuse. */
  get unusable(): HoldfastError | undefined {
    const error = this.#token === undefined ? this.#problem : undefined;
    return isCoded(error, 'HF_CONFIG_SECRET_MISSING') ? undefined : error;
  }

  /** @throws HF_CONFIG_SECRET_*, HF_GATEWAY_ROUTE it could never be read */
  read(): string {
    this.#refresh();
    if (this.#token === undefined) throw this.#problem ?? this.#unusable('it has not been read yet');
    return this.#token;
  }

  #shown(error: HoldfastError): string {
    const keeper = this.#source.startsWith('file:')
      ? 'its file'
      : this.#source.startsWith('env:')
        ? 'its variable'
        : 'the secrets store';
    if (isCoded(error, 'HF_CONFIG_SECRET_MISSING'))
      return `without its ${this.#noun}, which ${keeper} does not provide`;
    const { reason } = error.details;
    const why = isCoded(error, 'HF_CONFIG_SECRET_MODE')
      ? 'other users may read it'
      : isCoded(error, 'HF_GATEWAY_ROUTE') || isCoded(error, 'HF_CONFIG_SECRET_INVALID')
        ? String(reason)
        : 'it can not be read';
    return `without a usable ${this.#noun}: the one in ${keeper} is refused: ${why}`;
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
    if (this.#noun === 'token' && /^bearer\s/i.test(bare)) {
      throw this.#unusable(
        'the token begins with the word Bearer, which the gateway adds itself: it is 7 characters too long',
      );
    }
    this.#token = bare;
    this.#settle(undefined);
  }

  #fail(error: unknown): void {
    this.#settle(isCoded(error) ? error : this.#unusable('it could not be read'));
  }

  #settle(problem: HoldfastError | undefined): void {
    const isNew = this.#problem?.what !== problem?.what;
    this.#problem = problem;
    if (isNew) this.#listener?.();
  }

  #unusable(reason: string): HoldfastError {
    return new GatewayError('HF_GATEWAY_ROUTE', { variable: this.#source.replace(/^\w+:/, ''), reason });
  }
}

/** Whether an error is about the token itself, and not about a store that does not answer for a while. */
const isOfToken = ({ code }: HoldfastError): boolean => OF_TOKEN.has(code);

const OF_TOKEN: ReadonlySet<string> = new Set([
  'HF_CONFIG_SECRET_FOLDER',
  'HF_CONFIG_SECRET_INVALID',
  'HF_CONFIG_SECRET_MISSING',
  'HF_CONFIG_SECRET_MODE',
  'HF_CONFIG_SECRET_OWNER',
  'HF_GATEWAY_ROUTE',
]);

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
