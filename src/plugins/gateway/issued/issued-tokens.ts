import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { bearerOf } from '../../../core/host/http/admission.ts';
import type { HttpClient } from '../../../core/host/http/client.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import type { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { CachedToken } from './cached-token.ts';
import type { ClientSecret, RouteToken, TokenProblem } from './route-token.ts';
import { type IssuedToken, type IssuerSettings, TokenEndpoint } from './token-endpoint.ts';
import { TokenFault, withoutToken } from './token-fault.ts';

/** Callers of one route whose tokens are kept; whoever called longest ago gives way. */
const MOST_CALLERS = 1_000;
/** Callers without a token whose refusal is remembered, so that they do not push those with one out. */
const MOST_REFUSED = 200;
/** Exchanges of one route at a time. */
const MOST_AT_ONCE = 64;

/** What gets tokens from authorization servers. */
export interface IssuerServices {
  readonly http: Pick<HttpClient, 'call'>;
  readonly clock: Clock;
}

/** The token by which the gateway calls an upstream, for itself or for one caller. */
export interface IssuedCredential {
  /** The newest token; undefined before `prepare`. */
  readonly value: string | undefined;
  /** Makes sure that there is a token. @returns why there is none @throws the reason of `stop` */
  prepare(stop?: AbortSignal): Promise<TokenFault | undefined>;
  /** The upstream refuses this token. @returns whether there is another one */
  replace(refused: string, stop: AbortSignal): Promise<boolean>;
}

/** The tokens that an authorization server issues for one route: one of the gateway's own, or one for each caller. */
export class IssuedTokens implements RouteToken {
  readonly #clock: Clock;
  readonly #endpoint: TokenEndpoint;
  readonly #secret: ClientSecret;
  /** The gateway's own; undefined where callers' tokens are exchanged. */
  readonly own: CachedToken | undefined;
  readonly #callers = new LRUCache<string, CachedToken>({ max: MOST_CALLERS });
  readonly #refused = new LRUCache<string, CachedToken>({ max: MOST_REFUSED });
  #exchanging = 0;
  /** Why the authorization server gave the newest token to nobody. */
  #fault: TokenFault | undefined;
  #listener: (() => void) | undefined;

  /** @param secret of the gateway's client, read before */
  constructor(settings: IssuerSettings, secret: ClientSecret, { http, clock }: IssuerServices) {
    this.#clock = clock;
    this.#secret = secret;
    const now = () => clock.monotonic();
    this.#endpoint = new TokenEndpoint(settings, { http, now, secret: () => secret.read() });
    secret.onChange(() => this.#listener?.());
    if (settings.subjectTokenType !== undefined) return;
    this.own = new CachedToken({
      clock,
      request: () => this.#endpoint.request(undefined),
      ended: (fault) => this.#ended(fault),
      isKept: true,
    });
  }

  /** @param authorization header of the caller @returns the credential for the upstream of this caller's calls */
  of(authorization: string | undefined): IssuedCredential {
    if (this.own) return this.own;
    const subject = bearerOf({ authorization });
    return subject === undefined ? NOBODY : this.#caller(subject);
  }

  onChange(listener: () => void): void {
    this.#listener = listener;
  }

  async ready(): Promise<void> {
    await this.#secret.ready();
    await this.own?.prepare();
  }

  get problem(): TokenProblem | undefined {
    const secret = this.#secret.problem;
    if (secret?.lastGood === false || !this.#fault) return secret;
    const { reason } = this.#fault;
    const leftMs = this.own ? this.own.leftMs : 0;
    const shown = withoutToken(this.#fault);
    const issued = true;
    if (leftMs === 0) return { reason, shown, lastGood: false, issued };
    return { reason, shown, lastGood: true, issued, endsAt: Math.round(this.#clock.now() + leftMs) };
  }

  get unusable(): HoldfastError | undefined {
    return this.#secret.unusable;
  }

  /** Why no call can be made; a route of callers' tokens goes on for those who have one. */
  get blocked(): string | undefined {
    const problem = this.own ? this.problem : this.#secret.problem;
    return problem?.lastGood === false ? problem.shown : undefined;
  }

  close(): void {
    this.own?.close();
    for (const token of [...this.#callers.values(), ...this.#refused.values()]) token.close();
    this.#callers.clear();
    this.#refused.clear();
  }

  #ended(fault: TokenFault | undefined): void {
    if (fault?.of === 'busy') return;
    this.#fault = fault?.of === 'server' ? fault : undefined; // who refuses a caller's token has let the gateway in
    this.#listener?.();
  }

  #caller(subject: string): CachedToken {
    const key = hash('sha256', subject, 'base64url');
    const known = this.#callers.get(key) ?? this.#refused.get(key);
    if (known) return known;
    const token: CachedToken = new CachedToken({
      clock: this.#clock,
      request: () => this.#exchange(subject),
      ended: (fault) => {
        if (!fault) {
          this.#callers.set(key, token);
          this.#refused.delete(key);
        }
        this.#ended(fault);
      },
      isKept: false,
    });
    this.#refused.set(key, token);
    return token;
  }

  async #exchange(subject: string): Promise<IssuedToken> {
    if (this.#exchanging >= MOST_AT_ONCE)
      throw new TokenFault('busy', 'too many exchanges at once', 'is asked for too many tokens at once');
    this.#exchanging += 1;
    try {
      const { value, lifetimeMs } = await this.#endpoint.request(subject);
      return { value, lifetimeMs: shorter(lifetimeMs, endOf(subject, this.#clock.now())) };
    } finally {
      this.#exchanging -= 1;
    }
  }
}

/** A caller without a bearer token. */
const NOBODY: IssuedCredential = {
  value: undefined,
  prepare: async () => new TokenFault('caller', 'the caller has no bearer token', 'invalid_token'),
  replace: async () => false,
};

const shorter = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || other === undefined ? (one ?? other) : Math.min(one, other);

/**
 * How long a caller's own token lives on, where it can be read: what it was exchanged for ends with it here. It is not
 * checked, as it can only shorten.
 *
 * @param now epoch milliseconds
 */
function endOf(subject: string, now: number): number | undefined {
  const { exp } = claimsOf(subject) ?? {};
  return typeof exp === 'number' ? Math.max(0, exp * 1_000 - now) : undefined;
}

/** @returns what a JWT says of itself, which nobody has checked; undefined for any other token */
export function claimsOf(token: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
    return isObject(claims) ? claims : undefined;
  } catch {
    return undefined;
  }
}
