import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Dispatcher } from 'undici';
import { isCoded } from '../../../core/errors/index.ts';
import type { HttpSurface } from '../../../core/http/index.ts';
import type { Services } from '../../../core/plugin/index.ts';
import { type Caller, identify } from '../keys/caller.ts';
import type { KeyRegistry } from '../keys/registry.ts';
import { type Answer, notFound, rpcError, unauthorized } from '../mcp/answers.ts';
import {
  eraOf,
  headerMismatch,
  mediaProblem,
  revisionProblem,
  sessionMissing,
  sessionUnknown,
} from '../mcp/checks.ts';
import { type Message, readMessage } from '../mcp/message.ts';
import { upstreamName } from '../mcp/tool-names.ts';
import type { Route, RouteTable } from '../routes/table.ts';
import type { SealedSessions, Session } from '../session/sealed-sessions.ts';
import { ClientExchange } from './exchange.ts';
import type { LiveCall, LiveCalls } from './live-call.ts';
import { RouteCall } from './route-call.ts';
import { callMade, turnedAway } from './topics.ts';

/** What the endpoints stand on; there once the plugin has started. */
export interface GatewayParts {
  readonly services: Services;
  readonly keys: KeyRegistry;
  readonly calls: LiveCalls;
  readonly sessions: SealedSessions;
  readonly agent: Dispatcher;
  /** The table that serves now. */
  readonly table: () => RouteTable;
  /** Id of the master key. */
  readonly masterId: () => string;
  /** The gateway's public base, without a slash at its end. @param host of the request, where none is configured */
  readonly publicUrl: (host: string | undefined) => string;
}

/** How long a decision may take: it waits for its record only. */
const DECISION_MS = 10_000;

type Known = Extract<Caller, { id: string }>;

/** The endpoint of one server, `/<server>/mcp` (G1, G3, G4). */
export function mcpEndpoint(http: HttpSurface, parts: () => GatewayParts): void {
  http.register((scope, _options, registered) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    scope.route({
      method: ['GET', 'POST', 'DELETE'],
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
  const caller = identify(request.headers, parts.keys, parts.masterId());
  if ('rule' in caller) return turnAway(parts, exchange, caller.rule, request);
  const read = readRequest(parts, exchange, route, caller, request.body);
  if ('status' in read) return exchange.send(read);
  if (route.reason !== undefined || !route.url) return exchange.send(unavailable(route, read.message));
  const binding = bindingOf(caller, route);
  const call = new RouteCall({
    ...read,
    exchange,
    route,
    agent: parts.agent,
    metadataUrl: `${parts.publicUrl(request.headers.host)}/.well-known/oauth-protected-resource/${route.name}/mcp`,
    seal: (session) => parts.sessions.seal(session, binding),
    draining,
  });
  await decide(parts, exchange, call, () => publishCall(parts, exchange, route, caller, read.message));
}

interface Read {
  readonly message: Message | undefined;
  readonly session: Session | undefined;
}

/** Holds the request against its protocol, before anything is decided about it. */
function readRequest(
  parts: GatewayParts,
  exchange: ClientExchange,
  route: Route,
  caller: Known,
  body: unknown,
): Read | Answer {
  const { method, headers } = exchange;
  const media = method === 'DELETE' ? undefined : mediaProblem(method, headers);
  if (media) return media;
  let message: Message | undefined;
  if (method === 'POST') {
    const read = readMessage(Buffer.isBuffer(body) ? body : Buffer.alloc(0));
    if ('code' in read) return rpcError(400, read.id, read.code, read.text);
    message = read;
  }
  const revision = revisionProblem(headers, message);
  if (revision) return revision;
  if (eraOf(headers, message) === 'stateless') {
    if (!message) return { status: 405, headers: { allow: 'POST' } };
    return headerMismatch(headers, message) ?? { message, session: undefined };
  }
  if (message?.method === 'initialize') return { message, session: undefined };
  const id = headers['mcp-session-id'];
  if (typeof id !== 'string') return sessionMissing(message?.id);
  const session = parts.sessions.open(id, bindingOf(caller, route));
  return session ? { message, session } : sessionUnknown(message?.id);
}

/** A session belongs to one value of one key and one endpoint, in every process that knows the key. */
function bindingOf({ presented }: Known, { name }: Route): string {
  return `${presented}/${name}`;
}

function unavailable({ name, reason }: Route, message: Message | undefined): Answer {
  return rpcError(503, message?.id ?? null, -32_603, `The route ${name} is ${reason ?? 'not configured'}.`);
}

function publishCall(
  { services, table }: GatewayParts,
  { correlation, method }: ClientExchange,
  route: Route,
  { id, presented, authorization }: Known,
  message: Message | undefined,
): void {
  const isToolCall = message?.method === 'tools/call' && message.name !== undefined;
  const tool = isToolCall ? upstreamName(route, message.name ?? '') : undefined;
  const { disposition, writes } = route.entry;
  const cost = tool === undefined ? 0 : route.costOf(tool);
  services.bus.publish(
    callMade,
    {
      key: id,
      at: services.clock.now(),
      presented,
      routes: [route.name],
      table: table().revision,
      method: methodOf(method, message),
      ...(isToolCall && { tool: message.name }),
      ...(isToolCall && (tool === undefined || !route.offers(tool)) && { toolUnlisted: true as const }),
      ...(authorization && { authorization }),
      ...(disposition === 'relay' && { relay: true as const }),
      ...(writes && { writes: true as const }),
      ...(cost > 0 && { cost }),
    },
    { correlation },
  );
}

function methodOf(method: ClientExchange['method'], message: Message | undefined): string {
  if (message) return message.method ?? 'reply';
  return method === 'GET' ? 'stream' : 'close';
}

/** Somebody without a key: recorded by one actor, answered by its effect. */
function turnAway(
  parts: GatewayParts,
  exchange: ClientExchange,
  rule: Extract<Caller, { rule: string }>['rule'],
  request: FastifyRequest,
): Promise<void> {
  const call: LiveCall = {
    forward: async () => ({ type: 'CALL_ENDED', outcome: 'gone', ms: exchange.ms }),
    answer(params) {
      exchange.send(unauthorized(params.rule) ?? { status: 401 });
      return { type: 'CALL_ENDED', outcome: 'answered', status: 401, ms: exchange.ms };
    },
  };
  const path = request.routeOptions.url ?? '';
  return decide(parts, exchange, call, () => {
    const at = parts.services.clock.now();
    const facts = { at, rule, source: request.ip, path: path.replace(':server', serverOf(request)) };
    parts.services.bus.publish(turnedAway, facts, { correlation: exchange.correlation });
  });
}

const serverOf = (request: FastifyRequest): string => (request.params as { server?: string }).server ?? '';

/** Lets the machine decide, and answers 503 when the decision can't be recorded. */
async function decide(
  { services, calls }: GatewayParts,
  exchange: ClientExchange,
  call: LiveCall,
  publish: () => void,
): Promise<void> {
  const { correlation } = exchange;
  calls.set(correlation, call);
  const decided = services.exchanges.open(correlation, DECISION_MS);
  try {
    publish();
    await decided;
  } catch (error) {
    calls.delete(correlation);
    const text = isCoded(error) ? `${error.what} ${error.mend}` : 'The gateway failed.';
    exchange.send({ status: 503, body: { detail: text }, headers: { 'retry-after': '5' } });
  }
}
