import type { Dispatcher } from 'undici';
import { isObject } from '../../../core/kernel/json.ts';
import { version } from '../../../core/kernel/version.ts';
import type { AnswerParams, ForwardParams } from '../../../machines/gateway/call-shapes.ts';
import { documentUrl } from '../discovery/endpoint.ts';
import { UpstreamFault } from '../fast-path/upstream-request.ts';
import type { Prober } from '../health/prober.ts';
import { withoutToken } from '../issued/token-fault.ts';
import { COMPLETE, challenge, plainRefusal, SERVER_INFO_META, toolRefusal } from '../mcp/answers.ts';
import {
  type Answer,
  INTERNAL_ERROR,
  METHOD_NOT_FOUND,
  type RequestId,
  result,
  rpcError,
} from '../mcp/json-rpc.ts';
import type { Message } from '../mcp/message.ts';
import { eraOf, isKnown, isStateless, NEWEST_SESSIONED, REVISIONS } from '../mcp/protocol.ts';
import type { Route } from '../routes/route.ts';
import { LONGEST_SESSION, type SealedSessions, type Session } from '../session/sealed-sessions.ts';
import { type Passing, passAnswer } from '../upstream/answer.ts';
import { hasForgotten, refuseCaller } from '../upstream/failures.ts';
import { type CallOutcome, credentialWatch } from '../upstream/inspection.ts';
import { OWN_ID, ownMessage } from '../upstream/own-messages.ts';
import { hear } from '../upstream/read-answer.ts';
import { askRoute, type ForUpstream, headerOf } from '../upstream/request.ts';
import type { UpstreamCall } from '../upstream/upstream-call.ts';
import { type CallServices, GatewayCall, type ReceivedCall } from './call.ts';
import type { RenewedSessions } from './renewed-sessions.ts';

/** What a call uses that is forwarded to an upstream. */
export interface UpstreamServices extends CallServices {
  readonly agent: Dispatcher;
  readonly sessions: SealedSessions;
  /** Sessions that were begun again because their upstream had lost them. */
  readonly renewed: RenewedSessions;
  /** What is known of upstreams, and hears what became of calls to them. */
  readonly prober: Pick<Prober, 'whyDown' | 'callEnded'>;
  /** @param host the request's `Host` @returns the base that clients see, without a slash at its end */
  readonly publicUrl: (host: string | undefined) => string;
}

/** A call to one server behind the gateway, streamed both ways. */
export class RouteCall extends GatewayCall<UpstreamServices> implements UpstreamCall {
  readonly route: Route;
  /** The session that the request belongs to, if any. */
  readonly #session: Session | undefined;
  /** Whose sessions it seals. */
  readonly #binding: string;

  constructor(
    received: ReceivedCall<UpstreamServices>,
    route: Route,
    session: Session | undefined,
    binding: string,
  ) {
    super(received);
    this.route = route.forCaller?.(received.exchange.headers.authorization) ?? route;
    this.#session = session;
    this.#binding = binding;
  }

  get metadataUrl(): string {
    return documentUrl(this.gateway.publicUrl(this.exchange.headers.host), this.route.name);
  }

