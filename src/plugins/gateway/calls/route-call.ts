import type { AnswerParams, CallEnded, ForwardParams } from '../../../machines/mcp-access.ts';
import { type Answer, challenge, plainRefusal, rpcError, toolRefusal } from '../mcp/answers.ts';
import { eraOf } from '../mcp/checks.ts';
import type { Message } from '../mcp/message.ts';
import { upstreamName } from '../mcp/tool-names.ts';
import type { Route } from '../routes/table.ts';
import type { ToolFacts } from '../telemetry/index.ts';
import { ask, type UpstreamAnswer } from '../upstream/client.ts';
import { hasForgotten, SessionForgotten } from '../upstream/forgotten.ts';
import type { Told } from '../upstream/outcome.ts';
import { passAnswer } from '../upstream/pass.ts';
import { requestTo } from '../upstream/request.ts';
import { ended, type LiveCall } from './live-call.ts';
import type { RouteCallParts } from './route-call-parts.ts';
import { stopWith } from './stop.ts';
import { unentitled } from './unentitled.ts';

/** A call to one server behind the gateway, streamed both ways. */
export class RouteCall implements LiveCall {
  readonly #parts: RouteCallParts;

  constructor(parts: RouteCallParts) {
    this.#parts = parts;
  }

  async forward(params: ForwardParams, signal: AbortSignal): Promise<CallEnded> {
    const { exchange, agent, draining, route, message, session } = this.#parts;
    if (route.reason !== undefined || !route.url) {
      exchange.send(unavailable(route, message));
      return ended(exchange, { outcome: 'unreachable' }, params.cost);
    }
    const { method, headers, gone } = exchange;
    const stop = stopWith(gone, draining, signal);
    const upstream = session?.upstream[route.name];
    const request = { method, headers, message, session: upstream, signal: stop.signal };
    const send = async () => {
      const answer = await ask(agent, requestTo(route, request));
      if (upstream === undefined || answer.statusCode !== 400) return answer;
      const ping = (message: Message) =>
        ask(agent, requestTo(route, { ...request, method: 'POST', message }));
      if (!(await hasForgotten(answer.statusCode, ping))) return answer;
      void answer.body.dump();
      throw new SessionForgotten();
    };
    try {
      const told = await passCall(this.#parts, send, params, stop.signal);
      return ended(exchange, told, params.cost);
    } finally {
      stop.release();
    }
  }

  answer(params: AnswerParams): CallEnded {
    const { exchange, message, metadataUrl } = this.#parts;
    const { rule } = params;
    const plain = rule === 'identity_required' ? challenge(metadataUrl) : plainRefusal(params, message);
    const isToolCall = message?.kind === 'request' && message.method === 'tools/call';
    const refusal = () => toolRefusal(message?.id ?? null, params, eraOf(exchange.headers, message));
    exchange.send(plain ?? (isToolCall ? refusal() : unentitled(this.#parts)));
    return ended(exchange, { outcome: 'answered' });
  }
}

/**
 * Makes the request of one upstream and passes its answer on. What a tool's call took and used is told to telemetry.
 */
export async function passCall(
  parts: RouteCallParts,
  send: () => Promise<UpstreamAnswer>,
  { tools, cost }: ForwardParams,
  stop: AbortSignal,
): Promise<Told> {
  const { exchange, route, message } = parts;
  const tool = message?.method === 'tools/call' ? upstreamName(route, message.name ?? '') : undefined;
  const asked = async () => {
    const answer = await send();
    if (tool !== undefined) exchange.facts.tool = toolFacts(route, tool, exchange.ms, cost);
    return answer;
  };
  const told = await passAnswer(parts, asked, tools, stop);
  if (told.tokens && exchange.facts.tool) {
    exchange.facts.tool = { ...exchange.facts.tool, tokens: told.tokens };
  }
  return told;
}

function unavailable({ name, reason = 'not configured' }: Route, message: Message | undefined): Answer {
  return rpcError(503, message?.id ?? null, -32_603, `The route ${name} is ${reason}.`);
}

function toolFacts({ name, entry }: Route, tool: string, responseMs: number, cost = 0): ToolFacts {
  return { name: tool, model: entry.model ?? `${name}/${tool}`, cost, responseMs };
}
