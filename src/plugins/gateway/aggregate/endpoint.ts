import type { HttpSurface } from '../../../core/host/http/contract.ts';
import { admit, answerInvalid, decideUnread, takeBodies, UNREAD } from '../calls/endpoint.ts';
import type { GatewayServices } from '../calls/services.ts';
import { HttpExchange, hijacked } from '../exchange.ts';
import type { AuthenticatedKey } from '../keys/caller.ts';
import { type Aggregate, AggregateCall, readAggregate, targetOf } from './aggregate-call.ts';
import { Legs } from './sessions.ts';
import { SseMount } from './sse.ts';

const PATH = '/mcp/';
const SSE_PATH = '/mcp/sse';

/**
 * The endpoints of all servers at once (G12): `/mcp/`, and `/mcp/sse` for clients of the transport before it.
 *
 * @param deadlineMs how long one upstream may keep a merged answer waiting
 */
export function aggregateEndpoint(
  http: HttpSurface,
  gateway: () => GatewayServices,
  deadlineMs: number,
): void {
  const legs = new Legs();
  const aggregate = (): Aggregate => ({ gateway: gateway(), legs, deadlineMs, draining: http.draining });
  const sse = new SseMount(SSE_PATH, aggregate);
  http.register((scope, _options, registered) => {
    const callerOf = takeBodies(scope, gateway);
    scope.route({
      method: ['GET', 'POST', 'DELETE'],
      exposeHeadRoute: false, // a HEAD would open a stream
      url: PATH,
      handler: async (request, reply) => {
        receive(aggregate(), new HttpExchange(hijacked(request, reply)), request.body, callerOf(request));
      },
    });
    scope.get(SSE_PATH, { exposeHeadRoute: false }, async (request, reply) => {
      sse.open(new HttpExchange(hijacked(request, reply)), callerOf(request));
    });
    scope.post(SSE_PATH, async (request, reply) => {
      const { session } = request.query as { session?: unknown };
      const exchange = new HttpExchange(hijacked(request, reply));
      sse.receive(exchange, session, request.body, callerOf(request));
    });
    registered();
  });
}

function receive(
  aggregate: Aggregate,
  exchange: HttpExchange,
  body: unknown,
  authenticated: AuthenticatedKey | undefined,
): void {
  const { gateway } = aggregate;
  const key = admit(gateway, exchange, PATH, authenticated);
  if (!key) return;
  const target = targetOf(aggregate, exchange, PATH);
  if (body === UNREAD) {
    decideUnread(gateway, exchange, key, target);
    return;
  }
  const request = readAggregate(aggregate, exchange, key, body);
  if ('status' in request) {
    answerInvalid(gateway, exchange, key, request, target);
    return;
  }
  gateway.decisions.decide(new AggregateCall(aggregate, request, PATH));
}
