import { type AuthenticatedKey, type Caller, inspectCaller } from '../keys/caller.ts';
import { unauthorized } from '../mcp/answers.ts';
import type { ClientExchange } from './client-exchange.ts';
import { undecided } from './failed.ts';
import type { GatewayParts } from './parts.ts';
import { traceCall } from './trace.ts';

/**
 * @param path of the endpoint, without a query
 * @param identified the caller, where that is known already
 * @returns the caller; undefined for somebody without a key, who is turned away
 */
export function admit(
  parts: GatewayParts,
  exchange: ClientExchange,
  path: string,
  identified?: AuthenticatedKey,
): AuthenticatedKey | undefined {
  const caller = inspectCaller(exchange, parts.keys, identified);
  if (!('rule' in caller)) return caller;
  void turnAway(parts, exchange, caller, path);
  return undefined;
}

/** Somebody without a key: recorded by one actor, then answered. */
async function turnAway(
  parts: GatewayParts,
  exchange: ClientExchange,
  refused: Extract<Caller, { rule: string }>,
  path: string,
): Promise<void> {
  traceCall(parts, exchange, path);
  exchange.facts.outcome = 'answered';
  try {
    const { source, correlation } = exchange;
    const decided = await parts.door.turnAway({ ...refused, source, path }, correlation, 401);
    exchange.send(unauthorized(decided) ?? { status: 401 });
  } catch (error) {
    undecided(parts.services.logger, exchange, error);
  }
}
