import { KEY_ENDED } from '../calls/open-calls.ts';
import type { RouteCallParts } from '../calls/route-call-parts.ts';
import { keyEnded } from '../mcp/answers.ts';
import { sessionUnknown } from '../mcp/checks.ts';
import { parseExact } from '../mcp/message.ts';
import { showTools } from '../mcp/tool-names.ts';
import { drop, Stalled, small, steady, whole } from './body.ts';
import type { UpstreamAnswer } from './client.ts';
import { CredentialRepeated, credentialWatch } from './credential.ts';
import { SessionForgotten } from './forgotten.ts';
import { downHeaders, headerOf, isEvents } from './headers.ts';
import { listener, type Told, toldBy } from './outcome.ts';
import { problemOf, refuse } from './refusals.ts';
import { type EventChanges, eventRewriter, rewriteMessage } from './rewrite.ts';

/** Answers up to here are sent in one piece. */
const WHOLE = 64 * 1024;
/** Errors of a connection that was there: the upstream may have done what it was asked, so it is not given back. */
const AFTER_SENDING = /^(?:UND_ERR_SOCKET|UND_ERR_HEADERS_OVERFLOW|ECONNRESET|EPIPE|HTTPParserError)$/;
/** A tool list must be held whole to be renamed. */
const LARGEST_LIST = 8 * 1024 * 1024;

/**
 * Asks the upstream and passes its answer on, unbuffered where it is a stream (G23). Whatever the upstream does wrong
 * is answered in the protocol's words.
 *
 * @param tools the only ones that may appear in a list
 * @param stop aborted when nobody waits for the answer any more
 */
export async function passAnswer(
  parts: RouteCallParts,
  asked: () => Promise<UpstreamAnswer>,
  tools: readonly string[] | undefined,
  stop: AbortSignal,
): Promise<Told> {
  const { exchange } = parts;
  let answer: UpstreamAnswer;
  try {
    answer = await asked();
  } catch (error) {
    if (stop.aborted) return stopped(parts, stop, false);
    if (error instanceof SessionForgotten) {
      exchange.send(sessionUnknown(parts.message?.id)); // the client begins another one
      return { outcome: 'http_error' };
    }
    const { name, code = name ?? '' } = error as { name?: string; code?: string };
    if (code === 'UND_ERR_HEADERS_TIMEOUT') return tooLate(parts);
    if (AFTER_SENDING.test(code)) return refuse(parts, 502, 'broke the connection off', 'cut');
    return refuse(parts, 502, 'cannot be reached', 'unreachable');
  }
  const asEvents = isEvents(headerOf(answer.headers, 'content-type') ?? '');
  try {
    return await pass(parts, answer, tools, asEvents);
  } catch (error) {
    answer.body.on('error', () => undefined).destroy();
    if (stop.aborted) return stopped(parts, stop, asEvents);
    if (exchange.begun) {
      exchange.cut();
      return { outcome: 'cut' };
    }
    if (error instanceof Stalled) return tooLate(parts);
    if (error instanceof CredentialRepeated) {
      return refuse(parts, 502, 'repeats the credential of the gateway', 'http_error');
    }
    if (error instanceof RangeError) return refuse(parts, 502, 'answers more than can be held', 'http_error');
    if (error instanceof SyntaxError) return refuse(parts, 502, 'answers with what is no JSON', 'http_error');
    return refuse(parts, 502, 'broke its answer off', 'cut');
  }
}

const tooLate = (parts: RouteCallParts): Told => refuse(parts, 504, 'does not answer in time', 'timed_out');

async function pass(
  parts: RouteCallParts,
  answer: UpstreamAnswer,
  tools: readonly string[] | undefined,
  asEvents: boolean,
): Promise<Told> {
  const { exchange, message, events } = parts;
  const { statusCode: status, body } = answer;
  const problem = problemOf(parts, answer);
  if (problem) {
    drop(body);
    return problem();
  }
  if (status < 300 && exchange.method !== 'GET' && message?.kind !== 'request') {
    drop(body); // nothing answers a notification, a reply or the end of a session, whatever came with the status
    exchange.send({ status: message ? 202 : status });
    return { outcome: 'ok' };
  }
  const headers = { ...downHeaders(answer.headers), ...sessionHeader(parts, answer) };
  const shown = shownTools(parts, tools);
  if (asEvents) return stream(parts, answer, headers, both(shown, events));
  const { timeoutMs } = parts.route.entry;
  if (!shown && status < 400 && Number(headerOf(answer.headers, 'content-length')) <= WHOLE) {
    return passSmall(parts, status, headers, await small(body, timeoutMs));
  }
  const chunks = steady(body, timeoutMs);
  if (status >= 400) return passError(parts, status, headers, await whole(chunks, WHOLE));
  if (shown && exchange.method === 'POST') {
    const bytes = await whole(chunks, LARGEST_LIST);
    credentialWatch(parts.route)(bytes);
    const list = shown(parseExact(bytes.toString('utf8')));
    exchange.send({ status, body: list, headers });
    return toldBy(list);
  }
  return passJson(parts, status, headers, chunks);
}

