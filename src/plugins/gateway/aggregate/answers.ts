import type { AnswerParams } from '../../../machines/gateway/call-shapes.ts';
import { unentitled } from '../calls/route-call.ts';
import type { Exchange } from '../exchange.ts';
import { COMPLETE, SERVER_INFO_META, toolRefusal } from '../mcp/answers.ts';
import { type Answer, METHOD_NOT_FOUND, result, rpcError, UNAUTHORIZED } from '../mcp/json-rpc.ts';
import type { Message } from '../mcp/message.ts';
import { type Era, eraOf } from '../mcp/protocol.ts';
import type { Session } from '../session/sealed-sessions.ts';
import { listOf } from './merged-answers.ts';
import type { Addressee, Selection } from './selection.ts';
import { serverInfo } from './sessions.ts';
import { identityWanted, type Missing } from './unavailable.ts';

/** The request that is answered, and where it was to go. */
interface AnsweredRequest {
  readonly exchange: Exchange;
  readonly message: Message | undefined;
  readonly selection: Selection;
  readonly addressee: Addressee;
  /** Seals a new session for this caller. */
  seal(session: Session): string;
}

const era = ({ exchange, message }: AnsweredRequest): Era => eraOf(exchange.headers, message);

/** What a refused call is answered, where a rule has no answer of its own. */
export function refusal(request: AnsweredRequest, params: AnswerParams): Answer {
  const { exchange, addressee, message } = request;
  const id = message?.id ?? null;
  const isToolCall = message?.kind === 'request' && message.method === 'tools/call';
  if (message?.kind === 'request' && params.rule === 'identity_required') {
    // No challenge with a 401: a client would end the session with all the other servers.
    const text = identityWanted(addressee.route?.name ?? 'this server');
    if (!isToolCall) return rpcError(200, id, UNAUTHORIZED, text);
    const content = [{ type: 'text', text: `Error: ${text}` }];
    return result(id, { content, isError: true, ...(era(request) === 'stateless' && COMPLETE) });
  }
  if (isToolCall) return toolRefusal(id, params, era(request));
  const field = listOf(message?.method);
  if (field !== undefined) return result(id, withMeta(request, { [field]: [] }, [], []));
  return unentitled({ exchange, message, seal: (session) => request.seal(session), route: serverInfo });
}

/** What every result of the stateless revision says of itself. */
export function common(request: AnsweredRequest): object {
  return era(request) === 'stateless' ? { ...COMPLETE, ttlMs: 0, cacheScope: 'private' } : {};
}

/**
 * Says in a result who has no part in it.
 *
 * @param known names that the key may reach
 */
export function withMeta(
  request: AnsweredRequest,
  body: Readonly<Record<string, unknown>>,
  known: readonly string[],
  missing: readonly Missing[],
): object {
  const unknown = request.selection.named?.filter((name) => !known.includes(name)) ?? [];
  const _meta = {
    ...(era(request) === 'stateless' && { [SERVER_INFO_META]: serverInfo }),
    ...(missing.length > 0 && { 'holdfast/unavailable': missing }),
    ...(unknown.length > 0 && { 'holdfast/unknown': unknown }),
  };
  return { ...body, ...common(request), ...(Object.keys(_meta).length > 0 && { _meta }) };
}

export function noSuch(request: AnsweredRequest, method: string | undefined): Answer {
  const text = `Method not found: ${method} is no method of the aggregate; use /<server>/mcp`;
  return rpcError(
    era(request) === 'stateless' ? 404 : 200,
    request.message?.id ?? null,
    METHOD_NOT_FOUND,
    text,
  );
}
