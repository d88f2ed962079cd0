/** What commands and health pages see of the routes, and what commands change: table, reload, rollback. */

import { z } from 'zod';
import type { Cluster } from '../../../core/contracts/cluster.ts';
import type { HttpSurface } from '../../../core/host/http/contract.ts';
import type { Reply } from '../../../core/host/http/pending-replies.ts';
import { serveOperation } from '../../../core/host/operations/serve.ts';
import type { Services } from '../../../core/host/plugin/definition.ts';
import { counted } from '../../../core/host/terminal.ts';
import { isoTime, newCorrelation } from '../../../core/kernel/clock.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { isObject, type Json, toPlain } from '../../../core/kernel/json.ts';
import {
  type RollbackRequested,
  type RouteState,
  rolledBack,
  whyNotFollowed,
} from '../../../machines/gateway/route-table.ts';
import { GatewayError } from '../errors.ts';
import type { StdioFacts } from '../local/stdio/stdio-server.ts';
import { rollbackRequested } from './actor.ts';
import { type LoginSettings, loginOf } from './entry.ts';
import type { RouteLoader } from './loader.ts';
import type { Route } from './route.ts';

export const ROUTES_PATH = '/gateway/routes';
export const RELOAD_PATH = '/gateway/reload';
export const ROLLBACK_PATH = '/gateway/rollback';

const REPLY_TIMEOUT_MS = 15_000;
const nothing = z.strictObject({});
const rollback = z.strictObject({ route: z.string().min(1).max(64), to: z.int().min(1).optional() });

/** What the operations use. */
interface OperationServices {
  /** Absent without other hosts. */
  readonly cluster?: Cluster | undefined;
  readonly services: Pick<Services, 'bus' | 'clock' | 'pendingReplies'>;
  readonly loader: RouteLoader;
  readonly prober: HealthSource;
  readonly documents: DocumentSource;
}

/** Serves `gateway routes`, `gateway reload` and `gateway rollback` on the control socket. */
export function serveRouteOperations(surface: HttpSurface, gateway: OperationServices): void {
  const { services, loader, cluster } = gateway;
  const { bus, clock, pendingReplies } = services;

  serveOperation(surface, ROUTES_PATH, nothing, () => tableView(gateway));

  serveOperation(surface, RELOAD_PATH, nothing, async (_request, { correlation }) => {
    const others = cluster && reloadElsewhere(cluster);
    const changed = await reload(gateway, correlation);
    return { ...changed, ...(await others) };
  });
  cluster?.onAsked(RELOAD_PATH, () => answerReload(gateway));

  serveOperation(surface, ROLLBACK_PATH, rollback, async ({ route, to }, { correlation }) => {
    const wanted = { at: clock.now(), route, ...(to !== undefined && { to }) };
    const everywhere = cluster && rollbackOf(loader, wanted);
    const answer = pendingReplies.open(correlation, REPLY_TIMEOUT_MS);
    bus.publish(rollbackRequested, { ...wanted, ...everywhere }, { correlation });
    return accepted(await answer, 'HF_GATEWAY_ROLLBACK');
  });
}

/** Reads the configuration file of this host again. @throws HF_GATEWAY_RELOAD */
async function reload({ services, loader }: OperationServices, correlation: string): Promise<object> {
  const answer = services.pendingReplies.open(correlation, REPLY_TIMEOUT_MS);
  answer.catch(() => {}); // when the reload throws, nothing awaits this promise
  const restart = await loader.reload('requested', correlation);
  return { ...accepted(await answer, 'HF_GATEWAY_RELOAD'), restart };
}

/** What became of a reload on another host: a changed table, or why it stays as it is. */
const reloadedSchema = z.object({
  revision: z.number().exactOptional(),
  refused: z.string().exactOptional(),
  rejected: z.array(z.object({ name: z.string(), reason: z.string() })).exactOptional(),
});

export type ReloadedHost = z.output<typeof reloadedSchema> & { readonly host: string };

/** What `gateway reload` says of the other hosts. */
export interface ReloadedHosts {
  readonly hosts: readonly ReloadedHost[];
  /** Names of those that did not answer: what they serve is unknown. */
  readonly silent: readonly string[];
}

