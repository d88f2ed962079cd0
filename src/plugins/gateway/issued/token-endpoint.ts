import type * as OAuth from 'oauth4webapi';
import { HttpCallError, type HttpClient } from '../../../core/host/http/client.ts';
import { plaintextHost } from '../../../core/host/http/plaintext.ts';
import { TokenFault } from './token-fault.ts';

/** Deadline of one request to an authorization server, milliseconds. */
export const ISSUER_DEADLINE_MS = 10_000;
/** Longest answer of an authorization server, bytes. */
export const ISSUER_ANSWER_LIMIT: number = 256 * 1024;
/** How long the metadata of an authorization server are kept, milliseconds. */
const METADATA_KEPT_MS = 60 * 60_000;
/** What a token may have to stand in a header. */
const TOKEN = /^[\x21-\x7e]{1,16384}$/;
/** Error codes of RFC 6749, 5.2, and of what extends it; anything else an answer says is not repeated. */
const ERROR_CODE = /^[a-z][a-z_]{0,39}$/;
/** The server refuses the caller's own token (RFC 8693, 2.2.2, and what servers make of it). */
const OF_SUBJECT: ReadonlySet<string> = new Set(['invalid_grant', 'invalid_request']);
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const TOKEN_TYPES = 'urn:ietf:params:oauth:token-type:';

/** A token as its authorization server issued it. */
export interface IssuedToken {
  readonly value: string;
  /** From the request on, milliseconds; undefined where the server does not say. */
  readonly lifetimeMs: number | undefined;
}

/** What of a route's entry says where its tokens come from, and what they are for. */
export interface IssuerSettings {
  readonly issuer?: string | undefined;
  readonly tokenEndpoint?: string | undefined;
  readonly clientId: string;
  readonly clientAuthentication: 'client_secret_basic' | 'client_secret_post';
  readonly audience?: string | undefined;
  readonly resource?: string | undefined;
  readonly scopes: readonly string[];
  /** What callers bring; undefined for tokens of the gateway itself. */
  readonly subjectTokenType?: 'access_token' | 'id_token' | 'jwt' | undefined;
  readonly insecure?: boolean | undefined;
}

/** What a token endpoint uses of the gateway. */
export interface TokenEndpointServices {
  readonly http: Pick<HttpClient, 'call'>;
  /** @returns the client's secret as it is now @throws HF_CONFIG_SECRET_*, HF_GATEWAY_ROUTE it can't be read */
  readonly secret: () => string;
  /** Monotonic, milliseconds. */
  readonly now: () => number;
}

type Call = OAuth.CustomFetchOptions<'GET' | 'POST', URLSearchParams | undefined>;

interface SentByClient {
  readonly [OAuth.customFetch]: (url: string, call: Call) => Promise<Response>;
  readonly [OAuth.allowInsecureRequests]: true;
}

/**
 * Asks one authorization server for tokens, by client credentials (RFC 6749, 4.4) or token exchange (RFC 8693). Each
 * request has a deadline, and no redirect is followed.
 */
export class TokenEndpoint {
  readonly #settings: IssuerSettings;
  readonly #services: TokenEndpointServices;
  /** The URL that the entry names. */
  readonly #configured: string;
  /** Where it is, for operators. */
  readonly #place: string;
  #server: { readonly found: OAuth.AuthorizationServer; readonly until: number } | undefined;

  constructor(settings: IssuerSettings, services: TokenEndpointServices) {
    this.#settings = settings;
    this.#services = services;
    this.#configured = settings.issuer ?? settings.tokenEndpoint ?? '';
    this.#place = new URL(this.#configured).origin;
  }

