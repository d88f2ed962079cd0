import type { FastifyRequest } from 'fastify';
import type { AnswerParams, DoorRule } from '../../../machines/mcp-access.ts';
import type { GatewayParts } from '../calls/parts.ts';
import { keyId, sameKey } from '../keys/key-id.ts';
import { keyInUrl } from '../keys/misplaced.ts';

const BEARER = /^Bearer ([\x21-\x7e]{1,4096})$/;

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
  const masterId = parts.masterId();
  if (keyInUrl(request.raw.url ?? '', { keys: parts.keys, masterId })) return { rule: 'key_in_query' };
  const { authorization } = request.headers;
  if (authorization === undefined || authorization.trim() === '') return { rule: 'no_key' };
  const value = BEARER.exec(authorization)?.[1];
  if (value === undefined) return { rule: 'malformed_key' };
  const presented = keyId(value);
  if (sameKey(presented, masterId)) return { kind: 'master' };
  const id = parts.keys.find(presented);
  return id === undefined ? { rule: 'unknown_key' } : { kind: 'key', id, presented };
}

/**
 * Records that a caller was turned away.
 *
 * @returns the rule that decided, once it is durable
 * @throws HF_LOG_WRITE, HF_HTTP_TIMEOUT it can't be recorded
 */
export function recordRefusal(
  { door }: GatewayParts,
  { id, ip, routeOptions }: FastifyRequest,
  rule: DoorRule,
): Promise<AnswerParams['rule']> {
  return door.turnAway({ rule, source: ip, path: routeOptions.url ?? '' }, id);
}
