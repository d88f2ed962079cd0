// The table of routes: which definition of each serves, and which did before. `routes.ts` is the machine around it.

/** A route as it may be shown and recorded: no query of its URL, no token. Times are epoch milliseconds. */
export interface RouteFacts {
  readonly name: string;
  /** Names the whole definition (entry, environment entry, reference of its secret), sealed beside the record. */
  readonly fingerprint: string;
  readonly disposition: string;
  /** Where it goes, without query; absent while it is not configured. */
  readonly upstream?: string;
  /** Where its token comes from: `file:…`, `env:…` or `store:<path>#<property>`. */
  readonly secret?: string;
  /** A short fingerprint of each setting, by which a change names the settings that differ. */
  readonly settings: Readonly<Record<string, string>>;
}

/** A definition that is or was in the table. */
export interface ServedRoute extends RouteFacts {
  /** Time since when it serves. */
  readonly since: number;
  /** First revision of the table with this definition. */
  readonly revision: number;
}

/**
 * What serves in place of an entry of the file on every host of a cluster. Their fingerprints are alike, their revisions and the bodies
 * of definitions are each host's own.
 */
export interface RouteRollback {
  /** The place of the message that said so among those to every host. */
  readonly order: number;
  /** Fingerprint of the entry. */
  readonly source: string;
  /** Fingerprint of the definition that serves instead. */
  readonly fingerprint: string;
}

/** The state of one route, by name. */
export interface RouteState {
  /** Absent when the entry was removed. */
  readonly serving?: ServedRoute;
  /** Fingerprint of the entry in the file; empty when there is none. */
  readonly source: string;
  /** It was rolled back. It stays so until the entry in the file differs from `source`. */
  readonly pinned?: true;
  /** The newest rollback that every host took, whether this one could follow it or not. */
  readonly rollback?: RouteRollback;
  /** Why the entry in the file does not serve. */
  readonly problem?: string;
  /** Earlier definitions, newest first. */
  readonly before: readonly ServedRoute[];
}

/** An entry that is not a valid route. */
export interface RejectedEntry {
  readonly name: string;
  /** The name of the route that was meant: hyphens are replaced by underscores. */
  readonly route: string;
  readonly reason: string;
}

/** What a revision changed. */
export interface RouteChange {
  readonly name: string;
  readonly what: 'added' | 'changed' | 'removed' | 'rolled_back';
  /** Names of the settings that differ. */
  readonly settings?: readonly string[];
}

export interface RoutesContext {
  /** Revision of the table; every change raises it. */
  readonly revision: number;
  /** Revision of the table that calls use now. */
  readonly served: number;
  readonly routes: Readonly<Record<string, RouteState>>;
  readonly rejected: readonly RejectedEntry[];
  /** Why the file as a whole was refused. */
  readonly refused?: { readonly at: number; readonly reason: string };
  /** Changes of the newest revision. */
  readonly changes: readonly RouteChange[];
  readonly changedAt?: number;
  /** Number of the last message to every host that it took. */
  readonly order?: number;
}

/** Why the file was read. */
export type LoadOrigin = 'start' | 'changed' | 'requested';

export interface RoutesLoaded {
  readonly type: 'LOADED';
  readonly at: number;
  readonly origin: LoadOrigin;
  readonly routes: readonly RouteFacts[];
  readonly rejected: readonly RejectedEntry[];
}

export interface RollbackRequested {
  readonly type: 'ROLLBACK';
  readonly at: number;
  readonly route: string;
  /** Revision in which the wanted definition began to serve; without it the previous definition is restored. */
  readonly to?: number;
  /** Its place among the messages to every host. */
  readonly order?: number;
  /** Of a message to every host: which entry it was about, and which definition serves instead. */
  readonly source?: string;
  readonly fingerprint?: string;
}

/** Another host knows of rollbacks that this one missed. */
export interface RollbacksHeard {
  readonly type: 'ROLLBACKS_HEARD';
  readonly at: number;
  readonly from: string;
  readonly rollbacks: Readonly<Record<string, RouteRollback>>;
}

