import type { IncomingMessage } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import type { AnswerParams, MisplacedKey, RejectionRule } from '../../../machines/gateway/call-shapes.ts';
import type { RejectionLimiter } from '../calls/rejection-limiter.ts';
import { keyIn, keyInUrl, mostSevere, removeMisplacedKey } from '../keys/misplaced-keys.ts';
import { bearerIn, KEY_HEADER, type KeyLookup, keyId } from '../keys/virtual-keys.ts';
import { WRONG_KEY } from '../mcp/answers.ts';

/** What authenticates the callers of REST paths and records those who are rejected. */
export interface RestServices {
  readonly keys: KeyLookup;
  readonly rejections: RejectionLimiter;
}

/** Whoever calls a REST path with something in `Authorization` that is good there. */
export type RestCaller =
  | { readonly kind: 'master' }
  | { readonly kind: 'key'; readonly id: string; readonly presented: string };

/** Tells who calls a REST path: `Authorization` alone counts here, whatever the key header says (G14, G25). */
export function restCaller(
  request: FastifyRequest,
  { keys }: Pick<RestServices, 'keys'>,
): RestCaller | { rule: RejectionRule } {
  // Not even looked at: whoever puts keys into URLs should not learn that it works.
  if (Object.keys(request.query as object).some((name) => /^(?:api_?|master_?)?keys?$/i.test(name))) {
    return { rule: 'key_in_query' };
  }
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
 * Records that a caller was rejected.
 *
 * @returns the rule that decided, once it is durable
 * @throws HF_LOG_WRITE, HF_HTTP_TIMEOUT it can't be recorded
 */
export function recordRefusal(
  { rejections, keys }: RestServices,
  { id, ip, raw, routeOptions }: FastifyRequest,
  rule: RejectionRule,
): Promise<AnswerParams['rule']> {
  const path = routeOptions.url ?? '';
  const misplaced = misplacedOnRest(raw, keys);
  return rejections.reject(
    { rule, source: ip, path, ...(misplaced && { misplaced, rest: true }) },
    id,
    refusal(rule).status,
  );
}

/** Records that a request which was let in brought another key where none belongs; once it is answered. */
export function watchLetIn(
  { rejections, keys }: RestServices,
  { id, ip, raw, routeOptions }: FastifyRequest,
  { raw: response }: FastifyReply,
): void {
  const misplaced = misplacedOnRest(raw, keys);
  if (!misplaced) return;
  const rejection = {
    rule: 'let_in',
    source: ip,
    path: routeOptions.url ?? '',
    misplaced,
    rest: true,
  } as const;
  response.once('close', () => {
    const status = response.writableFinished ? response.statusCode : undefined;
    rejections.reject(rejection, id, status).catch(() => undefined); // the answer is out already
  });
}

/** Somebody should hear of a key that came elsewhere than in Authorization, which is looked at by itself (G9, G25). */
function misplacedOnRest(raw: IncomingMessage, keys: KeyLookup): MisplacedKey | undefined {
  const { authorization, [KEY_HEADER]: keyHeader = '' } = raw.headers;
  const key = keyIn([keyHeader].flat().join(' '), keys);
  // Who sends its virtual key in both headers has it in none that is wrong for it.
  const isTheSame = key === 'virtual_key' && keyHeader === authorization;
  const inKeyHeader = key && !isTheSame ? [{ key, where: `header ${KEY_HEADER}` }] : [];
  return mostSevere([removeMisplacedKey(raw, keys) ?? [], inKeyHeader].flat());
}

/** An error as clients of the REST paths know it: `param` and `code` are texts. */
export interface RestError {
  readonly status: number;
  readonly message: string;
  readonly param?: string;
  readonly retryAfterMs?: number | undefined;
}

/** Why a caller of the REST paths is refused; the beginnings are the documents' own. */
const REFUSALS: Partial<Readonly<Record<AnswerParams['rule'], string>>> = {
  ...WRONG_KEY,
  no_key: 'No api key passed in. Send the header Authorization: Bearer <key>.',
  unknown_key: 'Invalid API Key: it is not known here.',
  master_key_wanted: 'Only the master key may do this. Send it as Authorization: Bearer <master key>.',
  virtual_key_wanted:
    'The master key is no virtual key. Authenticate as the key that is to be read; GET /key/list shows them all.',
  key_in_query:
    'A key in the URL ends up in logs. It was not looked at: send it as Authorization: Bearer <key>, and rotate it.',
  restricted:
    'This key is restricted to llm_api_routes and may not call /key/info. Use /key/list and /budget/list instead, with the master key.',
};

/** The answer to a caller who may not, by the rule that decided. */
export function refusal(rule: AnswerParams['rule']): RestError {
  const status = rule === 'key_in_query' ? 400 : 401;
  return { status, message: `Authentication Error, ${REFUSALS[rule] ?? 'Invalid API Key.'}` };
}

/** A coded error in the shape of this surface; `param` is the field of the request that it is about. */
export function restErrorOf({ status, what, remedy, code, details }: HoldfastError): RestError {
  const fields = { HF_GATEWAY_KEY_REQUEST: String(details.field), HF_GATEWAY_KEY_ALIAS: 'key_alias' };
  const param = (fields as Readonly<Record<string, string | undefined>>)[code];
  const retryAfterMs = code === 'HF_HTTP_BUDGET' ? Number(details.seconds) * 1_000 : undefined;
  return { status, message: `${what} ${remedy}`, retryAfterMs, ...(param !== undefined && { param }) };
}

const TYPES: Readonly<Record<number, string>> = {
  401: 'auth_error',
  404: 'not_found_error',
  409: 'conflict_error',
  429: 'rate_limit_error',
};

export function restBody({ status, message, param = 'None' }: RestError): unknown {
  const type = TYPES[status] ?? (status < 500 ? 'bad_request_error' : 'internal_server_error');
  return { error: { message, type, param, code: String(status) } };
}

export function sendError(reply: FastifyReply, error: RestError): FastifyReply {
  const { status, retryAfterMs } = error;
  if (retryAfterMs !== undefined)
    reply.header('retry-after', String(Math.max(1, Math.ceil(retryAfterMs / 1_000))));
  else if (status === 503) reply.header('retry-after', '5');
  return reply.code(status).send(restBody(error));
}
