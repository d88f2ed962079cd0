import type { FastifyRequest } from 'fastify';
import type { HttpSurface } from '../../../core/host/http/contract.ts';
import { isObject } from '../../../core/kernel/json.ts';
import type { BrowserOrigins } from '../browser-origins.ts';
import { isBatch, takeBatch } from '../calls/batch.ts';
import {
  answerInvalid,
  decideUnread,
  MCP_BODIES,
  type OpenedRequest,
  openRequests,
  requireKey,
  UNREAD,
} from '../calls/endpoint.ts';
import type { Exchange } from '../exchange.ts';
import { bindingOf } from '../mcp/protocol.ts';
import type { EndedSessions } from '../session/ended-sessions.ts';
import { AggregateCall } from './aggregate-call.ts';
import { type Aggregate, ENDPOINT, readAggregate, targetOf } from './aggregate-request.ts';
import { Legs } from './sessions.ts';
import { SseMount } from './sse.ts';
import { TOOL_SEARCH_HEADER, TOOL_SEARCH_QUERY, ToolSearch } from './tool-search.ts';

const PATH = '/mcp/';
const SSE_PATH = '/mcp/sse';

/** What of the plugin's options is about the aggregate. */
interface AggregateSettings {
  /** How long one upstream may keep a merged answer waiting, milliseconds. */
  readonly aggregateDeadlineMs: number;
  /** Most tools that a client sees whole who asks for a search; undefined: all do. */
  readonly toolSearchAbove?: number | undefined;
}

/**
 * The endpoints of all servers at once (G12): `/mcp/`, and `/mcp/sse` for clients of the transport before it.
 *
 * @param settings of the plugin
 */
export function aggregateEndpoint(
  http: HttpSurface,
  gateway: Aggregate['gateway'] & { readonly ended: EndedSessions },
  { aggregateDeadlineMs: deadlineMs, toolSearchAbove }: AggregateSettings,
  origins: BrowserOrigins,
): void {
  const legs = new Legs(gateway.ended);
  const toolSearch = toolSearchAbove === undefined ? undefined : new ToolSearch(toolSearchAbove);
  const aggregate: Aggregate = { gateway, legs, deadlineMs, toolSearch, draining: http.draining };
  const sse = new SseMount(SSE_PATH, aggregate);
  http.register((scope, _options, registered) => {
    origins.serve(scope, [PATH]);
    const opened = openRequests(scope, gateway);
    scope.route({
      method: ['GET', 'POST', 'DELETE'],
      exposeHeadRoute: false, // a HEAD would open a stream
      url: PATH,
      config: { writes: MCP_BODIES, pages: origins.pages },
      handler: async (request, reply) => {
        takeFromQuery(request);
        receive(aggregate, opened(request, reply));
      },
    });
    scope.get(SSE_PATH, { exposeHeadRoute: false }, async (request, reply) => {
      takeFromQuery(request);
      sse.open(opened(request, reply));
    });
    scope.post(SSE_PATH, { config: { writes: MCP_BODIES } }, async (request, reply) => {
      const { session } = request.query as { session?: unknown };
      sse.receive(opened(request, reply), session);
    });
    registered();
  });
}

/** A client that can't set a header asks in the URL. */
function takeFromQuery({ query, raw }: FastifyRequest): void {
  const asked = isObject(query) ? query[TOOL_SEARCH_QUERY] : undefined;
  if (typeof asked === 'string') raw.headers[TOOL_SEARCH_HEADER] ??= asked;
}

function receive(aggregate: Aggregate, { exchange, authenticated, body }: OpenedRequest): void {
  const { gateway } = aggregate;
  const key = requireKey(gateway, exchange, PATH, authenticated);
  if (!key) return;
  const target = targetOf(aggregate, exchange, PATH);
  if (body === UNREAD) {
    decideUnread(gateway, exchange, key, target);
    return;
  }
  const receiveMessage = (one: Exchange, message: unknown) => {
    const request = readAggregate(aggregate, one, key, message);
    if ('status' in request) answerInvalid(gateway, one, key, request, target);
    else gateway.decisions.decide(new AggregateCall(aggregate, request, PATH));
  };
  if (!isBatch(body)) {
    receiveMessage(exchange, body);
    return;
  }
  const session = gateway.sessions.of(exchange.headers, bindingOf(key, ENDPOINT));
  const refused = takeBatch(exchange, body, session, receiveMessage);
  if (refused) answerInvalid(gateway, exchange, key, refused, target);
}