  /**
   * @param subject the caller's own token, which is exchanged; undefined asks for a token of the gateway itself
   * @throws TokenFault there is none
   */
  async request(subject: string | undefined): Promise<IssuedToken> {
    const { clientId, clientAuthentication, audience, resource, scopes } = this.#settings;
    const secret = this.#secret();
    const oauth = await import('oauth4webapi');
    const parameters = new URLSearchParams();
    if (scopes.length > 0) parameters.set('scope', scopes.join(' '));
    if (audience !== undefined) parameters.set('audience', audience);
    if (resource !== undefined) parameters.set('resource', resource);
    try {
      const server = await this.#metadata(oauth);
      const client = { client_id: clientId };
      const authentication =
        clientAuthentication === 'client_secret_post'
          ? oauth.ClientSecretPost(secret)
          : oauth.ClientSecretBasic(secret);
      const options = this.#options(oauth);
      if (subject === undefined) {
        const answer = await oauth.clientCredentialsGrantRequest(
          server,
          client,
          authentication,
          parameters,
          options,
        );
        return tokenIn(await oauth.processClientCredentialsResponse(server, client, answer));
      }
      for (const [name, value] of Object.entries(this.#exchanged(subject))) parameters.set(name, value);
      const answer = await oauth.genericTokenEndpointRequest(
        server,
        client,
        authentication,
        EXCHANGE,
        parameters,
        options,
      );
      return tokenIn(await oauth.processGenericTokenEndpointResponse(server, client, answer));
    } catch (error) {
      this.#server = undefined; // it may have moved
      throw this.#faultOf(oauth, error, subject !== undefined);
    }
  }

  #exchanged(subject: string): Record<string, string> {
    const { subjectTokenType: type = 'access_token' } = this.#settings;
    return {
      subject_token: subject,
      subject_token_type: `${TOKEN_TYPES}${type}`,
      requested_token_type: `${TOKEN_TYPES}access_token`,
    };
  }

  #secret(): string {
    try {
      return this.#services.secret();
    } catch {
      throw new TokenFault('server', "its client's secret can not be read", 'it can not be asked for');
    }
  }

  async #metadata(oauth: typeof OAuth): Promise<OAuth.AuthorizationServer> {
    const { issuer, tokenEndpoint } = this.#settings;
    if (issuer === undefined) return { issuer: this.#place, token_endpoint: tokenEndpoint ?? '' };
    const now = this.#services.now();
    if (this.#server && now < this.#server.until) return this.#server.found;
    const url = new URL(issuer);
    const ask = (algorithm: 'oauth2' | 'oidc') =>
      oauth.discoveryRequest(url, { ...this.#options(oauth), algorithm });
    const first = await ask('oidc');
    const answer = first.status === 404 ? await ask('oauth2') : first;
    const found = await oauth.processDiscoveryResponse(url, answer);
    this.#server = { found, until: now + METADATA_KEPT_MS };
    return found;
  }

  /** Has the library send by the product's own client, which refuses plaintext by its own rule. */
  #options(oauth: typeof OAuth): SentByClient {
    return {
      [oauth.customFetch]: async (url, { method, headers, body }) => {
        // What the entry itself names was allowed when it was read; what metadata name is not.
        const insecure = this.#settings.insecure ?? plaintextHost(this.#configured) !== undefined;
        const answer = await this.#services.http.call({
          url,
          method,
          headers,
          ...(body && { body: body.toString(), secretIn: 'body' as const }),
          insecure,
        });
        // No other header: the library would take a challenge for the reason, which stands in the body.
        const type = answer.header('content-type');
        const { status } = answer;
        const text = status === 204 || status === 304 ? null : answer.text();
        return new Response(text, { status, headers: type === undefined ? {} : { 'content-type': type } });
      },
      [oauth.allowInsecureRequests]: true,
    };
  }

  #faultOf(oauth: typeof OAuth, error: unknown, isExchange: boolean): TokenFault {
    const from = (what: string) => `${this.#place} ${what}`;
    if (error instanceof TokenFault) return error;
    if (error instanceof HttpCallError) {
      const shown = error.failure === 'timeout' ? 'does not answer in time' : 'cannot be reached';
      return new TokenFault('server', from(`cannot be asked for it: ${error.reason}`), shown);
    }
    if (error instanceof oauth.ResponseBodyError) {
      const code = ERROR_CODE.test(error.error) ? error.error : 'an error of its own';
      if (isExchange && OF_SUBJECT.has(code))
        return new TokenFault('caller', from(`refuses the caller's token (${code})`), code);
      return new TokenFault(
        'server',
        from(`refuses to issue one (${code})`),
        `refuses to issue one (${code})`,
      );
    }
    const { OperationProcessingError, UnsupportedOperationError } = oauth;
    if (
      [OperationProcessingError, UnsupportedOperationError, TypeError].some((known) => error instanceof known)
    ) {
      const what = 'answers with what is no token, or with metadata that are not its own';
      return new TokenFault('server', from(what), 'answers with what is no token');
    }
    const shown = 'could not be asked';
    return new TokenFault('server', from(shown), shown);
  }
}

/** @throws TokenFault no header can hold it */
function tokenIn({ access_token: value, expires_in }: OAuth.TokenEndpointResponse): IssuedToken {
  if (!TOKEN.test(value)) {
    const what = 'answers with a token that no header can hold';
    throw new TokenFault('server', `its authorization server ${what}`, what);
  }
  return { value, lifetimeMs: expires_in === undefined ? undefined : expires_in * 1_000 };
}
