import type { AnswerParams } from '../../../machines/gateway/key.ts';
import type { Exchange } from '../exchange.ts';
import type { AuthenticatedKey } from '../keys/caller.ts';
import { type Answer, notFound, plainRefusal } from '../mcp/answers.ts';
import { judgeCall, type Meant } from './decide.ts';
import { ended, type LiveCall } from './live-call.ts';
import type { GatewayParts } from './parts.ts';
import { NOWHERE, traceCall } from './trace.ts';
import { bodyLength } from './unread.ts';

const BUSY: Answer = { status: 503, headers: { 'retry-after': '1' } };

/** Answers a request for a server that is not there. */
export function answerNowhere(parts: GatewayParts, exchange: Exchange): void {
  traceCall(parts, exchange, NOWHERE);
  tell(exchange, notFound);
}

/**
 * Answers a request that breaks the rules of its protocol. Nothing is decided about it, unless it brings a key where
 * none belongs: somebody must hear of that, whatever else is wrong (G9, G25).
 */
export async function answerInvalid(
  parts: GatewayParts,
  exchange: Exchange,
  caller: AuthenticatedKey,
  answer: Answer,
  meant: Meant,
): Promise<void> {
  const { authorization = 'bearer', misplaced } = caller;
  if (authorization !== 'bearer' || misplaced) {
    const call = answering(exchange, answer);
    return judgeCall(parts, exchange, caller, undefined, { ...meant, unread: { method: 'invalid' } }, call);
  }
  traceCall(parts, exchange, meant.path, caller.id);
  tell(exchange, answer);
}

/** Lets the key's machine refuse a request whose body was not read, for the key has too much held already. */
export function judgeUnread(
  parts: GatewayParts,
  exchange: Exchange,
  caller: AuthenticatedKey,
  meant: Meant,
): Promise<void> {
  const unread = { method: 'unread', ...parts.bodies.facts(caller.id, bodyLength(exchange)) };
  return judgeCall(parts, exchange, caller, undefined, { ...meant, unread }, answering(exchange, BUSY));
}

/** A call that goes nowhere. @param otherwise the answer where its key has nothing against it */
function answering(exchange: Exchange, otherwise: Answer): LiveCall {
  const told = (params?: AnswerParams) => {
    tell(exchange, (params && plainRefusal(params, undefined)) ?? otherwise);
    return ended(exchange, { outcome: 'answered' });
  };
  return { forward: async () => told(), answer: told };
}

function tell(exchange: Exchange, answer: Answer): void {
  exchange.facts.outcome = 'answered';
  exchange.send(answer);
}
