import { isObject } from '../../../core/kernel/json.ts';
import type { Message } from '../mcp/message.ts';
import type { Route, RouteTable } from '../routes/route.ts';
import { serverOf } from '../routes/tools.ts';
import { toServer } from './server-requests.ts';

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
    tools: route.tools.withPrefix(),
    entry: entry.disposition === 'relay' ? { ...entry, relayErrors: 'jsonrpc' } : entry,
  };
}

/** Whom a message to the aggregate is for. */
export interface Addressee {
  /** The one upstream, or undefined for all. */
  readonly route: Route | undefined;
  /** As that upstream is to read it; `tools/call` alone keeps its shown name, which is judged. */
  readonly message: Message | undefined;
}

export function addresseeOf(message: Message | undefined, { routes }: Selection): Addressee {
  const find = (server: string | undefined) => routes.find(({ name }) => name === server);
  if (!message) return { route: undefined, message };
  const directed = toServer(message);
  if (directed) return { route: find(directed.server), message: directed.message };
  const { method, name = '', body } = message;
  if (method === 'tools/call') return { route: find(serverOf(name)), message };
  if (method === 'prompts/get') return { route: find(serverOf(name)), message: renamed(message, bare(name)) };
  if (method === 'completion/complete' && isObject(body.params) && isObject(body.params.ref)) {
    const { ref } = body.params;
    if (ref.type !== 'ref/prompt' || typeof ref.name !== 'string') return { route: undefined, message };
    const params = { ...body.params, ref: { ...ref, name: bare(ref.name) } };
    return { route: find(serverOf(ref.name)), message: { ...message, body: { ...body, params } } };
  }
  return { route: undefined, message };
}

const bare = (shown: string): string => shown.slice(shown.indexOf('-') + 1);

function renamed(message: Message, name: string): Message {
  const params = { ...(message.body.params as object), name };
  return { ...message, name, body: { ...message.body, params } };
}
