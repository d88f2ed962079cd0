import type { JWTPayload } from 'jose';
import { LRUCache } from 'lru-cache';
import { bearerOf } from '../../../../core/host/http/admission.ts';
import { written } from '../../mcp/challenge.ts';
import { rpcError, SERVER_ERROR, UNAUTHORIZED } from '../../mcp/json-rpc.ts';
import { sessionUnknown } from '../../mcp/protocol.ts';
import type { LocalServer } from '../server.ts';
import { IssuerAway, IssuerKeys, type IssuerServices } from './issuer-keys.ts';

/** What a route says of the tokens that its server takes. */
export interface IdentityRules {
  /** Identity providers, exactly as tokens name them in `iss`. */
  readonly issuers: readonly string[];
  readonly audience: string;
  /** Whether keys may come from another machine over `http://`. */
  readonly mayBePlaintext: boolean;
}

/** Signatures by a key pair: a shared secret, or none, proves nothing. */
const ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
];
/** Kinds of token (RFC 9068, RFC 7519) that give access; a logout token, say, does not. */
const TYPES: ReadonlySet<string | undefined> = new Set([undefined, 'jwt', 'at+jwt', 'application/at+jwt']);
/** Clocks differ by so much, seconds. */
const TOLERANCE_SECONDS = 30;
const LONGEST_TOKEN = 8_192;
/** When to come back while a provider is away, seconds. */
const AWAY_SECONDS = '10';
/** More than a server on this machine has. */
const MOST_SESSIONS = 4_000;

/**
 * Lets nobody to a server on this machine without a valid token of an identity provider, as an upstream of an identity route
 * does (RFC 6750): its issuer, audience, signature and times are checked for each request. A session is for the subject that
 * began it. The server behind it gets no token.
 */
export class IdentityGuard implements LocalServer {
  readonly #server: LocalServer;
  readonly #rules: IdentityRules;
  readonly #services: IssuerServices;
  readonly #issuers: ReadonlyMap<string, IssuerKeys>;
  readonly #subjects = new LRUCache<string, string>({ max: MOST_SESSIONS });

  constructor(server: LocalServer, rules: IdentityRules, services: IssuerServices) {
    this.#server = server;
    this.#rules = rules;
    this.#services = services;
    this.#issuers = new Map(
      rules.issuers.map((issuer) => [issuer, new IssuerKeys(issuer, rules.mayBePlaintext, services)]),
    );
  }

  async fetch(request: Request, key?: string): Promise<Response> {
    const token = bearerOf({ authorization: request.headers.get('authorization') ?? undefined });
    if (token === undefined) return refused('invalid_request', 'there is no bearer token');
    if (token.length > LONGEST_TOKEN) return refused('invalid_token', 'it is too long');
    let subject: string;
    try {
      subject = await this.#subjectOf(token);
    } catch (error) {
      if (error instanceof IssuerAway) return away(error.message);
      return refused('invalid_token', await problemOf(error));
    }
    const session = request.headers.get('mcp-session-id');
    if (session !== null && this.#subjects.get(session) !== subject) return sessionOfNobody();
    request.headers.delete('authorization');
    const response = await this.#server.fetch(request, key);
    const begun = response.headers.get('mcp-session-id');
    if (session === null && begun !== null) this.#subjects.set(begun, subject);
    return response;
  }

  close(): Promise<void> {
    return this.#server.close();
  }

  /** @returns who the token is of; two subjects are never equal. @throws IssuerAway; what is wrong with the token */
  async #subjectOf(token: string): Promise<string> {
    const jose = await import('jose');
    const { alg = '', typ } = jose.decodeProtectedHeader(token);
    const { iss = '' } = jose.decodeJwt(token);
    const issuer = this.#issuers.get(iss);
    // Whoever only makes tokens up gets no question to a provider.
    if (!issuer) throw new RefusedToken('it is of another issuer');
    if (!ALGORITHMS.includes(alg)) throw new RefusedToken('it is not signed by a key pair');
    if (!TYPES.has(typ?.toLowerCase())) throw new RefusedToken('it is no access token');
    const { payload } = await jose.jwtVerify(token, (...named) => issuer.find(jose, ...named), {
      issuer: iss,
      audience: this.#rules.audience,
      algorithms: ALGORITHMS,
      requiredClaims: ['exp'],
      clockTolerance: TOLERANCE_SECONDS,
      currentDate: new Date(this.#services.clock.now()),
    });
    return JSON.stringify([iss, ...ownerOf(payload)]);
  }
}

/** @throws RefusedToken it names nobody: all such tokens would share their sessions */
function ownerOf({ sub, client_id: client }: JWTPayload): readonly (string | null)[] {
  if (isName(sub)) return [sub, null];
  if (isName(client) && (sub === undefined || sub === null)) return [null, client];
  throw new RefusedToken('it names no subject');
}

const isName = (claim: unknown): claim is string => typeof claim === 'string' && claim !== '';

/** A token that this guard itself refuses. The message is the reason. */
class RefusedToken extends Error {}

/** @returns what is wrong with a token, as a part of a sentence; nothing of the token itself */
async function problemOf(error: unknown): Promise<string> {
  if (error instanceof RefusedToken) return error.message;
  const { errors } = await import('jose');
  if (error instanceof errors.JWTExpired) return 'it has expired';
  if (error instanceof errors.JWTClaimValidationFailed) {
    if (error.claim === 'aud') return 'it is for another audience';
    if (error.claim === 'nbf') return 'it is not valid yet';
    return `its claim ${error.claim} does not hold`;
  }
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'its signature is not of its issuer';
  if (error instanceof errors.JWKSNoMatchingKey) return 'its issuer has no such key';
  return 'it is no token that can be checked';
}

function refused(error: 'invalid_request' | 'invalid_token', reason: string): Response {
  const description = `The identity token is refused: ${reason}`;
  const { body } = rpcError(401, null, UNAUTHORIZED, `${description}.`);
  const challenge = `Bearer ${written('error', error)}, ${written('error_description', description)}`;
  return Response.json(body, { status: 401, headers: { 'www-authenticate': challenge } });
}

function away(reason: string): Response {
  const text = `No identity token can be checked now (temporarily_unavailable): the identity provider ${reason}.`;
  const { body } = rpcError(503, null, SERVER_ERROR, text);
  return Response.json(body, { status: 503, headers: { 'retry-after': AWAY_SECONDS } });
}

/** As of a session that is not there: nobody learns of the sessions of others. */
function sessionOfNobody(): Response {
  const { status, body } = sessionUnknown(undefined);
  return Response.json(body, { status });
}
