import { judgeCall, type Meant } from '../calls/decide.ts';
import type { LiveCall } from '../calls/live-call.ts';
import type { GatewayParts } from '../calls/parts.ts';
import type { Exchange } from '../exchange.ts';
import type { AuthenticatedKey } from '../keys/caller.ts';
import type { Answer } from '../mcp/answers.ts';
import type { Message } from '../mcp/message.ts';
import { bindingOf, readRequest, sessionUnknown } from '../mcp/protocol.ts';
import { LONGEST_ID, type SealedSessions, type Session } from '../session/sealed-sessions.ts';
import type { Ending } from '../stop.ts';
import { AggregateCall } from './aggregate-call.ts';
import { aggregated, meaningOf, SELECTION_HEADER, select } from './selection.ts';
import { type Legs, type OpenSession, openSession } from './sessions.ts';

/** Stands for the aggregate where a server's name stands else. */
const ENDPOINT = '*';

/** What both mounts of the aggregate share. */
export interface Aggregate {
  readonly parts: GatewayParts;
  readonly legs: Legs;
  /** How long one upstream may keep a merged answer waiting, milliseconds. */
  readonly deadlineMs: number;
  readonly draining: Ending;
}

/** One request of a caller that is known and keeps to the protocol. */
export interface Request {
  readonly exchange: Exchange;
  readonly caller: AuthenticatedKey;
  readonly message: Message | undefined;
  readonly session: OpenSession | undefined;
}

/** @returns the request, or the answer to what is wrong with it */
export function readAggregate(
  { parts, legs }: Aggregate,
  exchange: Exchange,
  caller: AuthenticatedKey,
  body: unknown,
): Request | Answer {
  const read = readRequest(exchange, body, parts.sessions, bindingOf(caller, ENDPOINT));
  if ('status' in read) return read;
  const { message } = read;
  const session = read.session && openSession(String(exchange.headers['mcp-session-id']), read.session);
  if (session && legs.hasEnded(session)) return sessionUnknown(message?.id);
  return { exchange, caller, message, session };
}

/** @returns the session of a sealed id, if it is this caller's */
export function reopen({ parts }: Aggregate, caller: AuthenticatedKey, id: string): OpenSession | undefined {
  const state = parts.sessions.open(id, bindingOf(caller, ENDPOINT));
  return state && openSession(id, state);
}

/** The call that a request is. */
export function callOf({ parts, ...rest }: Aggregate, request: Request): AggregateCall {
  const { exchange, caller, message } = request;
  const selection = select(parts.table(), exchange.headers[SELECTION_HEADER]);
  return new AggregateCall({
    ...rest,
    ...request,
    gateway: parts,
    selection,
    meaning: meaningOf(message, selection),
    seal: (state) => sealWithin(parts.sessions, state, bindingOf(caller, ENDPOINT)),
  });
}

/**
 * Lets the key's machine decide about a request.
 *
 * @param path of the mount
 */
export function judgeAggregate(
  aggregate: Aggregate,
  { exchange, caller, message }: Request,
  path: string,
  call: LiveCall,
): Promise<void> {
  const meant = meantBy(aggregate, exchange, path, message);
  return judgeCall(aggregate.parts, exchange, caller, message, meant, call);
}

/** What a request means, of which a message may be known. @param path of the mount */
export function meantBy(
  { parts }: Aggregate,
  { headers }: Pick<Exchange, 'headers'>,
  path: string,
  message?: Message,
): Meant {
  const { routes } = select(parts.table(), headers[SELECTION_HEADER]);
  const { route } = meaningOf(message, { routes, named: undefined });
  const names = (route ? [route] : routes).map(({ name }) => name);
  return { path, routes: names, route: route && aggregated(route) };
}

/**
 * An id that would not fit into a header leaves out sessions of upstreams, which are then opened again at their first
 * use.
 */
function sealWithin(sessions: SealedSessions, state: Session, binding: string): string {
  const upstream = { ...state.upstream };
  for (;;) {
    const id = sessions.seal({ ...state, upstream }, binding);
    if (id.length <= LONGEST_ID) return id;
    const [longest] = Object.entries(upstream).sort(([, a], [, b]) => b.length - a.length);
    if (!longest) throw new RangeError('a session without upstreams fits');
    delete upstream[longest[0]];
  }
}