async function reloadElsewhere(cluster: Cluster): Promise<ReloadedHosts> {
  // A host that is cut off reloads its own file all the same.
  const { answers, unanswered: silent } = await cluster.ask(RELOAD_PATH, {}, REPLY_TIMEOUT_MS);
  const hosts = answers.map(({ host, answer }) => ({ host, ...reloadedSchema.parse(answer) }));
  return { hosts, silent };
}

async function answerReload(gateway: OperationServices): Promise<Json> {
  try {
    return toPlain(reloadedSchema.parse(await reload(gateway, newCorrelation())), RELOAD_PATH);
  } catch (error) {
    if (!isCoded(error)) throw error;
    return { refused: error.what };
  }
}

/** @returns what a rollback means on every host @throws HF_GATEWAY_ROLLBACK it is impossible here */
function rollbackOf(
  { state }: RouteLoader,
  wanted: Omit<RollbackRequested, 'type'>,
): Pick<RollbackRequested, 'source' | 'fingerprint'> {
  const next = state ? rolledBack(state, { type: 'ROLLBACK', ...wanted }) : 'no routes were read yet';
  if (typeof next === 'string') throw new GatewayError('HF_GATEWAY_ROLLBACK', { reason: next });
  return { source: next.source, ...(next.serving && { fingerprint: next.serving.fingerprint }) };
}

/** @throws HF_GATEWAY_RELOAD, HF_GATEWAY_ROLLBACK the machine refused it */
function accepted({ status, body }: Reply, refusal: 'HF_GATEWAY_RELOAD' | 'HF_GATEWAY_ROLLBACK'): object {
  const fields = isObject(body) ? body : {};
  if (status === 200) return fields;
  throw new GatewayError(refusal, { reason: String(fields.reason).replace(/\.$/, '') });
}

/** Health of a route's upstream. */
export interface RouteHealth {
  readonly state: string;
  readonly reason?: string;
  /** Of a token that can't be used: an authorization server does not issue it. */
  readonly token?: 'issued';
  /** ISO 8601. */
  readonly checkedAt?: string;
  /** Number of tools that it lists. */
  readonly tools?: number;
}

/** State of the protected-resource document of a relay route's upstream. */
export interface RouteDocument {
  /** Whether the upstream had one when it last answered; absent when it never did. */
  readonly last?: 'document' | 'none';
  /** Time of that answer, ISO 8601. */
  readonly heardAt?: string;
  /** Why the newest attempt to read it failed. The last answer is served meanwhile. */
  readonly trouble?: string;
}

/** A route as commands and pages show it, without query and token. */
export interface RouteView {
  readonly name: string;
  readonly disposition: string;
  readonly upstream?: string;
  readonly secret?: string;
  /** Why it can't be called. */
  readonly reason?: string;
  /** Why the entry in the file does not serve. */
  readonly problem?: string;
  readonly health?: RouteHealth;
  readonly document?: RouteDocument;
  /** Of a relay route: what a client's entry needs for its login. */
  readonly login?: LoginSettings;
  /** It was rolled back, and stays so until its entry changes. */
  readonly pinned?: true;
  /** ISO 8601. */
  readonly since: string;
  /** First revision of the table with this definition. */
  readonly revision: number;
  /** Definitions that a rollback can restore, newest first. */
  readonly before: readonly {
    readonly revision: number;
    readonly upstream?: string;
    readonly since: string;
  }[];
}

/** The whole table as commands show it. */
export interface TableView {
  readonly revision: number;
  readonly routes: readonly RouteView[];
  readonly rejected: readonly { readonly name: string; readonly reason: string }[];
  /** Why the file as a whole was refused. */
  readonly refused?: string;
}

/** Where the health of a route is looked up. */
export interface HealthSource {
  health(name: string): RouteHealth | undefined;
}

/** Where the processes of a route's program are looked up. */
interface ProcessSource {
  facts(url: URL | undefined): StdioFacts | undefined;
}

/** Where the state of an upstream's document is looked up. */
export interface DocumentSource {
  status(upstream: URL): (Omit<RouteDocument, 'heardAt'> & { readonly ageMs?: number }) | undefined;
}

