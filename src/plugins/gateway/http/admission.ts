import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import type { AnswerParams, DoorRule } from '../../../machines/mcp-access.ts';
import type { GatewayParts } from '../calls/parts.ts';
import type { TurnedAway } from '../calls/topics.ts';
import { bearerIn, keyId, sameKey } from '../keys/key-id.ts';
import { ADMISSION_HEADER, type KnownKeys, keyIn, keyInUrl, takeMisplaced } from '../keys/misplaced.ts';
import { refusal } from './rest-errors.ts';

/** Whoever calls a REST path with something in `Authorization` that is good there. */
export type RestCaller =
  | { readonly kind: 'master' }
  | { readonly kind: 'key'; readonly id: string; readonly presented: string };

/** Tells who calls a REST path: `Authorization` alone counts here, whatever the admission header says (G14, G25). */
export function restCaller(request: FastifyRequest, parts: GatewayParts): RestCaller | { rule: DoorRule } {
  // Not even looked at: whoever puts keys into URLs should not learn that it works.
  if (Object.keys(request.query as object).some((name) => /^(?:api_?|master_?)?keys?$/i.test(name))) {
    return { rule: 'key_in_query' };
  }
  const { keys, masterId } = parts.known;
  if (keyInUrl(request.raw.url ?? '', parts.known)) return { rule: 'key_in_query' };
  const { authorization } = request.headers;
  if (authorization === undefined || authorization.trim() === '') return { rule: 'no_key' };
  const value = bearerIn(authorization);
  if (value === undefined) return { rule: 'malformed_key' };
  const presented = keyId(value);
  if (sameKey(presented, masterId)) return { kind: 'master' };
  const id = keys.find(presented);
  return id === undefined ? { rule: 'unknown_key' } : { kind: 'key', id, presented };
}

/**
 * Records that a caller was turned away.
 *
 * @returns the rule that decided, once it is durable
 * @throws HF_LOG_WRITE, HF_HTTP_TIMEOUT it can't be recorded
 */
export function recordRefusal(
  { door, known }: GatewayParts,
  { id, ip, raw, routeOptions }: FastifyRequest,
  rule: DoorRule,
): Promise<AnswerParams['rule']> {
  const path = routeOptions.url ?? '';
  return door.turnAway({ rule, source: ip, path, ...misplacedOnRest(raw, known) }, id, refusal(rule).status);
}

/** Somebody should hear of a key that came elsewhere than in Authorization, which is looked at by itself (G9, G25). */
function misplacedOnRest(
  raw: IncomingMessage,
  known: KnownKeys,
): Pick<TurnedAway, 'misplaced' | 'where' | 'rest'> {
  const found = takeMisplaced(raw, known);
  const admission = keyIn([raw.headers[ADMISSION_HEADER] ?? ''].flat().join(' '), known);
  if (admission === 'master_key' || (admission && !found)) {
    return { misplaced: admission, where: `header ${ADMISSION_HEADER}`, rest: true };
  }
  return found ? { misplaced: found.key, where: found.where, rest: true } : {};
}
