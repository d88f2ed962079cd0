import type { Dispatcher } from 'undici';
import type { AnswerParams, CallEnded, ForwardParams } from '../../../machines/mcp-access.ts';
import { challenge, toolRefusal, unauthorized } from '../mcp/answers.ts';
import { encode, type Message } from '../mcp/message.ts';
import { upstreamName } from '../mcp/tool-names.ts';
import type { Route } from '../routes/table.ts';
import type { Session } from '../session/sealed-sessions.ts';
import { ask, type UpstreamRequest } from '../upstream/client.ts';
import { upHeaders } from '../upstream/headers.ts';
import { passAnswer } from '../upstream/pass.ts';
import type { ClientExchange } from './exchange.ts';
import type { LiveCall } from './live-call.ts';
import { unentitled } from './unentitled.ts';

/** What a call of one route consists of, beside what is decided about it. */
export interface RouteCallParts {
  readonly exchange: ClientExchange;
  readonly route: Route;
  /** Of a POST. */
  readonly message: Message | undefined;
  /** Of a request that belongs to one. */
  readonly session: Session | undefined;
  readonly agent: Dispatcher;
  /** URL of the route's protected-resource document, for challenges. */
  readonly metadataUrl: string;
  /** Seals a new session for this caller and route. */
  readonly seal: (session: Session) => string;
  /** Ends what would go on for ever. */
  readonly draining: AbortSignal;
}

/** A call to one server behind the gateway, streamed both ways. */
export class RouteCall implements LiveCall {
  readonly #parts: RouteCallParts;

  constructor(parts: RouteCallParts) {
    this.#parts = parts;
  }

  async forward({ tools, cost }: ForwardParams, signal: AbortSignal): Promise<CallEnded> {
    const { exchange, agent, draining } = this.#parts;
    const stop = AbortSignal.any([exchange.gone, draining, signal]);
    const told = await passAnswer(this.#parts, () => ask(agent, this.#request(stop)), tools, stop);
    return this.#ended(told, cost);
  }

  answer(params: AnswerParams): CallEnded {
    const { exchange, message, metadataUrl } = this.#parts;
    const { rule } = params;
    const plain = rule === 'identity_required' ? challenge(metadataUrl) : unauthorized(rule);
    const isToolCall = message?.kind === 'request' && message.method === 'tools/call';
    exchange.send(plain ?? (isToolCall ? toolRefusal(message.id ?? null, params) : unentitled(this.#parts)));
    return this.#ended({ outcome: 'answered' });
  }

  #ended(told: Pick<CallEnded, 'outcome' | 'code'>, cost?: number): CallEnded {
    const { exchange } = this.#parts;
    return {
      type: 'CALL_ENDED',
      ...told,
      ...(exchange.begun && { status: exchange.response.statusCode }),
      ms: exchange.ms,
      bytes: exchange.bytes,
      ...(cost !== undefined && { cost }),
    };
  }

  #request(signal: AbortSignal): UpstreamRequest {
    const { exchange, route, message, session } = this.#parts;
    const { url } = route;
    if (!url) throw new RangeError(`${route.name} has no URL`);
    const headers = upHeaders(exchange.headers);
    const upstreamSession = session?.upstream[route.name];
    if (upstreamSession !== undefined) headers['mcp-session-id'] = upstreamSession;
    const authorization = this.#authorization();
    if (authorization !== undefined) headers.authorization = authorization;
    const { method } = exchange;
    const { timeoutMs } = route.entry;
    if (!message) return { url, method, headers, signal, timeoutMs };
    headers['content-type'] = 'application/json';
    const tool = message.method === 'tools/call' ? upstreamName(route, message.name ?? '') : undefined;
    const subject = tool ?? exchange.headers['mcp-name'];
    if (exchange.headers['mcp-name'] !== undefined && typeof subject === 'string')
      headers['mcp-name'] = subject;
    return { url, method, headers, body: encode(message, tool), signal, timeoutMs };
  }

  #authorization(): string | undefined {
    const { route, exchange } = this.#parts;
    if (route.entry.disposition === 'relay') return exchange.headers.authorization;
    return route.authorization(); // an overwrite route's own; a credential-free one has none
  }
}
