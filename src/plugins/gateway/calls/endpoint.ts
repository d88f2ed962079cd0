import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { WriteException } from '../../../core/host/http/admission.ts';
import type { HttpSurface } from '../../../core/host/http/contract.ts';
import type { BrowserOrigins } from '../browser-origins.ts';
import { type Exchange, HttpExchange } from '../exchange.ts';
import { type AuthenticatedKey, authenticate, inspectCaller, type RejectedCaller } from '../keys/caller.ts';
import { notFound, unauthorized } from '../mcp/answers.ts';
import { codingOf, decodeBody } from '../mcp/content-coding.ts';
import type { Answer } from '../mcp/json-rpc.ts';
import { bindingOf, readRequest } from '../mcp/protocol.ts';
import type { Route } from '../routes/route.ts';
import { type SpanServices, startSpan } from '../telemetry/call-telemetry.ts';
import { isBatch, takeBatch } from './batch.ts';
import {
  AnsweredCall,
  answerUndecided,
  type CallServices,
  logOwnFault,
  NOWHERE,
  sendUndecided,
} from './call.ts';
import type { CallTarget } from './decision-facts.ts';
import type { Decisions } from './decisions.ts';
import type { KeyUsage } from './key-usage.ts';
import type { RejectionLimiter } from './rejection-limiter.ts';
import { RouteCall, type UpstreamServices } from './route-call.ts';

/** What takes requests in: holds their bodies, authenticates their callers and has their calls decided. */
export interface IntakeServices extends CallServices {
  /** What each key has open and has the gateway hold. */
  readonly usage: KeyUsage;
  /** Where callers without a key are rejected. */
  readonly rejections: RejectionLimiter;
  /** Where calls of known keys are decided. */
  readonly decisions: Decisions;
}

const PATTERN = '/:server/mcp';

/** How endpoints of the protocol take bodies: `mediaProblem` refuses another type as its revisions prescribe. */
export const MCP_BODIES: WriteException = {
  types: 'handler',
  because: 'the caller is decided and recorded first, and the refusal is a JSON-RPC error',
};

/** The endpoint of one server, `/<server>/mcp` (G1, G3, G4). */
export function mcpEndpoint(
  http: HttpSurface,
  gateway: IntakeServices & UpstreamServices,
  origins: BrowserOrigins,
): void {
  http.register((scope, _options, registered) => {
    origins.serve(scope, [PATTERN]);
    const opened = openRequests(scope, gateway);
    scope.route({
      method: ['GET', 'POST', 'DELETE'],
      exposeHeadRoute: false, // a HEAD would open a session
      url: PATTERN,
      config: { writes: MCP_BODIES, pages: origins.pages },
      handler: async (request, reply) => {
        const { server } = request.params as { server: string };
        receive(gateway, opened(request, reply), server);
      },
    });
    registered();
  });
}

/** Reads a request for one server and asks for its decision. */
function receive(
  gateway: IntakeServices & UpstreamServices,
  { exchange, authenticated, body }: OpenedRequest,
  server: string,
): void {
  const route = gateway.routes.table.routes.get(server);
  if (!route) {
    answerUndecided(gateway, exchange, NOWHERE, notFound);
    return;
  }
  const path = `/${server}/mcp`;
  const key = requireKey(gateway, exchange, path, authenticated);
  if (!key) return;
  const target: CallTarget = { path, routes: [route.name], route };
  if (body === UNREAD) {
    decideUnread(gateway, exchange, key, target);
    return;
  }
  const binding = bindingOf(key, route.name);
  if (isBatch(body)) {
    const one = (part: Exchange, message: Buffer) =>
      receiveMessage(gateway, part, { key, route, target, body: message });
    const refused = takeBatch(exchange, body, gateway.sessions.of(exchange.headers, binding), one);
    if (refused) answerInvalid(gateway, exchange, key, refused, target);
    return;
  }
  receiveMessage(gateway, exchange, { key, route, target, body });
}

interface ForRoute {
  readonly key: AuthenticatedKey;
  readonly route: Route;
  readonly target: CallTarget;
  readonly body: unknown;
}

/** Reads one message for one server and asks for its decision. */
function receiveMessage(
  gateway: IntakeServices & UpstreamServices,
  exchange: Exchange,
  { key, route, target, body }: ForRoute,
): void {
  const binding = bindingOf(key, route.name);
  const read = readRequest(exchange, body, gateway.sessions, binding);
  if ('status' in read) {
    answerInvalid(gateway, exchange, key, read, target);
    return;
  }
  const { message, session } = read;
  gateway.decisions.decide(
    new RouteCall({ gateway, exchange, key, message, target }, route, session, binding),
  );
}

type RejectingServices = SpanServices & Pick<IntakeServices, 'rejections' | 'logger'>;

/**
 * @param path of the endpoint, without a query
 * @param authenticated the caller, when it is known already
 * @returns the caller's key; undefined for a caller without one, who is rejected
 */
export function requireKey(
  gateway: RejectingServices,
  exchange: HttpExchange,
  path: string,
  authenticated?: AuthenticatedKey,
): AuthenticatedKey | undefined {
  const caller = inspectCaller(exchange, gateway.keys, authenticated);
  if (!('rule' in caller)) return caller;
  void reject(gateway, exchange, caller, path);
  return undefined;
}

