import type { HttpSurface } from '../../../core/host/http/contract.ts';
import { headersOfAll } from '../../../core/host/http/short-way.ts';
import { documentUrl } from '../discovery/endpoint.ts';
import { type AuthenticatedKey, authenticate } from '../keys/caller.ts';
import { bindingOf, readRequest } from '../mcp/protocol.ts';
import type { Ending } from '../stop.ts';
import { admit } from './admit.ts';
import { ClientExchange, hijacked } from './client-exchange.ts';
import { judgeCall, type Meant } from './decide.ts';
import type { GatewayParts } from './parts.ts';
import { RouteCall } from './route-call.ts';
import { answerInvalid, answerNowhere, judgeUnread } from './unforwarded.ts';
import { bodyLength, takeBodies, UNREAD } from './unread.ts';

const PATTERN = '/:server/mcp';
const SHORT = /^\/([\w.-]{1,64})\/mcp$/;

/** The endpoint of one server, `/<server>/mcp` (G1, G3, G4). */
export function mcpEndpoint(http: HttpSurface, parts: () => GatewayParts): void {
  http.register((scope, _options, registered) => {
    takeBodies(scope, parts);
    scope.route({
      method: ['GET', 'POST', 'DELETE'],
      exposeHeadRoute: false, // a HEAD would open a session
      url: PATTERN,
      handler: (request, reply) => {
        const { server } = request.params as { server: string };
        const exchange = new ClientExchange(hijacked(request, reply));
        return serve(parts(), exchange, server, request.body, http.draining);
      },
    });
    registered();
  });
  http.shortWay({
    pattern: PATTERN,
    url: SHORT,
    open(post, [, server = '']) {
      const { keys, table, bodies } = parts();
      if (!table().routes.has(server)) return undefined;
      const caller = authenticate(post.raw.headers, keys);
      if ('rule' in caller) return undefined;
      if (!bodies.hold(post.id, caller.id, bodyLength(post.raw), post.response)) return undefined;
      const exchange = new ClientExchange({ ...post, ofAll: () => headersOfAll(post.id) });
      return (body) => serve(parts(), exchange, server, body, http.draining, caller);
    },
  });
}

async function serve(
  parts: GatewayParts,
  exchange: ClientExchange,
  server: string,
  body: unknown,
  draining: Ending,
  identified?: AuthenticatedKey,
): Promise<void> {
  const route = parts.table().routes.get(server);
  if (!route) return answerNowhere(parts, exchange);
  const path = `/${server}/mcp`;
  const caller = admit(parts, exchange, path, identified);
  if (!caller) return;
  const meant: Meant = { path, routes: [route.name], route };
  if (body === UNREAD) return judgeUnread(parts, exchange, caller, meant);
  const binding = bindingOf(caller, route.name);
  const read = readRequest(exchange, body, parts.sessions, binding);
  if ('status' in read) return answerInvalid(parts, exchange, caller, read, meant);
  const call = new RouteCall({
    ...read,
    exchange,
    route,
    agent: parts.agent,
    logger: parts.services.logger,
    metadataUrl: documentUrl(parts.publicUrl(exchange.headers.host), route.name),
    seal: (session) => parts.sessions.seal(session, binding),
    draining,
  });
  await judgeCall(parts, exchange, caller, read.message, meant, call);
}