function tableView({ services, loader, prober, documents }: OperationServices): TableView {
  const { table, state } = loader;
  const now = services.clock.now();
  const states = Object.entries(state?.routes ?? {}).sort();
  const routes = states.flatMap(([name, known]) => {
    if (!known.serving) return [];
    const route = table.routes.get(name);
    const reason = route?.reason;
    const health = prober.health(name);
    const found = reason === undefined || health?.state === 'token_unusable' ? health : undefined;
    const document =
      route?.entry.disposition === 'relay' ? documentView(route.url, documents, now) : undefined;
    const facts = {
      ...loginView(route),
      ...(reason !== undefined && { reason }),
      ...(found && { health: found }),
      ...(document && { document }),
    };
    return [routeView(known, known.serving, facts)];
  });
  const { rejected } = table;
  return {
    revision: table.revision,
    routes,
    rejected,
    ...(state?.refused && { refused: state.refused.reason }),
  };
}

function loginView(route: Route | undefined): Pick<RouteView, 'login'> {
  const login = route && loginOf(route.entry);
  return login ? { login } : {};
}

function documentView(
  url: URL | undefined,
  documents: DocumentSource,
  now: number,
): RouteDocument | undefined {
  const status = url && documents.status(url);
  if (!status) return undefined;
  const { ageMs, ...document } = status;
  return { ...document, ...(ageMs !== undefined && { heardAt: new Date(now - ageMs).toISOString() }) };
}

function routeView(
  state: RouteState,
  { name, disposition, upstream, secret, since, revision }: NonNullable<RouteState['serving']>,
  facts: Pick<RouteView, 'reason' | 'health' | 'document' | 'login'>,
): RouteView {
  const { pinned, before, problem = whyNotFollowed(state) } = state;
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
    before: before.map((earlier) => ({
      revision: earlier.revision,
      ...(earlier.upstream !== undefined && { upstream: earlier.upstream }),
      since: new Date(earlier.since).toISOString(),
    })),
  };
}

function routesText(
  routes: number,
  revision: number,
  configured: readonly { readonly state?: string }[],
): string {
  const counts = Map.groupBy(configured, ({ state = 'not probed' }) => state);
  const states = [...counts].map(([state, { length }]) => `${length} ${state}`).join(', ');
  const upstreams = `${configured.length} with an upstream${states === '' ? '' : ` (${states})`}`;
  return `${counted(routes, 'route')}, ${upstreams}; revision ${revision}`;
}

/** The gateway's entry on health pages: `ok: false` when a part of the file does not serve, or a route is down. */
export function gatewayHealth({
  loader,
  prober,
  locals,
}: Pick<OperationServices, 'loader' | 'prober'> & { readonly locals: ProcessSource }): Json {
  const { table, state } = loader;
  const configured = [...table.routes.values()].filter((route) => route.reason === undefined);
  const health = configured.map(({ name }) => ({ name, ...prober.health(name) }));
  const unusable = [...table.routes.keys()].flatMap((name) => {
    const { state: found, reason } = prober.health(name) ?? {};
    return found === 'token_unusable' ? [`route ${name}: ${reason}`] : [];
  });
  const reasons = [
    ...(state?.refused ? [`the changed configuration is invalid: ${state.refused.reason}`] : []),
    ...table.rejected.map(({ name, reason }) => `route ${name}: ${reason}`),
    ...unusable,
    ...Object.entries(state?.routes ?? {}).flatMap(([name, route]) => {
      const reason = whyNotFollowed(route);
      return reason === undefined ? [] : [`route ${name}: ${reason}`];
    }),
    ...health
      .filter((route) => route.state === 'down')
      .map(({ name, reason }) => `route ${name} is down: its upstream ${reason}`),
  ];
  return {
    ok: reasons.length === 0,
    ...(reasons.length > 0 && { reason: reasons.join('; ') }),
    text: routesText(table.routes.size, table.revision, health),
    revision: table.revision,
    routes: table.routes.size,
    configured: configured.length,
    upstreams: Object.fromEntries(
      health.map(({ name, state: found = 'unknown', reason, tools }) => [
        name,
        {
          state: found,
          ...(reason !== undefined && { reason }),
          ...(tools !== undefined && { tools }),
          ...processesOf(locals.facts(table.routes.get(name)?.url)),
        },
      ]),
    ),
  };
}

/** @returns what health pages say of a route's program */
function processesOf(facts: StdioFacts | undefined): Record<string, Json> {
  if (!facts) return {};
  const { lastEnd, ...counts } = facts;
  return { program: { ...counts, ...(lastEnd && { lastEnd: { ...lastEnd, at: isoTime(lastEnd.at) } }) } };
}
