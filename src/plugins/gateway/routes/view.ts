import type { Json } from '../../../core/json.ts';
import type { RouteState, RoutesContext } from '../../../machines/mcp-routes.ts';
import type { LiveRoutes } from './live-routes.ts';

/** How a route's upstream is. */
export interface RouteHealth {
  readonly state: string;
  readonly reason?: string;
  /** ISO 8601. */
  readonly checkedAt?: string;
  /** How many tools it lists. */
  readonly tools?: number;
}

/** A route as commands and pages show it: no query, no token. */
export interface RouteView {
  readonly name: string;
  readonly disposition: string;
  readonly upstream?: string;
  readonly secret?: string;
  /** Why it can't be called. */
  readonly reason?: string;
  /** Why what the file says of it does not serve. */
  readonly problem?: string;
  /** How its upstream is, as it was last asked. */
  readonly health?: RouteHealth;
  /** It was rolled back, and stays so until its entry changes. */
  readonly pinned?: true;
  /** ISO 8601, and the revision of the table, since which this definition serves. */
  readonly since: string;
  readonly revision: number;
  /** What a rollback could bring back, newest first. */
  readonly before: readonly {
    readonly revision: number;
    readonly upstream?: string;
    readonly since: string;
  }[];
}

/** The whole table. */
export interface TableView {
  readonly revision: number;
  readonly routes: readonly RouteView[];
  readonly rejected: readonly { readonly name: string; readonly reason: string }[];
  /** Why the file as a whole could not be taken. */
  readonly refused?: string;
}

export function viewOf({ table, known }: LiveRoutes): TableView {
  const routes = Object.entries(known?.routes ?? {}).sort() as [string, RouteState][];
  return {
    revision: table.revision,
    routes: routes.flatMap(([name, state]) => {
      const reason = table.routes.get(name)?.reason;
      return state.serving ? [routeView(state, state.serving, reason)] : [];
    }),
    rejected: table.rejected,
    ...(known?.refused && { refused: known.refused.reason }),
  };
}

function routeView(
  { problem, pinned, before }: RouteState,
  { name, disposition, upstream, secret, since, revision }: NonNullable<RouteState['serving']>,
  reason: string | undefined,
): RouteView {
  return {
    name,
    disposition,
    ...(upstream !== undefined && { upstream }),
    ...(secret !== undefined && { secret }),
    ...(reason !== undefined && { reason }),
    ...(problem !== undefined && { problem }),
    ...(pinned && { pinned }),
    since: new Date(since).toISOString(),
    revision,
    before: before.map((one) => ({
      revision: one.revision,
      ...(one.upstream !== undefined && { upstream: one.upstream }),
      since: new Date(one.since).toISOString(),
    })),
  };
}

/** What health pages say of the table; `ok: false` when something of the file does not serve. */
export function faultOf({ table, known }: LiveRoutes): Json {
  const reason = reasonOf(known, table.rejected);
  const names = [...table.routes.values()];
  return {
    ok: reason === undefined,
    ...(reason !== undefined && { reason }),
    revision: table.revision,
    routes: names.length,
    configured: names.filter((route) => route.reason === undefined).length,
  };
}

function reasonOf(
  known: RoutesContext | undefined,
  rejected: readonly { readonly name: string; readonly reason: string }[],
): string | undefined {
  if (known?.refused) return `the changed configuration can not be taken: ${known.refused.reason}`;
  if (rejected.length === 0) return undefined;
  return rejected.map(({ name, reason }) => `route ${name}: ${reason}`).join('; ');
}
