import type { AnswerParams } from '../../../machines/gateway/key.ts';
import { unentitled } from '../calls/route-call.ts';
import {
  type Answer,
  COMPLETE,
  METHOD_NOT_FOUND,
  result,
  rpcError,
  SERVER_INFO_META,
  toolRefusal,
  UNAUTHORIZED,
} from '../mcp/answers.ts';
import { type Era, eraOf } from '../mcp/protocol.ts';
import type { AggregateCall } from './aggregate-call.ts';
import { identityWanted } from './branch.ts';
import { listOf, type Missing } from './merged-answers.ts';
import { serverInfo } from './sessions.ts';

type Parts = Pick<AggregateCall, 'exchange' | 'message' | 'selection' | 'addressee' | 'seal'>;

const era = ({ exchange, message }: Parts): Era => eraOf(exchange.headers, message);

/** What a refused call is answered, where a rule has no answer of its own. */
export function refusal(parts: Parts, params: AnswerParams): Answer {
  const { exchange, addressee, message } = parts;
  const id = message?.id ?? null;
  const isToolCall = message?.kind === 'request' && message.method === 'tools/call';
  if (message?.kind === 'request' && params.rule === 'identity_required') {
    // No challenge with a 401: a client would end the session with all the other servers.
    const text = identityWanted(addressee.route?.name ?? 'this server');
    if (!isToolCall) return rpcError(200, id, UNAUTHORIZED, text);
    const content = [{ type: 'text', text: `Error: ${text}` }];
    return result(id, { content, isError: true, ...(era(parts) === 'stateless' && COMPLETE) });
  }
  if (isToolCall) return toolRefusal(id, params, era(parts));
  const field = listOf(message?.method);
  if (field !== undefined) return result(id, withMeta(parts, { [field]: [] }, [], []));
  return unentitled({ exchange, message, seal: (session) => parts.seal(session), route: serverInfo });
}

/** What every result of the stateless revision says of itself. */
export function common(parts: Parts): object {
  return era(parts) === 'stateless' ? { ...COMPLETE, ttlMs: 0, cacheScope: 'private' } : {};
}

/**
 * Says in a result who has no part in it.
 *
 * @param known names that the key may reach
 */
export function withMeta(
  parts: Parts,
  body: Readonly<Record<string, unknown>>,
  known: readonly string[],
  missing: readonly Missing[],
): object {
  const unknown = parts.selection.named?.filter((name) => !known.includes(name)) ?? [];
  const _meta = {
    ...(era(parts) === 'stateless' && { [SERVER_INFO_META]: serverInfo }),
    ...(missing.length > 0 && { 'holdfast/unavailable': missing }),
    ...(unknown.length > 0 && { 'holdfast/unknown': unknown }),
  };
  return { ...body, ...common(parts), ...(Object.keys(_meta).length > 0 && { _meta }) };
}

export function noSuch(parts: Parts, method: string | undefined): Answer {
  const text = `Method not found: ${method} is no method of the aggregate; use /<server>/mcp`;
  return rpcError(era(parts) === 'stateless' ? 404 : 200, parts.message?.id ?? null, METHOD_NOT_FOUND, text);
}
