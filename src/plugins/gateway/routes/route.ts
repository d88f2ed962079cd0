import { type IssuedCredential, IssuedTokens, type IssuerServices } from '../issued/issued-tokens.ts';
import type { RouteToken } from '../issued/route-token.ts';
import type { LocalUpstreams } from '../local/upstreams.ts';
import type { ToolPins } from '../pins/tool-pins.ts';
import { type RouteDefinition, variablesOf } from './entries.ts';
import { hasIssuedTokens, needsIdentity, type RouteEntry } from './entry.ts';
import { RouteTools } from './tools.ts';
import { type SecretSources, UpstreamSecret } from './upstream-secret.ts';

/** One server behind the gateway, ready to be called or with the reason why it is not. */
export interface Route {
  readonly name: string;
  readonly entry: RouteEntry;
  /** Whether its callers need an identity token of their own. */
  readonly needsIdentity: boolean;
  /** Undefined while it is not configured; of a local server one that the dispatcher knows. The query may hold a secret: never show it. */
  readonly url: URL | undefined;
  /** Whether its server is on this machine and without a port. */
  readonly isLocal: boolean;
  /** Why it can't be called now: it has no URL, or no token. */
  readonly reason: string | undefined;
  /** The token that the gateway has for it, if any. */
  readonly token?: RouteToken | undefined;
  /** The token that an authorization server issues for its calls; prepared before `credential` is asked for. */
  readonly issued?: IssuedCredential | undefined;
  /** Undefined where all callers share one credential. @returns the route with the credential for the calls of one caller */
  readonly forCaller?: ((authorization: string | undefined) => Route) | undefined;
  /**
   * The headers with the credential for the upstream. The token is read at the last moment.
   *
   * @param authorization header of the caller, which only relay routes forward
   * @throws HF_CONFIG_SECRET_*, HF_GATEWAY_ROUTE the token can't be used
   */
  readonly credential: (authorization: string | undefined) => Readonly<Record<string, string>>;
  /** @returns the cost of a call, by the upstream's own name of the tool */
  readonly costOf: (tool: string) => number;
  /** Its tools as clients see them. */
  readonly tools: RouteTools;
  /** Of an API: @returns why it can't be reached, undefined when it can. A local server alone proves nothing of it. */
  readonly reach?: ((signal: AbortSignal) => Promise<string | undefined>) | undefined;
  /** Ends the server on this machine, where it has one. */
  close(): Promise<void>;
}

/** Where a route's token and its server come from. */
export interface RouteSources extends SecretSources {
  readonly locals: Pick<LocalUpstreams, 'open' | 'close'>;
  readonly pins: Pick<ToolPins, 'of'>;
  readonly issuers: IssuerServices;
}

/** An entry that is not a valid route, or a route that can't be opened. */
export interface RejectedRoute {
  readonly name: string;
  readonly reason: string;
}

/** The routes of one revision. It is immutable: a reload creates another one, and running calls keep their route. */
export interface RouteTable {
  /** Every change raises it. */
  readonly revision: number;
  readonly routes: ReadonlyMap<string, Route>;
  readonly rejected: readonly RejectedRoute[];
}

/** Has the table that serves now: another one after each reload. */
export interface ServedRoutes {
  readonly table: RouteTable;
}

export const emptyTable: RouteTable = { revision: 0, routes: new Map(), rejected: [] };

/**
 * Makes a route from its definition, and reads its token for the first time. A token that can't be used is a state of the
 * route: its calls are answered with the reason.
 */
export async function openRoute(definition: RouteDefinition, sources: RouteSources): Promise<Route> {
  const { entry, secret: source } = definition;
  const { name, costs } = entry;
  const noun = hasIssuedTokens(entry) ? 'client secret' : 'token';
  const secret = source === undefined ? undefined : new UpstreamSecret(source, sources, noun);
  await secret?.ready();
  const issued =
    hasIssuedTokens(entry) && secret ? new IssuedTokens(entry, secret, sources.issuers) : undefined;
  const token = issued ?? secret;
  const variables = variablesOf(name);
  const credential = (authorization: string | undefined) =>
    issued ? bearer(issued.own?.value) : credentialOf(entry, secret, authorization);
  const local = await sources.locals.open(entry, () => credential(undefined));
  const url = definition.url === undefined ? local?.url : new URL(definition.url);
  const route: Route = {
    name,
    entry,
    needsIdentity: needsIdentity(entry),
    url,
    isLocal: local !== undefined && url === local.url,
    token,
    issued: issued?.own,
    forCaller: issued && !issued.own ? (caller) => ofCaller(route, issued.of(caller)) : undefined,
    get reason() {
      if (url === undefined) return `not configured: set ${variables}_URL`;
      if (issued) return issued.blocked;
      if (secret) {
        const problem = secret.problem;
        if (problem?.lastGood === false) return problem.shown;
      } else if (needsToken(entry) && (!local || entry.openapi)) {
        const variable = `${variables}_${hasIssuedTokens(entry) ? 'CLIENT_SECRET' : 'TOKEN'}`;
        return `without a ${noun}: set ${variable}_FILE or ${variable}`;
      }
      return local?.api?.reason;
    },
    credential,
    costOf: (tool) => (Object.hasOwn(costs, tool) ? costs[tool] : costs['*']) ?? 0,
    tools: new RouteTools(entry, sources.pins.of(name, entry.pin)),
    reach: local?.api?.reach,
    close: async () => {
      token?.close();
      if (local) await sources.locals.close(local.url);
    },
  };
  return route;
}

/** The route as the calls of one caller use it, with the token that the caller's own was exchanged for. */
function ofCaller(route: Route, issued: IssuedCredential): Route {
  const { reason } = route;
  return { ...route, reason, issued, credential: () => bearer(issued.value) };
}

/** @param header that has the bare token, where an API expects it so */
function bearer(token: string | undefined, header?: string): Readonly<Record<string, string>> {
  if (token === undefined) return {};
  return header === undefined ? { authorization: `Bearer ${token}` } : { [header.toLowerCase()]: token };
}

const needsToken = (entry: RouteEntry): boolean =>
  entry.disposition === 'overwrite' ||
  hasIssuedTokens(entry) ||
  (entry.disposition === 'custom' && entry.kind.needsSecret === true);

function credentialOf(
  entry: RouteEntry,
  secret: UpstreamSecret | undefined,
  authorization: string | undefined,
): Readonly<Record<string, string>> {
  switch (entry.disposition) {
    case 'overwrite':
      return bearer(secret?.read(), entry.openapi?.credentialHeader);
    case 'relay':
      return authorization === undefined ? {} : { authorization };
    case 'credential_free':
    case 'client_credentials':
    case 'token_exchange':
      return {};
    case 'custom':
      return inLowerCase(entry.kind.headers({ options: entry.options, secret: secret?.read() }));
  }
}

function inLowerCase(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
