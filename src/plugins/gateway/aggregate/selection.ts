import type { Route, RouteTable } from '../routes/route.ts';

/** By which a caller of the aggregate names the servers it wants, comma separated. */
export const SELECTION_HEADER = 'x-mcp-servers';
/** Names beyond these are not even looked at. */
const MOST_NAMES = 100;

/** The servers that a request to the aggregate may mean, before the key's scope is looked at. */
export interface Selection {
  readonly routes: readonly Route[];
  /** What the caller named; undefined when it left the choice to its key. */
  readonly named: readonly string[] | undefined;
}

/**
 * All servers, or those that the header names. A header that matches nothing selects nothing (G12): who mistypes a name
 * must not get every server instead.
 */
export function select({ routes }: RouteTable, header: string | string[] | undefined): Selection {
  if (header === undefined) return { routes: [...routes.values()], named: undefined };
  const names = String(header)
    .split(',', MOST_NAMES)
    .map((name) => name.trim())
    .filter((name) => name !== '');
  const named = [...new Set(names)];
  return { routes: named.flatMap((name) => routes.get(name) ?? []), named };
}

/** A route as the aggregate shows it: always prefixed, and never with an HTTP 401 that would end the whole session. */
export function aggregated(route: Route): Route {
  const entry = { ...route.entry, prefix: true };
  return {
    ...route,
    entry: entry.disposition === 'relay' ? { ...entry, relayErrors: 'jsonrpc' } : entry,
  };
}
