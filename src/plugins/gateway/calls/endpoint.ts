import type { FastifyReply, FastifyRequest } from 'fastify';
import type { HttpSurface } from '../../../core/http/index.ts';
import { documentUrl } from '../discovery/endpoint.ts';
import { type Answer, notFound, rpcError } from '../mcp/answers.ts';
import type { Message } from '../mcp/message.ts';
import type { Route } from '../routes/table.ts';
import { admit, judgeCall } from './decide.ts';
import { ClientExchange } from './exchange.ts';
import type { GatewayParts } from './parts.ts';
import { bindingOf, readRequest } from './read-request.ts';
import { RouteCall } from './route-call.ts';
import { strangersFirst } from './strangers.ts';

/** The endpoint of one server, `/<server>/mcp` (G1, G3, G4). */
export function mcpEndpoint(http: HttpSurface, parts: () => GatewayParts): void {
  http.register((scope, _options, registered) => {
    strangersFirst(scope, parts);
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    scope.route({
      method: ['GET', 'POST', 'DELETE'],
      exposeHeadRoute: false, // a HEAD would open a session
      url: '/:server/mcp',
      handler: (request, reply) => serve(parts(), request, reply, http.draining),
    });
    registered();
  });
}

async function serve(
  parts: GatewayParts,
  request: FastifyRequest,
  reply: FastifyReply,
  draining: AbortSignal,
): Promise<void> {
  const { server } = request.params as { server: string };
  const exchange = new ClientExchange(request, reply);
  const route = parts.table().routes.get(server);
  if (!route) return exchange.send(notFound);
  const path = `/${server}/mcp`;
  const caller = admit(parts, exchange, { source: request.ip, path });
  if (!caller) return;
  const binding = bindingOf(caller, route.name);
  const read = readRequest(exchange, request.body, parts.sessions, binding);
  if ('status' in read) return exchange.send(read);
  if (route.reason !== undefined || !route.url) return exchange.send(unavailable(route, read.message));
  const call = new RouteCall({
    ...read,
    exchange,
    route,
    agent: parts.agent,
    metadataUrl: documentUrl(parts.publicUrl(request.headers.host), route.name),
    seal: (session) => parts.sessions.seal(session, binding),
    draining,
  });
  await judgeCall(parts, exchange, caller, read.message, { path, routes: [route.name], route }, call);
}

function unavailable({ name, reason }: Route, message: Message | undefined): Answer {
  return rpcError(503, message?.id ?? null, -32_603, `The route ${name} is ${reason ?? 'not configured'}.`);
}
