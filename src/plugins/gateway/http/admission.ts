import type { IncomingMessage } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AnswerParams, DoorRule, MisplacedKey } from '../../../machines/gateway/key.ts';
import type { GatewayParts } from '../calls/parts.ts';
import { bearerIn, type KeyLookup, keyId } from '../keys/directory.ts';
import { ADMISSION_HEADER, keyIn, keyInUrl, mostSevere, removeMisplacedKey } from '../keys/misplaced-key.ts';
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
  const { keys } = parts;
  if (keyInUrl(request.raw.url ?? '', keys)) return { rule: 'key_in_query' };
  const { authorization } = request.headers;
  if (authorization === undefined || authorization.trim() === '') return { rule: 'no_key' };
  const value = bearerIn(authorization);
  if (value === undefined) return { rule: 'malformed_key' };
  const presented = keyId(value);
  if (keys.isMaster(presented)) return { kind: 'master' };
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
  { door, keys }: GatewayParts,
  { id, ip, raw, routeOptions }: FastifyRequest,
  rule: DoorRule,
): Promise<AnswerParams['rule']> {
  const path = routeOptions.url ?? '';
  const misplaced = misplacedOnRest(raw, keys);
  return door.turnAway(
    { rule, source: ip, path, ...(misplaced && { misplaced, rest: true }) },
    id,
    refusal(rule).status,
  );
}

/** Records that a request which was let in brought another key where none belongs; once it is answered. */
export function watchLetIn(
  { door, keys }: GatewayParts,
  { id, ip, raw, routeOptions }: FastifyRequest,
  { raw: response }: FastifyReply,
): void {
  const misplaced = misplacedOnRest(raw, keys);
  if (!misplaced) return;
  const told = { rule: 'let_in', source: ip, path: routeOptions.url ?? '', misplaced, rest: true } as const;
  response.once('close', () => {
    const status = response.writableFinished ? response.statusCode : undefined;
    door.turnAway(told, id, status).catch(() => undefined); // the answer is out already
  });
}

/** Somebody should hear of a key that came elsewhere than in Authorization, which is looked at by itself (G9, G25). */
function misplacedOnRest(raw: IncomingMessage, keys: KeyLookup): MisplacedKey | undefined {
  const { authorization, [ADMISSION_HEADER]: admission = '' } = raw.headers;
  const key = keyIn([admission].flat().join(' '), keys);
  // Who sends its virtual key in both headers has it in none that is wrong for it.
  const isTheSame = key === 'virtual_key' && admission === authorization;
  const inAdmission = key && !isTheSame ? [{ key, where: `header ${ADMISSION_HEADER}` }] : [];
  return mostSevere([removeMisplacedKey(raw, keys) ?? [], inAdmission].flat());
}
