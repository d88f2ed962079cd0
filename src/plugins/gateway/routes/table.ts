import { existsSync } from 'node:fs';
import { HoldfastError, isCoded } from '../../../core/errors/index.ts';
import { isObject } from '../../../core/json.ts';
import { readTokenFile } from '../../../core/secrets/index.ts';
import { type RouteEntry, routeSchema } from './entry.ts';

/** One server behind the gateway, ready to be called or with the reason why it is not. */
export interface Route {
  readonly name: string;
  readonly entry: RouteEntry;
  /** Absent when it is not configured. Its query may hold a secret: never show it. */
  readonly url: URL | undefined;
  /** Why it can't be called: no URL, no token. */
  readonly reason: string | undefined;
  /** The composed `Authorization` of an overwrite route, read as late as possible. @throws HF_CONFIG_SECRET_* */
  readonly authorization: () => string | undefined;
  /** @returns what a call of the upstream's tool costs */
  readonly costOf: (tool: string) => number;
  /** @returns whether the route offers the upstream's tool */
  readonly offers: (tool: string) => boolean;
}

/** An entry that can't be a route. */
export interface RejectedRoute {
  readonly name: string;
  readonly reason: string;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** Tokens are read again after this long, so that a rotated one needs no restart. */
const TOKEN_KEPT_MS = 5_000;

/** The routes of one revision. Immutable: a reload makes another one. */
export class RouteTable {
  /** Raised by every reload. */
  readonly revision: number;
  readonly routes: ReadonlyMap<string, Route>;
  readonly rejected: readonly RejectedRoute[];

  /**
   * Each entry stands for itself: a bad one is listed in `rejected` and the others serve (G2).
   *
   * @param entries as `plugins.config.ts` has them
   */
  constructor(entries: readonly unknown[], env: Environment, revision = 1) {
    const routes = new Map<string, Route>();
    const rejected: RejectedRoute[] = [];
    for (const input of entries) {
      const parsed = routeSchema.safeParse(input);
      const name = isObject(input) && typeof input.name === 'string' ? input.name.slice(0, 64) : '(no name)';
      const issue = parsed.error?.issues[0];
      if (issue) rejected.push({ name, reason: `${issue.path.join('.') || 'entry'}: ${issue.message}` });
      else if (routes.has(name)) rejected.push({ name, reason: 'another entry bears the same name' });
      else if (parsed.data) {
        try {
          routes.set(name, openRoute(parsed.data, env));
        } catch (error) {
          if (!isCoded(error)) throw error;
          rejected.push({ name, reason: error.what });
        }
      }
    }
    this.revision = revision;
    this.routes = routes;
    this.rejected = rejected;
  }
}

function openRoute(entry: RouteEntry, env: Environment): Route {
  const { name, costs, tools } = entry;
  const prefix = `HOLDFAST_MCP_${name.toUpperCase()}`;
  const address = entry.url ?? env[`${prefix}_URL`];
  const offered = tools && new Set(tools);
  const authorization =
    entry.disposition === 'overwrite' ? bearerOf(entry.tokenFile, env, prefix) : undefined;
  return {
    name,
    entry,
    url: address === undefined || address === '' ? undefined : upstreamUrl(address, prefix),
    reason: reasonNotToServe(address, authorization, prefix),
    authorization: () => authorization?.read(),
    costOf: (tool) => (Object.hasOwn(costs, tool) ? costs[tool] : costs['*']) ?? 0,
    offers: (tool) => offered?.has(tool) ?? true,
  };
}

function reasonNotToServe(
  address: string | undefined,
  authorization: Bearer | undefined,
  prefix: string,
): string | undefined {
  if (!address) return `not configured: set ${prefix}_URL`;
  if (authorization && !authorization.known) return `no token: set ${prefix}_TOKEN_FILE or ${prefix}_TOKEN`;
  return undefined;
}

function upstreamUrl(address: string, prefix: string): URL {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    throw new HoldfastError('HF_GATEWAY_ROUTE', {
      variable: `${prefix}_URL`,
      reason: 'it is no http or https URL',
    });
  }
  if (url.username !== '' || url.password !== '') {
    throw new HoldfastError('HF_GATEWAY_ROUTE', {
      variable: `${prefix}_URL`,
      reason: 'it holds a user or password, which belong in the token file',
    });
  }
  return url;
}

interface Bearer {
  readonly known: boolean;
  readonly read: () => string | undefined;
}

/** The token of an overwrite route: from a file that may change, or from the environment. */
function bearerOf(tokenFile: string | undefined, env: Environment, prefix: string): Bearer {
  const file = tokenFile ?? env[`${prefix}_TOKEN_FILE`];
  const given = env[`${prefix}_TOKEN`];
  if (file === undefined || file === '') {
    if (!given) return { known: false, read: () => undefined };
    const header = `Bearer ${bare(given, `${prefix}_TOKEN`)}`;
    return { known: true, read: () => header };
  }
  let header: string | undefined;
  let readAt = 0;
  const read = () => {
    const now = performance.now();
    if (header === undefined || now - readAt > TOKEN_KEPT_MS) {
      header = `Bearer ${bare(readTokenFile(file), file)}`;
      readAt = now;
    }
    return header;
  };
  if (existsSync(file)) read(); // a prefixed token or an open mode is told at load
  return { known: true, read };
}

/** A stored value that carries the scheme would go out with it twice (G7). */
function bare(token: string, from: string): string {
  if (/^bearer\s/i.test(token)) {
    throw new HoldfastError('HF_GATEWAY_ROUTE', {
      variable: from,
      reason: 'the token begins with the word Bearer, which the gateway adds itself',
    });
  }
  return token.trim();
}
