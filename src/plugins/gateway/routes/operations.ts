import { z } from 'zod';
import type { HttpSurface } from '../../../core/host/http/contract.ts';
import type { Reply } from '../../../core/host/http/exchanges.ts';
import { serveOperation } from '../../../core/host/operations/serve.ts';
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import type { Json } from '../../../core/kernel/json.ts';
import type { RouteState, RoutesContext } from '../../../machines/gateway/routes.ts';
import { GatewayError } from '../errors.ts';
import { rollbackRequested } from './actor.ts';
import { type RouteLoader, reloadRoutes } from './loader.ts';

/** What commands ask. */
export const ROUTES_PATH = '/gateway/routes';
export const RELOAD_PATH = '/gateway/reload';
export const ROLLBACK_PATH = '/gateway/rollback';

const REPLY_MS = 15_000;
const nothing = z.strictObject({});
const rollback = z.strictObject({ route: z.string().min(1).max(64), to: z.int().min(1).optional() });

/** What the commands of routes stand on; there once the plugin has started. */
export interface RouteControlParts {
  readonly live: () => RouteLoader;
  readonly health: () => HealthSource | undefined;
  readonly documents: () => DocumentSource | undefined;
  /** The options of the plugin as it was started. */
  readonly options: Readonly<Record<string, unknown>>;
}

/** Serves what `gateway routes`, `reload` and `rollback` ask of the running instance. */
export function serveRoutes(
  surface: HttpSurface,
  { services }: Pick<PluginContext, 'services'>,
  { live, health, documents, options }: RouteControlParts,
): void {
  serveOperation(surface, ROUTES_PATH, nothing, () =>
    viewOf(live(), { health: health(), documents: documents(), now: services.clock.now() }),
  );

  serveOperation(surface, RELOAD_PATH, nothing, async (_asked, { correlation }) => {
    const answer = services.exchanges.open(correlation, REPLY_MS);
    answer.catch(() => {}); // a reload that throws leaves nobody waiting
    const restart = await reloadRoutes(services, live(), 'asked', options, correlation);
    return { ...accepted(await answer, 'HF_GATEWAY_RELOAD'), restart };
  });

  serveOperation(surface, ROLLBACK_PATH, rollback, async ({ route, to }, { correlation }) => {
    const answer = services.exchanges.open(correlation, REPLY_MS);
    const at = services.clock.now();
    services.bus.publish(rollbackRequested, { at, route, ...(to !== undefined && { to }) }, { correlation });
    return accepted(await answer, 'HF_GATEWAY_ROLLBACK');
  });
}

/** @throws HF_GATEWAY_RELOAD, HF_GATEWAY_ROLLBACK what the table's machine refused, and why */
function accepted({ status, body }: Reply, refusal: 'HF_GATEWAY_RELOAD' | 'HF_GATEWAY_ROLLBACK'): object {
  if (status === 200) return body as object;
  throw new GatewayError(refusal, {
    reason: String((body as { reason?: unknown }).reason).replace(/\.$/, ''),
  });
}

/** How a route's upstream is. */
export interface RouteHealth {
  readonly state: string;
  readonly reason?: string;
  /** ISO 8601. */
  readonly checkedAt?: string;
  /** How many tools it lists. */
  readonly tools?: number;
}

/** What is known of the protected-resource document of a relay route's upstream. */
export interface RouteDocument {
  /** Whether it had one when it was last heard; absent when it never was. */
  readonly last?: 'document' | 'none';
  /** When, ISO 8601. */
  readonly heardAt?: string;
  /** Why the newest look at it failed, if it did: what was known is served on. */
  readonly trouble?: string;
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
  readonly document?: RouteDocument;
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

/** Who knows how the upstream of a route is. */
export interface HealthSource {
  health(name: string): RouteHealth | undefined;
}

/** Who knows of the documents of upstreams. */
export interface DocumentSource {
  known(upstream: URL): (Omit<RouteDocument, 'heardAt'> & { readonly ageMs?: number }) | undefined;
}

/** What a view of the table is made of, beside the table. */
export interface ViewSources {
  readonly health: HealthSource | undefined;
  readonly documents: DocumentSource | undefined;
  readonly now: number;
}

export function viewOf({ table, known }: RouteLoader, sources: ViewSources): TableView {
  const routes = Object.entries(known?.routes ?? {}).sort() as [string, RouteState][];
  return {
    revision: table.revision,
    routes: routes.flatMap(([name, state]) => {
      const route = table.routes.get(name);
      const reason = route?.reason;
      const health = reason === undefined ? sources.health?.health(name) : undefined;
      const document = route?.entry.disposition === 'relay' ? documentOf(route.url, sources) : undefined;
      const facts = {
        ...(reason !== undefined && { reason }),
        ...(health && { health }),
        ...(document && { document }),
      };
      return state.serving ? [routeView(state, state.serving, facts)] : [];
    }),
    rejected: table.rejected,
    ...(known?.refused && { refused: known.refused.reason }),
  };
}

function documentOf(url: URL | undefined, { documents, now }: ViewSources): RouteDocument | undefined {
  const known = url && documents?.known(url);
  if (!known) return undefined;
  const { ageMs, ...document } = known;
  return { ...document, ...(ageMs !== undefined && { heardAt: new Date(now - ageMs).toISOString() }) };
}

function routeView(
  { problem, pinned, before }: RouteState,
  { name, disposition, upstream, secret, since, revision }: NonNullable<RouteState['serving']>,
  facts: Pick<RouteView, 'reason' | 'health' | 'document'>,
): RouteView {
  return {
    name,
    disposition,
    ...(upstream !== undefined && { upstream }),
    ...(secret !== undefined && { secret }),
    ...(problem !== undefined && { problem }),
    ...facts,
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

/** What health pages say: `ok: false` when something of the file does not serve, or a route is down. */
export function faultOf({ table, known }: RouteLoader, source: HealthSource | undefined): Json {
  const configured = [...table.routes.values()].filter((route) => route.reason === undefined);
  const health = configured.map(({ name }) => ({ name, ...source?.health(name) }));
  const down = health.filter(({ state }) => state === 'down');
  const reasons = [
    ...reasonsOf(known, table.rejected),
    ...down.map(({ name, reason }) => `route ${name} is down: its upstream ${reason}`),
  ];
  return {
    ok: reasons.length === 0,
    ...(reasons.length > 0 && { reason: reasons.join('; ') }),
    revision: table.revision,
    routes: table.routes.size,
    configured: configured.length,
    upstreams: Object.fromEntries(
      health.map(({ name, state = 'unknown', reason, tools }) => [
        name,
        { state, ...(reason !== undefined && { reason }), ...(tools !== undefined && { tools }) },
      ]),
    ),
  };
}

function reasonsOf(
  known: RoutesContext | undefined,
  rejected: readonly { readonly name: string; readonly reason: string }[],
): string[] {
  const entries = rejected.map(({ name, reason }) => `route ${name}: ${reason}`);
  if (!known?.refused) return entries;
  return [`the changed configuration can not be taken: ${known.refused.reason}`, ...entries];
}
