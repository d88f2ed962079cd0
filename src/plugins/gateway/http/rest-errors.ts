import type { FastifyReply } from 'fastify';
import type { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import type { AnswerParams } from '../../../machines/gateway/key.ts';
import { WRONG_KEY } from '../mcp/answers.ts';

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
  return { status, message: `${what} ${remedy}`, ...(param !== undefined && { param }) };
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
