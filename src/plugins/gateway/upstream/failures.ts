import type { IncomingHttpHeaders } from 'node:http';
import type { CallEnded } from '../../../machines/gateway/call-shapes.ts';
import type { Exchange } from '../exchange.ts';
import { type UpstreamAnswer, UpstreamFault } from '../fast-path/upstream-request.ts';
import { endedByIsolation, keyEnded } from '../mcp/answers.ts';
import { challengesIn, written } from '../mcp/challenge.ts';
import { INTERNAL_ERROR, rpcError, UNAUTHORIZED } from '../mcp/json-rpc.ts';
import type { Message } from '../mcp/message.ts';
import { LONGEST_SESSION } from '../session/sealed-sessions.ts';
import type { CallOutcome } from './inspection.ts';
import { allowOf, headerOf, isEvents } from './request.ts';
import type { UpstreamCall } from './upstream-call.ts';

/** The reason with which a call is aborted whose key no longer admits it. */
export const KEY_ENDED: unique symbol = Symbol('the key no longer admits this call');

/** The reason with which a call is aborted when this host is cut off from the others, and would not hear that its key has ended. */
export const HOST_ISOLATED: unique symbol = Symbol('this host is cut off from the others');

/** Codes of undici's own time limits. */
const LATE = /^UND_ERR_(?:HEADERS|CONNECT)_TIMEOUT$/;

/** Whether an upstream was given up because it took too long: for its connection, its answer, or the whole request. */
export function isLate(error: unknown): boolean {
  const { name = '', code = '', cause } = (error ?? {}) as { name?: string; code?: unknown; cause?: unknown };
  if (name === 'TimeoutError' || LATE.test(String(code))) return true;
  return error instanceof UpstreamFault && cause !== undefined && isLate(cause);
}

/** Codes of errors by which Node and undici refuse what we ask of them. */
const MISUSE = /^(?:UND_ERR_(?:INVALID|NOT_SUPPORTED)|ERR_(?:INVALID|HTTP|METHOD|MISSING|ASSERTION))/;
/** Names of errors that come without a code. */
const FOREIGN = /^(?:HTTPParserError|TimeoutError|AbortError)$/;

/**
 * Whether an error is our own: an upstream must not be blamed for a fault of the gateway. Whatever the
 * connection makes has a code, by which it is known.
 */
export function isOwnFault(error: unknown): boolean {
  if (error instanceof UpstreamFault) return false;
  const { name = '', code } = (error ?? {}) as { name?: string; code?: unknown };
  if (FOREIGN.test(name)) return false;
  return typeof code !== 'string' || MISUSE.test(code);
}

/**
 * Says in the protocol's words what an upstream did wrong, never in the upstream's own: they could hold a credential.
 */
export function refuse(
  { exchange, route, message }: UpstreamCall,
  status: number,
  what: string,
  outcome: CallEnded['outcome'],
  headers: Readonly<Record<string, string>> = {},
): CallOutcome {
  const error = rpcError(
    status,
    message?.id ?? null,
    INTERNAL_ERROR,
    `The upstream of ${route.name} ${what}.`,
  );
  exchange.send({ ...error, headers });
  return { outcome };
}

/** What of an upstream's answer can't be passed on as it is. @returns what to answer instead */
export function problemOf(
  call: UpstreamCall,
  { statusCode: status, headers }: UpstreamAnswer,
): (() => CallOutcome) | undefined {
  const { route, message, exchange } = call;
  const type = headerOf(headers, 'content-type') ?? '';
  const failed = (what: string, as = 502) => {
    const retryAfter = headerOf(headers, 'retry-after');
    const allow = status === 405 ? allowOf(headers) : undefined;
    const passedOn = { ...(retryAfter && { 'retry-after': retryAfter }), ...(allow && { allow }) };
    return () => refuse(call, as, what, 'http_error', passedOn);
  };
  if (status === 401 || status === 403) {
    if (route.entry.disposition === 'relay') return () => relayed(call, status, headers);
    // The token is the caller's right, which may be too small; that it is no token at all is the gateway's affair.
    if (status === 403 && route.entry.disposition === 'token_exchange')
      return failed('refuses what this caller asks for (403)', 403);
    return failed(`refuses the credential of the gateway (${status})`);
  }
  if (status >= 300 && status < 400) return failed('answers with a redirect');
  const coding = headerOf(headers, 'content-encoding') ?? 'identity';
  if (coding.toLowerCase() !== 'identity') return failed('answers in an encoding that nobody asked for');
  const readable = isEvents(type) || /^application\/json\s*(?:;|$)/i.test(type);
  if (status >= 400) {
    return readable ? undefined : failed(`answers with status ${status}`, status >= 500 ? 502 : status);
  }
  if (message?.method === 'initialize' && longSession(headers))
    return failed('names a session too long to keep');
  if (message?.kind === 'request') {
    // A stream may be closed before its first event: its client comes back for the answer.
    const isShort = headers['content-length'] === '0' && !isEvents(type);
    const empty = status === 202 || status === 204 || isShort;
    if (empty) return failed('answers a request without a body');
    if (!readable) return failed('answers with something that is neither JSON nor an event stream');
  }
  if (exchange.method === 'GET' && !isEvents(type)) return failed('answers a stream with something else');
  return undefined;
}