/** Earlier definitions that are kept for each route. */
const MOST_EARLIER = 5;
/** Routes that are kept, including those without an entry. */
const MOST_NAMES = 2_000;

type Revised = Pick<RoutesContext, 'revision' | 'routes' | 'changes'> & Pick<RoutesContext, 'changedAt'>;

/** Computes the table after the entries were read. */
export function revise(context: RoutesContext, event: RoutesLoaded): Revised {
  const revision = context.revision + 1;
  const wanted = new Map(event.routes.map((facts) => [facts.name, facts]));
  const invalid = new Map(event.rejected.map((entry) => [entry.route, entry]));
  const routes: Record<string, RouteState> = {};
  const changes: RouteChange[] = [];
  for (const name of new Set([...wanted.keys(), ...Object.keys(context.routes)])) {
    const known = routeOf(context, name);
    const facts = wanted.get(name);
    const next = stateOf(known, facts && { ...facts, since: event.at, revision }, invalid.get(name));
    if (next) routes[name] = next;
    const change = changeOf(name, known?.serving, next?.serving);
    if (change) changes.push(change);
    else if (next?.pinned && !known?.pinned) changes.push({ name, what: 'rolled_back' });
  }
  return finished(context, bounded(routes), changes, event.at);
}

function stateOf(
  known: RouteState | undefined,
  wanted: ServedRoute | undefined,
  rejected: RejectedEntry | undefined,
): RouteState | undefined {
  const { serving, before = [] } = known ?? {};
  if (wanted) {
    const source = wanted.fingerprint;
    if (known?.pinned && known.source === source) return without(known, 'problem');
    const rollback = known?.rollback?.source === source ? { rollback: known.rollback } : {};
    if (serving?.fingerprint === source) return { serving, source, before, ...rollback };
    return followed({ serving: wanted, source, before: history(serving, before), ...rollback }, wanted);
  }
  if (!known) return undefined;
  if (rejected) return serving ? { ...known, problem: rejected.reason } : known;
  if (!serving || (known.pinned && known.source === '')) return known;
  return { source: '', before: history(serving, before) };
}

/** @returns the state of the route after the rollback, or the reason why it is impossible */
export function rolledBack(context: RoutesContext, event: RollbackRequested): RouteState | string {
  const { route, to, at } = event;
  const known = routeOf(context, route);
  if (!known) return `there is no route ${route}`;
  const now = { since: at, revision: context.revision + 1 };
  const rollback = rollbackOf(event);
  if (rollback) {
    const next = followed({ ...known, rollback }, now);
    return next.serving === known.serving ? (whyNotFollowed(next) ?? `it serves as ${route} already`) : next;
  }
  const target = known.before.find(({ revision }) => to === undefined || revision === to);
  if (target) return restored(known, target, now);
  return to === undefined ? `nothing served as ${route} before` : `${route} did not change in revision ${to}`;
}

type Moment = Pick<ServedRoute, 'since' | 'revision'>;

function restored(known: RouteState, target: ServedRoute, { since, revision }: Moment): RouteState {
  const others = known.before.filter((one) => one !== target);
  return {
    ...without(known, 'pinned'),
    serving: { ...target, since, revision },
    ...(target.fingerprint !== known.source && { pinned: true as const }),
    before: history(known.serving, others),
  };
}

/** @returns the route with what its rollback says, where that is about its entry and names what this host has */
function followed(state: RouteState, now: Moment): RouteState {
  const { rollback, source, before, serving } = state;
  if (rollback?.source !== source || serving?.fingerprint === rollback.fingerprint) return state;
  const target = before.find(({ fingerprint }) => fingerprint === rollback.fingerprint);
  return target ? restored(state, target, now) : state;
}

function rollbackOf({ order, source, fingerprint }: RollbackRequested): RouteRollback | undefined {
  if (order === undefined || source === undefined || fingerprint === undefined) return undefined;
  return { order, source, fingerprint };
}

/** @returns why this host does not serve what a rollback on every host says; undefined when it does */
export function whyNotFollowed({ rollback, source, serving }: RouteState): string | undefined {
  if (!rollback || serving?.fingerprint === rollback.fingerprint) return undefined;
  return rollback.source === source
    ? 'it was rolled back to a definition that this host never served'
    : "the hosts' files differ: it was rolled back from an entry that this host does not have";
}

