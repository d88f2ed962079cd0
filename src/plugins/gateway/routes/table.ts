import type { RouteEntry } from './entry.ts';

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
