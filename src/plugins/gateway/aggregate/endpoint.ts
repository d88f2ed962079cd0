import type { FastifyReply, FastifyRequest } from 'fastify';
import type { HttpSurface } from '../../../core/http/index.ts';
import { admit, judgeCall } from '../calls/decide.ts';
import { ClientExchange } from '../calls/exchange.ts';
import type { GatewayParts } from '../calls/parts.ts';
import { bindingOf, readRequest } from '../calls/read-request.ts';
import { sessionUnknown } from '../mcp/checks.ts';
import { LONGEST_ID, type SealedSessions, type Session } from '../session/sealed-sessions.ts';
import { AggregateCall } from './aggregate-call.ts';
import { Legs, openSession } from './legs.ts';
import { meaningOf } from './meaning.ts';
import { aggregated, SELECTION_HEADER, select } from './selection.ts';

const PATH = '/mcp/';
/** Stands for the aggregate where a server's name stands else. */
const ENDPOINT = '*';

/**
 * The endpoint of all servers at once, `/mcp/` (G12).
 *
 * @param deadlineMs how long one upstream may keep a merged answer waiting
 */
export function aggregateEndpoint(http: HttpSurface, parts: () => GatewayParts, deadlineMs: number): void {
  const legs = new Legs();
  http.register((scope, _options, registered) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    scope.route({
      method: ['GET', 'POST', 'DELETE'],
      url: PATH,
      handler: (request, reply) =>
        serve({ parts: parts(), legs, deadlineMs, draining: http.draining }, request, reply),
    });
    registered();
  });
}

interface Aggregate {
  readonly parts: GatewayParts;
  readonly legs: Legs;
  readonly deadlineMs: number;
  readonly draining: AbortSignal;
}

async function serve(
  { parts, legs, deadlineMs, draining }: Aggregate,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const exchange = new ClientExchange(request, reply);
  const caller = admit(parts, exchange, { source: request.ip, path: PATH });
  if (!caller) return;
  const binding = bindingOf(caller, ENDPOINT);
  const read = readRequest(exchange, request.body, parts.sessions, binding);
  if ('status' in read) return exchange.send(read);
  const { message } = read;
  const session = read.session && openSession(String(request.headers['mcp-session-id']), read.session);
  if (session && legs.hasEnded(session)) return exchange.send(sessionUnknown(message?.id));
  const selection = select(parts.table(), request.headers[SELECTION_HEADER]);
  const meaning = meaningOf(message, selection);
  const call = new AggregateCall({
    gateway: parts,
    exchange,
    caller,
    selection,
    message,
    meaning,
    session,
    legs,
    deadlineMs,
    seal: (state) => sealWithin(parts.sessions, state, binding),
    draining,
  });
  const { route } = meaning;
  const routes = (route ? [route] : selection.routes).map(({ name }) => name);
  await judgeCall(
    parts,
    exchange,
    caller,
    message,
    { path: PATH, routes, route: route && aggregated(route) },
    call,
  );
}

/** An id that would not fit into a header leaves out sessions of upstreams, which are then opened again at their first use. */
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