const longSession = (headers: IncomingHttpHeaders): boolean =>
  (headerOf(headers, 'mcp-session-id')?.length ?? 0) > LONGEST_SESSION;

/** Parameters of a challenge that a client acts on. */
const PASSED = ['error', 'error_description', 'scope'];

/** An error code of RFC 6750 or of a server's own. */
const ERROR = /^[a-z]{1,20}(?:_[a-z]{1,20}){0,3}$/;

/** An identity that the upstream refuses: its status and challenge, pointing at our own document (G8, G26). */
function relayed(call: UpstreamCall, status: number, upstream: IncomingHttpHeaders): CallOutcome {
  const { exchange, route, message, metadataUrl } = call;
  const { entry } = route;
  const given = challengesIn(upstream['www-authenticate'])[0]?.parameters;
  const passed = PASSED.flatMap((name) => {
    const value = given?.get(name);
    return value === undefined ? [] : [written(name, value)];
  });
  const challenge = `Bearer ${[...passed, `resource_metadata="${metadataUrl}"`].join(', ')}`;
  const error = given?.get('error');
  const text = `Unauthorized: ${route.name} refuses the identity token${error === undefined ? '' : ` (${error})`}`;
  const asRpc =
    entry.disposition === 'relay' && entry.relayErrors === 'jsonrpc' && message?.kind === 'request';
  exchange.send({
    ...rpcError(asRpc ? 200 : status, message?.id ?? null, UNAUTHORIZED, text),
    ...(!asRpc && { headers: { 'www-authenticate': challenge } }),
  });
  // Into the log goes what can be nothing but such a word.
  const refusal = error !== undefined && ERROR.test(error) ? error : undefined;
  return { outcome: 'http_error', ...(refusal !== undefined && { refusal }) };
}

/** An identity that the authorization server refuses to exchange: its client logs in again. @param code of OAuth */
export function refuseCaller(call: UpstreamCall, code: string): CallOutcome {
  const { exchange, route, message, metadataUrl } = call;
  const challenge = `Bearer ${written('error', 'invalid_token')}, resource_metadata="${metadataUrl}"`;
  const text = `Unauthorized: the authorization server of ${route.name} refuses the identity token (${code})`;
  exchange.send({
    ...rpcError(401, message?.id ?? null, UNAUTHORIZED, text),
    headers: { 'www-authenticate': challenge },
  });
  return { outcome: 'unreachable', refusal: code };
}

/**
 * Bytes of an answer up to which a client is believed to have read it: the kernel does not say what it holds, and what a
 * client has not read when its key ends it must not get later.
 */
const SURELY_READ = 64 * 1024;

/**
 * Ends a call whose client has left, whose key was ended or may have been, or that a stop cuts short.
 *
 * @param asEvents a stream may end at any event; anything else would look whole. For a client that has stopped reading it is
 * cut, for it would not see the end
 */
export function stopped(exchange: Exchange, { reason }: AbortSignal, asEvents: boolean): CallOutcome {
  if (exchange.hasLeft) return { outcome: 'cancelled' };
  const mayRead = reason !== KEY_ENDED && reason !== HOST_ISOLATED;
  if (!exchange.begun && reason === KEY_ENDED) exchange.send(keyEnded);
  else if (!exchange.begun && reason === HOST_ISOLATED) exchange.send(endedByIsolation);
  else if (!exchange.begun) exchange.send({ status: 503, body: { detail: 'The gateway is stopping.' } });
  else if (!mayRead && (exchange.isBehind || exchange.bytes > SURELY_READ)) exchange.reset();
  else if (asEvents && !exchange.isBehind) exchange.end();
  else exchange.cut();
  return { outcome: 'cut' };
}

const ID = 'holdfast';
const PING: Message = {
  kind: 'request',
  method: 'ping',
  id: ID,
  name: undefined,
  revision: undefined,
  body: { jsonrpc: '2.0', id: ID, method: 'ping' },
};

/**
 * Whether an upstream has forgotten a session. 404 says so by itself; some servers answer 400 to that as to much else,
 * and a ping in the same session that fares no better tells.
 *
 * @param status of its answer to a request in that session
 * @param ping sends a message in that session
 */
export async function hasForgotten(
  status: number,
  ping: (message: Message) => Promise<UpstreamAnswer>,
): Promise<boolean> {
  if (status !== 400) return status === 404;
  try {
    const pong = await ping(PING);
    void pong.body.dump();
    return pong.statusCode === 400 || pong.statusCode === 404;
  } catch {
    return false;
  }
}