/** JSON of a size that is known to be small: most answers of tools, in one piece. */
function passSmall(
  parts: RouteCallParts,
  status: number,
  headers: Readonly<Record<string, string>>,
  answer: Buffer,
): Told {
  const { exchange } = parts;
  credentialWatch(parts.route)(answer);
  if (answer.length === 0) return refuse(parts, 502, 'answers a request without a body', 'http_error');
  const heard = listener(false);
  heard.push(answer);
  exchange.begin(status, { ...headers, 'content-length': String(answer.length) });
  exchange.end(answer);
  return heard.end();
}

/** JSON: a small answer is held until it is whole, so that one that breaks off is an error and not half an answer. */
async function passJson(
  parts: RouteCallParts,
  status: number,
  headers: Readonly<Record<string, string>>,
  chunks: AsyncIterable<Buffer>,
): Promise<Told> {
  const { exchange } = parts;
  const heard = listener(false);
  const watch = credentialWatch(parts.route);
  const held: Buffer[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    watch(chunk);
    heard.push(chunk);
    size += chunk.length;
    if (exchange.begun) {
      await exchange.write(chunk);
      continue;
    }
    held.push(chunk);
    if (size > WHOLE) {
      exchange.begin(status, headers);
      await exchange.write(Buffer.concat(held));
    }
  }
  if (size === 0) return refuse(parts, 502, 'answers a request without a body', 'http_error');
  if (exchange.begun) {
    exchange.end();
  } else {
    exchange.begin(status, { ...headers, 'content-length': String(size) });
    exchange.end(held.length === 1 ? held[0] : Buffer.concat(held));
  }
  return heard.end();
}

/** An event stream: each part goes on as it comes, and a slow client slows its upstream down. */
async function stream(
  { exchange, route }: RouteCallParts,
  { statusCode: status, body }: UpstreamAnswer,
  headers: Readonly<Record<string, string>>,
  changes: EventChanges | undefined,
): Promise<Told> {
  const heard = listener(true);
  const rewriter = changes && eventRewriter(changes);
  const watch = credentialWatch(route);
  exchange.begin(status, { ...headers, 'x-accel-buffering': 'no' }); // for a proxy in front of us
  exchange.flush();
  for await (const chunk of body as AsyncIterable<Buffer>) {
    watch(chunk);
    heard.push(chunk);
    const next = rewriter ? rewriter.feed(chunk) : chunk;
    if (next.length > 0) await exchange.write(next);
  }
  exchange.end();
  return status < 400 ? heard.end() : { outcome: 'http_error' };
}

/** A JSON error passes as it is, unless the upstream repeats the gateway's own credential in it. */
function passError(
  parts: RouteCallParts,
  status: number,
  headers: Readonly<Record<string, string>>,
  bytes: Buffer,
): Told {
  const { exchange, route } = parts;
  const own = Object.values(route.credential(undefined)).map((value) => value.replace(/^Bearer /, ''));
  if (own.some((secret) => secret !== '' && bytes.includes(secret))) {
    return refuse(parts, status >= 500 ? 502 : status, `answers with status ${status}`, 'http_error');
  }
  exchange.begin(status, { ...headers, 'content-length': String(bytes.length) });
  exchange.end(bytes);
  const { code } = errorCode(bytes);
  return { outcome: 'http_error', ...(code !== undefined && { code }) };
}

function errorCode(bytes: Buffer): Partial<Told> {
  try {
    return toldBy(JSON.parse(bytes.toString('utf8')));
  } catch {
    return {};
  }
}

/** The session that an upstream opens, sealed into ours (G4, G18). */
function sessionHeader(
  { message, route, seal }: RouteCallParts,
  { statusCode, headers }: UpstreamAnswer,
): Record<string, string> {
  if (message?.method !== 'initialize' || statusCode !== 200) return {};
  const upstream = headerOf(headers, 'mcp-session-id');
  const { protocolVersion } = (message.body.params ?? {}) as { protocolVersion?: unknown };
  const session = {
    upstream: upstream === undefined ? {} : { [route.name]: upstream },
    version: String(protocolVersion).slice(0, 32),
  };
  return { 'mcp-session-id': seal(session) };
}

/** A tool list comes as the answer to its request, or on a stream that a client resumes. */
function shownTools(
  { exchange, message, route, result }: RouteCallParts,
  allowed: readonly string[] | undefined,
): EventChanges['change'] | undefined {
  if (exchange.method === 'GET' || message?.method === 'tools/list') {
    return (one) => rewriteMessage(one, (list) => showTools(list, { route, allowed }));
  }
  return result && ((one) => rewriteMessage(one, result));
}

function both(
  first: EventChanges['change'] | undefined,
  events: EventChanges | undefined,
): EventChanges | undefined {
  if (!first || !events) return first ? { change: first } : events;
  return { ...events, change: (one) => events.change(first(one)) };
}

/**
 * Ends a call whose client has left, whose key was ended, or that a stop cuts short.
 *
 * @param asEvents a stream may end at any event; anything else would look whole
 */
export function stopped(
  { exchange }: Pick<RouteCallParts, 'exchange'>,
  { reason }: AbortSignal,
  asEvents: boolean,
): Told {
  if (exchange.gone.aborted) return { outcome: 'cancelled' };
  if (!exchange.begun && reason === KEY_ENDED) exchange.send(keyEnded);
  else if (!exchange.begun) exchange.send({ status: 503, body: { detail: 'The gateway is stopping.' } });
  else if (asEvents) exchange.end();
  else exchange.cut();
  return { outcome: 'cut' };
}
