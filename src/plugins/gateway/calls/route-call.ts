import type { Dispatcher } from 'undici';
import type { Logger } from '../../../core/host/logging/logger.ts';
import type { AnswerParams, CallEnded, ForwardParams } from '../../../machines/gateway/key.ts';
import {
  type Answer,
  challenge,
  INTERNAL_ERROR,
  plainRefusal,
  rpcError,
  toolRefusal,
} from '../mcp/answers.ts';
import type { Message } from '../mcp/message.ts';
import { eraOf } from '../mcp/protocol.ts';
import type { Route } from '../routes/route.ts';
import type { Session } from '../session/sealed-sessions.ts';
import type { Ending, Stop } from '../stop.ts';
import type { PassParts } from '../upstream/answer.ts';
import { passAnswer } from '../upstream/answer.ts';
import { ask } from '../upstream/client.ts';
import { hasForgotten } from '../upstream/failures.ts';
import { type ForUpstream, requestTo } from '../upstream/request.ts';
import { failed } from './failed.ts';
import { ended, type LiveCall } from './live-call.ts';
import { unentitled } from './unentitled.ts';

/** What a call of one route consists of, beside what is decided about it. */
interface RouteCallParts extends PassParts {
  /** Of a request that belongs to one. */
  readonly session: Session | undefined;
  readonly agent: Dispatcher;
  readonly logger: Logger;
  /** Ends what would go on for ever. */
  readonly draining: Ending;
}

/** A call to one server behind the gateway, streamed both ways. */
export class RouteCall implements LiveCall {
  readonly #parts: RouteCallParts;

  constructor(parts: RouteCallParts) {
    this.#parts = parts;
  }

  async forward(params: ForwardParams, stop: Stop): Promise<CallEnded> {
    const { exchange, agent, draining, route, message, session } = this.#parts;
    if (route.reason !== undefined || !route.url) {
      exchange.send(unavailable(route, message));
      return ended(exchange, { outcome: 'unreachable' }, params.cost);
    }
    const { method, headers, gone } = exchange;
    stop.follow(gone, draining);
    const upstream = session?.upstream[route.name];
    const request: ForUpstream = { method, headers, message, session: upstream, signal: stop };
    const send = (sent: ForUpstream) => ask(agent, requestTo(route, sent));
    const ping = (pinged: Message) => send({ ...request, method: 'POST', message: pinged });
    const passing = { ...params, hasForgotten: () => upstream !== undefined && hasForgotten(400, ping) };
    try {
      const told = await passAnswer(this.#parts, () => send(request), passing, stop);
      return ended(exchange, told, params.cost);
    } catch (error) {
      return ended(exchange, failed(this.#parts, this.#parts.logger, error), params.cost);
    }
  }

  answer(params: AnswerParams): CallEnded {
    const { exchange, message } = this.#parts;
    const { rule } = params;
    const plain = rule === 'identity_required' ? challengeOf(this.#parts) : plainRefusal(params, message);
    const isToolCall = message?.kind === 'request' && message.method === 'tools/call';
    const refusal = () => toolRefusal(message?.id ?? null, params, eraOf(exchange.headers, message));
    exchange.send(plain ?? (isToolCall ? refusal() : unentitled(this.#parts)));
    return ended(exchange, { outcome: 'answered' });
  }
}

function challengeOf({ metadataUrl, route: { entry } }: PassParts): Answer {
  const named = entry.disposition === 'relay' && entry.scopesInChallenge;
  return challenge(metadataUrl, named ? entry.scopes : []);
}

function unavailable({ name, reason = 'not configured' }: Route, message: Message | undefined): Answer {
  return rpcError(503, message?.id ?? null, INTERNAL_ERROR, `The route ${name} is ${reason}.`);
}
