import { type RouteDefinition, type RouteEntry, variablesOf } from './entry.ts';
import { type SecretSources, UpstreamSecret } from './upstream-secret.ts';

/** One server behind the gateway, ready to be called or with the reason why it is not. */
export interface Route {
  readonly name: string;
  readonly entry: RouteEntry;
  /** Absent when it is not configured. Its query may hold a secret: never show it. */
  readonly url: URL | undefined;
  /** Why it can't be called now: no URL, no token. */
  readonly reason: string | undefined;
  /**
   * The headers by which a call presents itself to the upstream, with a token read as late as possible.
   *
   * @param authorization the caller's own, which only relay routes pass on
   * @throws HF_CONFIG_SECRET_*, HF_GATEWAY_ROUTE the token can't be used
   */
  readonly credential: (authorization: string | undefined) => Readonly<Record<string, string>>;
  /** @returns what a call of the upstream's tool costs */
  readonly costOf: (tool: string) => number;
  /** @returns whether the route offers the upstream's tool */
  readonly offers: (tool: string) => boolean;
}

/** An entry that can't be a route, or a route that can't be opened. */
export interface RejectedRoute {
  readonly name: string;
  readonly reason: string;
}

/** The routes of one revision. Immutable: a reload makes another one, and calls keep the route they began with. */
export interface RouteTable {
  /** Raised by every change. */
  readonly revision: number;
  readonly routes: ReadonlyMap<string, Route>;
  readonly rejected: readonly RejectedRoute[];
}

export const emptyTable: RouteTable = { revision: 0, routes: new Map(), rejected: [] };

/**
 * Makes a route of its definition, and reads its token for the first time.
 *
 * @throws HF_GATEWAY_ROUTE, HF_CONFIG_SECRET_MODE, HF_CONFIG_SECRET_INVALID the token can't be used as it is
 */
export async function openRoute(definition: RouteDefinition, sources: SecretSources): Promise<Route> {
  const { entry, url, secret: source } = definition;
  const { name, costs, tools } = entry;
  const offered = tools && new Set(tools);
  const secret = source === undefined ? undefined : new UpstreamSecret(source, sources);
  await secret?.load();
  const variables = variablesOf(name);
  return {
    name,
    entry,
    url: url === undefined ? undefined : new URL(url),
    get reason() {
      if (url === undefined) return `not configured: set ${variables}_URL`;
      if (secret)
        return secret.missing ? `without its token, which ${secret.keeper} does not give` : undefined;
      return needsToken(entry)
        ? `without a token: set ${variables}_TOKEN_FILE or ${variables}_TOKEN`
        : undefined;
    },
    credential: (authorization) => credentialOf(entry, secret, authorization),
    costOf: (tool) => (Object.hasOwn(costs, tool) ? costs[tool] : costs['*']) ?? 0,
    offers: (tool) => offered?.has(tool) ?? true,
  };
}

const needsToken = (entry: RouteEntry): boolean =>
  entry.disposition === 'overwrite' || (entry.disposition === 'custom' && entry.kind.needsSecret === true);

function credentialOf(
  entry: RouteEntry,
  secret: UpstreamSecret | undefined,
  authorization: string | undefined,
): Readonly<Record<string, string>> {
  switch (entry.disposition) {
    case 'overwrite':
      return secret ? { authorization: `Bearer ${secret.read()}` } : {};
    case 'relay':
      return authorization === undefined ? {} : { authorization };
    case 'credential_free':
      return {};
    case 'custom':
      return lowered(entry.kind.headers({ options: entry.options as never, secret: secret?.read() }));
  }
}

function lowered(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