  seal(session: Session): string {
    return this.gateway.sessions.seal(session, this.#binding);
  }

  protected override async carryOut({ tools, cost }: ForwardParams): Promise<CallOutcome> {
    const { exchange, route, message, signal } = this;
    const { name, reason = 'not configured', url } = route;
    if (route.reason !== undefined || !url) {
      exchange.send(rpcError(503, message?.id ?? null, INTERNAL_ERROR, `The route ${name} is ${reason}.`));
      return { outcome: 'unreachable' };
    }
    const fault = await route.issued?.prepare(signal);
    if (fault?.of === 'caller') return refuseCaller(this, fault.shown);
    if (fault) {
      exchange.send(
        rpcError(503, message?.id ?? null, INTERNAL_ERROR, `The route ${name} is ${withoutToken(fault)}.`),
      );
      return { outcome: 'unreachable' };
    }
    const { method, headers } = exchange;
    const session = this.#session?.upstream[name];
    const request: ForUpstream = { method, headers, message, session, key: this.key.id, signal };
    const send = (sent: ForUpstream) => askRoute(this.gateway.agent, route, sent);
    if (route.entry.reinitialise && session !== undefined)
      return this.#passRenewing(request, session, { tools, cost });
    const ping = (pinged: Message) => send({ ...request, method: 'POST', message: pinged });
    const isForgotten = () => session !== undefined && hasForgotten(400, ping);
    const ended = await passAnswer(this, () => send(request), { tools, cost, hasForgotten: isForgotten });
    this.gateway.prober.callEnded(name, ended.outcome, message?.method);
    return ended;
  }

  protected override refuse(params: AnswerParams): void {
    const { exchange, message } = this;
    const plain = params.rule === 'identity_required' ? this.#challenge() : plainRefusal(params, message);
    const isToolCall = message?.kind === 'request' && message.method === 'tools/call';
    const refusal = () => toolRefusal(message?.id ?? null, params, eraOf(exchange.headers, message));
    exchange.send(plain ?? (isToolCall ? refusal() : unentitled(this)));
  }

  /** Passes the answer of an upstream on that may have lost the session, which is then begun again for the same client. */
  async #passRenewing(request: ForUpstream, own: string, passing: Passing): Promise<CallOutcome> {
    const { agent, renewed, prober } = this.gateway;
    const sealed = String(request.headers['mcp-session-id']);
    const send = (sent: ForUpstream) => askRoute(agent, this.route, sent);
    const ended = await passAnswer(
      this,
      async () => {
        const current = await renewed.current(sealed, own);
        const sent = { ...request, session: current || undefined };
        const answer = await send(sent);
        const ping = (message: Message) => send({ ...sent, method: 'POST', message });
        const isEnded = request.method === 'DELETE' || renewed.hasEnded(sealed);
        if (request.method === 'DELETE') renewed.end(sealed);
        // What refuses a request for its session has not processed it, so that it may be sent again.
        if (isEnded || !(await hasForgotten(answer.statusCode, ping))) return answer;
        void answer.body.dump();
        const session = await renewed.renew(sealed, current, () => this.#beginAgain(request));
        return send({ ...sent, session: session || undefined });
      },
      passing,
    );
    prober.callEnded(this.route.name, ended.outcome, request.message?.method);
    return ended;
  }

  /** Begins a session with what the client said of itself. @returns the upstream's own id of it; empty where it has none */
  async #beginAgain({ headers: given, key }: ForUpstream): Promise<string> {
    const { route } = this;
    const { version = NEWEST_SESSIONED, client = { capabilities: {}, clientInfo: {} } } = this.#session ?? {};
    const signal = AbortSignal.timeout(route.entry.timeoutMs); // not this client's alone: other requests may wait for it
    const send = (message: Message, session?: string) => {
      const headers = { ...given, 'last-event-id': undefined };
      return askRoute(this.gateway.agent, route, { method: 'POST', headers, message, session, key, signal });
    };
    const initialize = ownMessage('initialize', { protocolVersion: version, ...client }, OWN_ID);
    const heard = await hear(await send(initialize), OWN_ID, credentialWatch(route));
    if ('reason' in heard) throw new UpstreamFault(heard.reason);
    const id = headerOf(heard.headers, 'mcp-session-id') ?? '';
    if (!isObject(heard.message.result) || id.length > LONGEST_SESSION) {
      throw new UpstreamFault('does not begin a session again');
    }
    void (await send(ownMessage('notifications/initialized', undefined), id || undefined)).body.dump();
    return id;
  }

  #challenge(): Answer {
    const { entry } = this.route;
    const named = entry.disposition === 'relay' && entry.scopesInChallenge;
    return challenge(this.metadataUrl, named ? entry.scopes : []);
  }
}

type Unentitled = Pick<UpstreamCall, 'exchange' | 'message'> & {
  readonly route: { readonly name: string };
  seal(session: Session): string;
};

/**
 * What a caller sees who may not use a route: it connects, gets a session and an empty tool list (G5), and its upstream
 * never hears of it (G6).
 */
export function unentitled(call: Unentitled): Answer {
  const { exchange, message, route } = call;
  if (exchange.method === 'GET') return { status: 405, headers: { allow: 'POST, DELETE' } };
  if (exchange.method === 'DELETE') return { status: 200 };
  if (message?.kind !== 'request') return { status: 202 };
  const id = message.id ?? null;
  const serverInfo = { name: route.name, version };
  if (eraOf(exchange.headers, message) === 'stateless') return stateless(message, id, serverInfo);
  switch (message.method) {
    case 'initialize': {
      const { protocolVersion } = (message.body.params ?? {}) as { protocolVersion?: unknown };
      const asked = String(protocolVersion);
      const agreed = isKnown(asked) && !isStateless(asked) ? asked : NEWEST_SESSIONED;
      const headers = { 'mcp-session-id': call.seal({ upstream: {}, version: agreed }) };
      return result(id, { protocolVersion: agreed, capabilities: { tools: {} }, serverInfo }, headers);
    }
    case 'ping':
      return result(id, {});
    case 'tools/list':
      return result(id, { tools: [] });
    default:
      return rpcError(200, id, METHOD_NOT_FOUND, `Method not found: ${message.method}`);
  }
}

/** The answer of `unentitled` in the stateless revision, where each result describes the server itself. */
function stateless({ method }: Message, id: RequestId | null, serverInfo: object): Answer {
  const common = { ...COMPLETE, ttlMs: 0, cacheScope: 'private', _meta: { [SERVER_INFO_META]: serverInfo } };
  switch (method) {
    case 'server/discover':
      return result(id, { ...common, supportedVersions: REVISIONS, capabilities: { tools: {} } });
    case 'tools/list':
      return result(id, { ...common, tools: [] });
    default:
      return rpcError(404, id, METHOD_NOT_FOUND, `Method not found: ${method}`);
  }
}
