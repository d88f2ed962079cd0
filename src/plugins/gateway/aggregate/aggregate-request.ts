import type { Clock } from '../../../core/kernel/clock.ts';
import { isObject } from '../../../core/kernel/json.ts';
import type { CallTarget } from '../calls/decision-facts.ts';
import type { IntakeServices } from '../calls/endpoint.ts';
import type { UpstreamServices } from '../calls/route-call.ts';
import type { Exchange } from '../exchange.ts';
import type { AuthenticatedKey } from '../keys/caller.ts';
import { type Answer, INVALID_PARAMS, METHOD_NOT_FOUND, rpcError } from '../mcp/json-rpc.ts';
import type { Message } from '../mcp/message.ts';
import { bindingOf, readRequest, sessionUnknown } from '../mcp/protocol.ts';
import { addresseeOf, aggregated, SELECTION_HEADER, select } from './selection.ts';
import { type Legs, type OpenSession, openSession } from './sessions.ts';
import type { ToolSearch } from './tool-search.ts';

/** Stands for the aggregate where a server's name stands else. */
export const ENDPOINT = '*';

/** What a call of the aggregate uses of the gateway. */
export interface AggregateServices extends UpstreamServices {
  readonly clock: Clock;
}

/** What both mounts of the aggregate share. */
export interface Aggregate {
  readonly gateway: IntakeServices & AggregateServices;
  readonly legs: Legs;
  /** How long one upstream may keep a merged answer waiting, milliseconds. */
  readonly deadlineMs: number;
  /** Undefined where clients always see all tools. */
  readonly toolSearch: ToolSearch | undefined;
  /** Aborted when the gateway stops. */
  readonly draining: AbortSignal;
}

/** One request of a caller that is known and keeps to the protocol. */
export interface AggregateRequest {
  readonly exchange: Exchange;
  readonly key: AuthenticatedKey;
  readonly message: Message | undefined;
  readonly session: OpenSession | undefined;
  /** Arguments of `search_tools`, where that is called. */
  readonly search?: unknown;
}

/** @returns the request, or the answer to what is wrong with it */
export function readAggregate(
  {
    gateway,
    legs,
    toolSearch,
  }: Pick<Aggregate, 'legs' | 'toolSearch'> & {
    readonly gateway: Pick<AggregateServices, 'sessions'>;
  },
  exchange: Exchange,
  key: AuthenticatedKey,
  body: unknown,
): AggregateRequest | Answer {
  const read = readRequest(exchange, body, gateway.sessions, bindingOf(key, ENDPOINT));
  if ('status' in read) return read;
  const { message } = read;
  if (message && wantsTask(message)) return noTasks(message);
  const session = read.session && openSession(String(exchange.headers['mcp-session-id']), read.session);
  if (session && legs.hasEnded(session)) return sessionUnknown(message?.id);
  const meant = message && toolSearch ? toolSearch.read(message, exchange.headers) : { message };
  return 'status' in meant ? meant : { exchange, key, session, ...meant };
}

/** A task is known to one server only, by an id that its server chose: the aggregate could not tell whose it is. */
function wantsTask({ kind, method, body: { params } }: Message): boolean {
  if (kind !== 'request') return false;
  return method?.startsWith('tasks/') === true || (isObject(params) && params.task !== undefined);
}

function noTasks({ method, id }: Message): Answer {
  const text =
    'There are no tasks at /mcp/. Call the server at /<server>/mcp, or call the tool without a task.';
  const code = method?.startsWith('tasks/') ? METHOD_NOT_FOUND : INVALID_PARAMS;
  return rpcError(200, id ?? null, code, text);
}

/** Where a request goes, of which a message may be known. @param path of the mount */
export function targetOf(
  { gateway }: { readonly gateway: Pick<AggregateServices, 'routes'> },
  { headers }: Pick<Exchange, 'headers'>,
  path: string,
  message?: Message,
): CallTarget {
  const selection = select(gateway.routes.table, headers[SELECTION_HEADER]);
  const { route } = addresseeOf(message, selection);
  const names = (route ? [route] : selection.routes).map(({ name }) => name);
  return { path, routes: names, route: route && aggregated(route) };
}
