import type { FlattenedJWSInput, JSONWebKeySet, JWTHeaderParameters } from 'jose';
import { HttpCallError, type HttpClient } from '../../../../core/host/http/client.ts';
import { plaintextHost } from '../../../../core/host/http/plaintext.ts';
import type { Logger } from '../../../../core/host/logging/logger.ts';
import type { Clock } from '../../../../core/kernel/clock.ts';
import { isObject } from '../../../../core/kernel/json.ts';

/** Keys are read again after so long, while the ones that are there still serve, milliseconds. */
const FRESH_MS = 10 * 60_000;
/** Older keys check nothing: the provider may have withdrawn them, milliseconds. */
const STALE_MS = 60 * 60_000;
/** The provider is asked no more often, whatever tokens name, milliseconds. */
const PAUSE_MS = 10_000;
const MOST_KEYS = 100;
/** What the provider may take to answer, milliseconds. */
const DEADLINE_MS = 5_000;

type Jose = typeof import('jose');
type KeySet = ReturnType<Jose['createLocalJWKSet']>;

/** Nobody can say now whether a token is valid. */
export class IssuerAway extends Error {}

export interface IssuerServices {
  /** Asks identity providers: with a deadline and a longest answer, and without following redirects. */
  readonly http: Pick<HttpClient, 'call'>;
  readonly clock: Pick<Clock, 'monotonic' | 'now'>;
  readonly logger: Logger;
}

/** The keys with which one identity provider signs its tokens, as it publishes them (OpenID Connect Discovery, RFC 8414). */
export class IssuerKeys {
  readonly #issuer: string;
  readonly #mayBePlaintext: boolean;
  readonly #services: IssuerServices;
  #keys: { readonly find: KeySet; readonly at: number } | undefined;
  #askedAt = Number.NEGATIVE_INFINITY;
  /** Why the newest attempt to read them failed. */
  #trouble: string | undefined;
  #reading: Promise<void> | undefined;

  /** @param mayBePlaintext whether keys may come from another machine over `http://` */
  constructor(issuer: string, mayBePlaintext: boolean, services: IssuerServices) {
    this.#issuer = issuer;
    this.#mayBePlaintext = mayBePlaintext;
    this.#services = services;
  }

  /**
   * The key that a token names. Keys that are not known are looked for once more, at a bounded rate.
   *
   * @throws IssuerAway the keys cannot be read; what jose throws where there is no such key
   */
  async find(jose: Jose, header: JWTHeaderParameters, token: FlattenedJWSInput): ReturnType<KeySet> {
    const find = await this.#current(jose);
    try {
      return await find(header, token);
    } catch (error) {
      if (!(error instanceof jose.errors.JWKSNoMatchingKey)) throw error;
      await this.#read(jose);
      if (this.#trouble !== undefined) throw new IssuerAway(this.#trouble);
      return (this.#keys?.find ?? find)(header, token);
    }
  }

  async #current(jose: Jose): Promise<KeySet> {
    if (this.#ageMs >= STALE_MS) await this.#read(jose);
    else if (this.#ageMs >= FRESH_MS) void this.#read(jose);
    if (this.#keys && this.#ageMs < STALE_MS) return this.#keys.find;
    throw new IssuerAway(this.#trouble ?? 'has not answered yet');
  }

  get #ageMs(): number {
    return this.#services.clock.monotonic() - (this.#keys?.at ?? Number.NEGATIVE_INFINITY);
  }

  /** Reads them, unless that was tried just now; never throws. */
  async #read(jose: Jose): Promise<void> {
    const { clock, logger } = this.#services;
    if (!this.#reading) {
      if (clock.monotonic() - this.#askedAt < PAUSE_MS) return;
      this.#askedAt = clock.monotonic();
      this.#reading = this.#load(jose)
        .then((find) => {
          this.#keys = { find, at: clock.monotonic() };
          this.#trouble = undefined;
        })
        .catch((error: unknown) => {
          this.#trouble = reasonOf(error);
          logger.warn({ issuer: this.#issuer, reason: this.#trouble }, 'gateway.identity_provider_away');
        })
        .finally(() => {
          this.#reading = undefined;
        });
    }
    await this.#reading;
  }

  async #load(jose: Jose): Promise<KeySet> {
    const base = new URL(this.#issuer);
    const path = base.pathname.replace(/\/+$/, '');
    const metadata =
      (await this.#json(`${base.origin}${path}/.well-known/openid-configuration`)) ??
      (await this.#json(`${base.origin}/.well-known/oauth-authorization-server${path}`));
    if (!metadata) throw new IssuerAway('publishes no metadata');
    if (metadata.issuer !== this.#issuer) throw new IssuerAway('calls itself by another name');
    const place = typeof metadata.jwks_uri === 'string' ? URL.parse(metadata.jwks_uri) : null;
    if (!place || !/^https?:$/.test(place.protocol)) throw new IssuerAway('names no place of its keys');
    const isWorse = place.protocol !== base.protocol && place.protocol === 'http:';
    if (isWorse || (!this.#mayBePlaintext && plaintextHost(place.href) !== undefined))
      throw new IssuerAway('publishes its keys in plaintext');
    const keys = (await this.#json(place.href))?.keys;
    if (!Array.isArray(keys) || !keys.every(isObject) || keys.length > MOST_KEYS)
      throw new IssuerAway('publishes keys that cannot be read');
    return jose.createLocalJWKSet({ keys } as JSONWebKeySet);
  }

  /** @returns undefined where there is none */
  async #json(url: string): Promise<Readonly<Record<string, unknown>> | undefined> {
    const answer = await this.#services.http.call({
      url,
      headers: { accept: 'application/json' },
      timeoutMs: DEADLINE_MS,
    });
    if (answer.status === 404) return undefined;
    if (!answer.ok) throw new IssuerAway(`answers with status ${answer.status}`);
    const body = answer.json();
    if (!isObject(body)) throw new IssuerAway('answers with something that is no JSON object');
    return body;
  }
}

/** A part of a sentence that begins with the provider. */
function reasonOf(error: unknown): string {
  if (error instanceof IssuerAway) return error.message;
  if (error instanceof HttpCallError) return `cannot be reached: ${error.reason}`;
  return 'publishes keys that cannot be read';
}