/** A caller without a key: recorded by one actor, then answered. */
async function reject(
  gateway: RejectingServices,
  exchange: HttpExchange,
  caller: RejectedCaller,
  path: string,
): Promise<void> {
  startSpan(gateway, exchange, path);
  exchange.facts.outcome = 'answered';
  try {
    const { source, correlation } = exchange;
    const rule = await gateway.rejections.reject({ ...caller, source, path }, correlation, 401);
    exchange.send(unauthorized(rule) ?? { status: 401 });
  } catch (error) {
    sendUndecided(gateway, exchange, error);
  }
}

/**
 * Answers a request that breaks the rules of its protocol. Nothing is decided about it, unless it has a key where none
 * belongs: that is recorded, whatever else is wrong (G9, G25). Of a key that was revoked, the client hears that first.
 */
export function answerInvalid(
  gateway: CallServices & Pick<IntakeServices, 'decisions'>,
  exchange: Exchange,
  key: AuthenticatedKey,
  answer: Answer,
  target: CallTarget,
): void {
  const { authorization = 'bearer', misplaced } = key;
  if (authorization === 'bearer' && !misplaced && gateway.decisions.isGood(key)) {
    answerUndecided(gateway, exchange, target.path, answer, key.id);
    return;
  }
  const invalid = { ...target, unread: { method: 'invalid' } };
  const received = { gateway, exchange, key, message: undefined, target: invalid };
  gateway.decisions.decide(new AnsweredCall(received, answer));
}

const BUSY: Answer = { status: 503, headers: { 'retry-after': '1' } };

/** Lets the key's machine refuse a request whose body was not read, for the key has too much held already. */
export function decideUnread(
  gateway: CallServices & Pick<IntakeServices, 'decisions' | 'usage'>,
  exchange: Exchange,
  key: AuthenticatedKey,
  target: CallTarget,
): void {
  const unread = { method: 'unread', ...gateway.usage.heldFacts(key.id, bodyLength(exchange)) };
  const received = { gateway, exchange, key, message: undefined, target: { ...target, unread } };
  gateway.decisions.decide(new AnsweredCall(received, BUSY));
}

/** In place of a body that was not read, because bodies of its key take too much memory already. */
export const UNREAD: unique symbol = Symbol('a body that was not read');

/** A request whose head was read, and its body unless its caller may send none. */
export interface OpenedRequest {
  readonly exchange: HttpExchange;
  /** The caller, where the key header is that of a known key. */
  readonly authenticated: AuthenticatedKey | undefined;
  readonly body: unknown;
}

/** The decorator of a request whose head was read. */
const OPENED = Symbol('the exchange and the caller of a request');

type Opened = Omit<OpenedRequest, 'body'>;

type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<void>;

/**
 * Gives the handlers of a scope each body whole, as bytes. Two kinds of requests reach their handler before the body is
 * read: those without a known key, because some hundred strangers could fill the memory with bodies that nobody uses, and
 * those of a key whose bodies take all the memory that a key may take.
 *
 * @returns takes a request out of the framework's hands
 */
export function openRequests(
  scope: Pick<HttpSurface, 'addHook' | 'addContentTypeParser'> &
    Pick<FastifyInstance, 'decorateRequest' | 'removeAllContentTypeParsers'>,
  gateway: Pick<IntakeServices, 'keys' | 'usage' | 'logger'>,
): (request: FastifyRequest, reply: FastifyReply) => OpenedRequest {
  // On the request itself: a WeakMap made V8 keep each ended request until the next full collection (7 KB a call).
  scope.decorateRequest(OPENED, null);
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', { parseAs: 'buffer' }, ({ headers, routeOptions }, body, done) =>
    decodeBody(headers['content-encoding'], body as Buffer, routeOptions.bodyLimit, done),
  );
  scope.addHook('onRequest', (request, reply, done) => {
    const { keys, usage } = gateway;
    const exchange = new HttpExchange(request, reply);
    const caller = authenticate(request.headers, keys);
    const authenticated = 'rule' in caller ? undefined : caller;
    request.setDecorator<Opened>(OPENED, { exchange, authenticated });
    if (!('rule' in caller)) {
      if (usage.hold(request.id, caller.id, bodyLength(request.raw), reply.raw)) return done();
      request.body = UNREAD;
    }
    // Not `done`: the answer ends the request here.
    (request.routeOptions.handler as Handler)(request, reply).catch((error) => {
      logOwnFault(gateway, { correlation: request.id }, error);
      reply.raw.destroy();
    });
  });
  scope.addHook('preHandler', ({ id, body }, _reply, done) => {
    if (Buffer.isBuffer(body)) gateway.usage.settle(id, body.length);
    done();
  });
  return (request, reply) => {
    reply.hijack();
    const { exchange, authenticated } = request.getDecorator<Opened | null>(OPENED) ?? {
      exchange: new HttpExchange(request, reply),
      authenticated: undefined,
    };
    return { exchange, authenticated, body: request.body };
  };
}

/** @returns bytes; undefined for a body whose length is not known, as that of a compressed one */
function bodyLength({ headers }: Pick<IncomingMessage, 'headers'>): number | undefined {
  if (codingOf(headers['content-encoding']) !== undefined) return undefined;
  if (headers['transfer-encoding'] !== undefined) return undefined;
  return Number(headers['content-length'] ?? 0);
}