/** Whether a rollback that another host knows of is about the entry here, and newer than what this host knows. */
export function isNewRollback(known: Pick<RouteState, 'source' | 'rollback'>, heard: RouteRollback): boolean {
  return heard.source === known.source && heard.order > (known.rollback?.order ?? 0);
}

/** Computes the table after another host told of rollbacks. */
export function hearRollbacks(context: RoutesContext, { at, rollbacks }: RollbacksHeard): Revised {
  const now = { since: at, revision: context.revision + 1 };
  const changes: RouteChange[] = [];
  const routes = { ...context.routes };
  for (const [name, rollback] of Object.entries(rollbacks)) {
    const known = routeOf(context, name);
    if (!known || !isNewRollback(known, rollback)) continue;
    const next = followed({ ...known, rollback }, now);
    routes[name] = next;
    const change = changeOf(name, known.serving, next.serving);
    if (change) changes.push({ ...change, what: 'rolled_back' });
  }
  return finished(context, routes, changes, at);
}

/** Notes a rollback that this host could not follow. */
export function noteRollback(
  context: RoutesContext,
  event: RollbackRequested,
): Pick<RoutesContext, 'routes'> {
  const [known, rollback] = [routeOf(context, event.route), rollbackOf(event)];
  const { routes } = context;
  return known && rollback ? { routes: { ...routes, [event.route]: { ...known, rollback } } } : { routes };
}

export function rollBack(context: RoutesContext, event: RollbackRequested): Partial<Revised> {
  const next = rolledBack(context, event);
  if (typeof next === 'string') return {};
  const name = event.route;
  const { settings = [] } = changeOf(name, routeOf(context, name)?.serving, next.serving) ?? {};
  const changes: RouteChange[] = [{ name, what: 'rolled_back', settings }];
  return finished(context, { ...context.routes, [name]: next }, changes, event.at);
}

/** Only own properties count: a server may be named `constructor`. */
export function routeOf({ routes }: Pick<RoutesContext, 'routes'>, name: string): RouteState | undefined {
  return Object.hasOwn(routes, name) ? routes[name] : undefined;
}

function finished(
  context: RoutesContext,
  routes: Readonly<Record<string, RouteState>>,
  changes: readonly RouteChange[],
  at: number,
): Revised {
  if (changes.length === 0) return { revision: context.revision, routes, changes: context.changes };
  return { revision: context.revision + 1, routes, changes, changedAt: at };
}

function changeOf(
  name: string,
  from: RouteFacts | undefined,
  to: RouteFacts | undefined,
): RouteChange | undefined {
  if (from?.fingerprint === to?.fingerprint) return undefined;
  if (!from) return { name, what: 'added' };
  if (!to) return { name, what: 'removed' };
  const all = new Set([...Object.keys(from.settings), ...Object.keys(to.settings)]);
  const differing = [...all].filter((setting) => from.settings[setting] !== to.settings[setting]);
  return { name, what: 'changed', settings: differing.sort() };
}

function history(serving: ServedRoute | undefined, before: readonly ServedRoute[]): ServedRoute[] {
  if (!serving) return [...before];
  return [serving, ...before.filter(({ fingerprint }) => fingerprint !== serving.fingerprint)].slice(
    0,
    MOST_EARLIER,
  );
}

/** Drops routes without an entry first. */
function bounded(routes: Readonly<Record<string, RouteState>>): Readonly<Record<string, RouteState>> {
  const all = Object.entries(routes);
  if (all.length <= MOST_NAMES) return routes;
  const serving = all.filter(([, { serving }]) => serving);
  const gone = all.filter(([, { serving }]) => !serving);
  return Object.fromEntries([...serving, ...gone].slice(0, Math.max(MOST_NAMES, serving.length)));
}

function without(state: RouteState, field: 'problem' | 'pinned'): RouteState {
  const { [field]: _, ...rest } = state;
  return rest;
}
