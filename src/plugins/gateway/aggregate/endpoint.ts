import type { HttpSurface } from '../../../core/host/http/contract.ts';
import { admit } from '../calls/admit.ts';
import { ClientExchange, hijacked } from '../calls/client-exchange.ts';
import type { GatewayParts } from '../calls/parts.ts';
import { answerInvalid, judgeUnread } from '../calls/unforwarded.ts';
import { takeBodies, UNREAD } from '../calls/unread.ts';
import { type Aggregate, callOf, judgeAggregate, meantBy, readAggregate } from './aggregate.ts';
import { Legs } from './sessions.ts';
import { SseMount } from './sse.ts';

const PATH = '/mcp/';
const SSE_PATH = '/mcp/sse';

/**
 * The endpoints of all servers at once (G12): `/mcp/`, and `/mcp/sse` for clients of the transport before it.
 *
 * @param deadlineMs how long one upstream may keep a merged answer waiting
 */
export function aggregateEndpoint(http: HttpSurface, parts: () => GatewayParts, deadlineMs: number): void {
  const legs = new Legs();
  const aggregate = (): Aggregate => ({ parts: parts(), legs, deadlineMs, draining: http.draining });
  const sse = new SseMount(SSE_PATH, aggregate);
  http.register((scope, _options, registered) => {
    takeBodies(scope, parts);
    scope.route({
      method: ['GET', 'POST', 'DELETE'],
      exposeHeadRoute: false, // a HEAD would open a stream
      url: PATH,
      handler: (request, reply) =>
        serve(aggregate(), new ClientExchange(hijacked(request, reply)), request.body),
    });
    scope.get(SSE_PATH, { exposeHeadRoute: false }, (request, reply) =>
      sse.open(new ClientExchange(hijacked(request, reply))),
    );
    scope.post(SSE_PATH, (request, reply) => {
      const { session } = request.query as { session?: unknown };
      return sse.receive(new ClientExchange(hijacked(request, reply)), session, request.body);
    });
    registered();
  });
}

async function serve(aggregate: Aggregate, exchange: ClientExchange, body: unknown): Promise<void> {
  const caller = admit(aggregate.parts, exchange, PATH);
  if (!caller) return;
  const meant = meantBy(aggregate, exchange, PATH);
  if (body === UNREAD) return judgeUnread(aggregate.parts, exchange, caller, meant);
  const request = readAggregate(aggregate, exchange, caller, body);
  if ('status' in request) return answerInvalid(aggregate.parts, exchange, caller, request, meant);
  await judgeAggregate(aggregate, request, PATH, callOf(aggregate, request));
}
