import type { ForwardParams } from '../../../machines/gateway/call-shapes.ts';
import {
  type AnswerBody,
  Stalled,
  type UpstreamAnswer,
  UpstreamFault,
} from '../fast-path/upstream-request.ts';
import { type Message, parseExact } from '../mcp/message.ts';
import { sessionUnknown } from '../mcp/protocol.ts';
import type { Session } from '../session/sealed-sessions.ts';
import { steadyWhole } from './body.ts';
import { factsOf } from './client-facts.ts';
import { type EventChanges, eventRewriter, rewriteMessage } from './events.ts';
import { isLate, isOwnFault, problemOf, refuse, stopped } from './failures.ts';
import {
  type CallOutcome,
  CredentialRepeated,
  credentialWatch,
  EventInspector,
  JsonInspector,
  noteTokens,
  noteTool,
  outcomeOf,
  outcomeOfBody,
  quotesCredential,
} from './inspection.ts';
import { downHeaders, headerOf, isEvents } from './request.ts';
import type { UpstreamCall } from './upstream-call.ts';

/** Errors of a connection that was there: the upstream may have done what it was asked, so it is not given back. */
const AFTER_SENDING =
  /^(?:UND_ERR_(?:SOCKET|HEADERS_OVERFLOW|RES_CONTENT_LENGTH_MISMATCH)|ECONNRESET|EPIPE|HTTPParserError)$/;
/** A tool list must be held whole to be renamed. */
const LARGEST_LIST = 8 * 1024 * 1024;

/** How an answer is passed on. */
export interface Passing {
  /** The only tools that a list may show; all when undefined. */
  readonly tools: ForwardParams['tools'] | undefined;
  /** Charged for it. */
  readonly cost: number | undefined;
  /**
   * Whether an answer with status 400 to a request in a session means that the upstream knows the session no more; 404
   * says so itself.
   */
  readonly hasForgotten?: () => Promise<boolean> | false;
}

/**
 * Asks the upstream and passes its answer on, unbuffered where it is a stream (G23). Whatever the upstream does wrong
 * is answered in the protocol's words. What a tool's call took and used goes to telemetry.
 *
 * @param passing how it is passed on
 * @throws what we ourselves do wrong
 */
export async function passAnswer(
  call: UpstreamCall,
  ask: () => Promise<UpstreamAnswer>,
  { tools, cost, hasForgotten }: Passing,
): Promise<CallOutcome> {
  const { exchange, signal } = call;
  let answer: UpstreamAnswer;
  try {
    answer = await ask();
    if (answer.statusCode === 400 && (await hasForgotten?.())) {
      void answer.body.dump();
      exchange.send(sessionUnknown(call.message?.id)); // the client begins another one
      return { outcome: 'http_error' };
    }
    noteTool(call, cost);
  } catch (error) {
    if (signal.aborted) return stopped(exchange, signal, false);
    const { name, code = name ?? '' } = error as { name?: string; code?: string };
    if (isLate(error)) return tooLate(call);
    if (isOwnFault(error)) throw error;
    if (error instanceof UpstreamFault) return refuse(call, 502, error.message, 'unreachable');
    if (AFTER_SENDING.test(code)) return refuse(call, 502, 'broke the connection off', 'cut');
    return refuse(call, 502, 'cannot be reached', 'unreachable');
  }
  const asEvents = isEvents(headerOf(answer.headers, 'content-type') ?? '');
  try {
    const outcome = await pass(call, answer, tools, asEvents);
    noteTokens(call, outcome);
    return outcome;
  } catch (error) {
    answer.body.destroy();
    if (signal.aborted) return stopped(exchange, signal, asEvents);
    if (isOwnFault(error) && !(error instanceof RangeError || error instanceof SyntaxError)) throw error;
    if (exchange.begun) {
      exchange.cut();
      return { outcome: 'cut' };
    }
    if (error instanceof Stalled) return tooLate(call);
    if (error instanceof CredentialRepeated) {
      return refuse(call, 502, 'repeats the credential of the gateway', 'http_error');
    }
    if (error instanceof RangeError) return refuse(call, 502, 'answers more than can be held', 'http_error');
    if (error instanceof SyntaxError) return refuse(call, 502, 'answers with what is no JSON', 'http_error');
    return refuse(call, 502, 'broke its answer off', 'cut');
  }
}

const tooLate = (call: UpstreamCall): CallOutcome =>
  refuse(call, 504, 'does not answer in time', 'timed_out');

async function pass(
  call: UpstreamCall,
  answer: UpstreamAnswer,
  tools: readonly string[] | undefined,
  asEvents: boolean,
): Promise<CallOutcome> {
  const { exchange, message, events } = call;
  const { statusCode: status, body } = answer;
  const problem = problemOf(call, answer);
  if (problem) {
    void body.dump();
    return problem();
  }
  if (status < 300 && exchange.method !== 'GET' && message?.kind !== 'request') {
    void body.dump(); // nothing answers a notification, a reply or the end of a session, whatever came with the status
    exchange.send({ status: message ? 202 : status });
    return { outcome: 'ok' };
  }
  const headers = downHeaders(answer.headers);
  const session = sessionFor(call, answer);
  if (session !== undefined) headers['mcp-session-id'] = session;
  const shown = shownTools(call, tools);
  if (asEvents) return passEvents(call, answer, headers, both(shown, events));
  const { timeoutMs } = call.route.entry;
  const length = headerOf(answer.headers, 'content-length');
  if (!shown && status < 400 && Number(length) <= WHOLE) {
    const bytes = body.isOver ? body.rest() : await steadyWhole(body, WHOLE, timeoutMs);
    return passSmall(call, status, headers, bytes);
  }
  if (status >= 400) return passError(call, status, headers, await steadyWhole(body, WHOLE, timeoutMs));
  if (shown && exchange.method === 'POST') {
    const bytes = await steadyWhole(body, LARGEST_LIST, timeoutMs);
    credentialWatch(call.route)(bytes);
    const list = shown(parseExact(bytes.toString('utf8')));
    exchange.send({ status, body: list, headers });
    return outcomeOf(list);
  }
  return passJson(
    call,
    status,
    { ...headers, ...(length !== undefined && { 'content-length': length }) },
    body,
  );
}

/** The session that an upstream opens, sealed into ours (G4, G18). */
function sessionFor(call: UpstreamCall, { statusCode, headers }: UpstreamAnswer): string | undefined {
  const { message, route } = call;
  if (message?.method !== 'initialize' || statusCode !== 200) return undefined;
  const upstream = headerOf(headers, 'mcp-session-id');
  const { protocolVersion } = (message.body.params ?? {}) as { protocolVersion?: unknown };
  const session = {
    upstream: upstream === undefined ? {} : { [route.name]: upstream },
    version: String(protocolVersion).slice(0, 32),
    ...(route.entry.reinitialise && { client: clientOf(message) }),
  };
  return call.seal(session);
}

function clientOf(message: Message): NonNullable<Session['client']> {
  const { capabilities, clientInfo } = factsOf(message);
  return { capabilities: { ...capabilities }, clientInfo: { ...clientInfo } };
}

/** A tool list comes as the answer to its request, or on a stream that a client resumes. */
function shownTools(
  { exchange, message, route, result }: UpstreamCall,
  allowed: readonly string[] | undefined,
): EventChanges['change'] | undefined {
  if (exchange.method === 'GET' || message?.method === 'tools/list') {
    return (one) => rewriteMessage(one, (list) => route.tools.show(list, allowed));
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

/** Answers up to here are sent in one piece, bytes. */
const WHOLE: number = 64 * 1024;

/** JSON of a size that is known to be small: most answers of tools, in one piece. */
function passSmall(
  call: UpstreamCall,
  status: number,
  headers: Readonly<Record<string, string>>,
  answer: Buffer,
): CallOutcome {
  const { exchange } = call;
  credentialWatch(call.route)(answer);
  if (answer.length === 0) return refuse(call, 502, 'answers a request without a body', 'http_error');
  const outcome = outcomeOfBody(answer);
  if (outcome.outcome !== 'ok' && quotesCredential(call.route, answer)) throw new CredentialRepeated();
  exchange.begin(status, { ...headers, 'content-length': String(answer.length) });
  exchange.end(answer);
  return outcome;
}

/** JSON: a small answer is held until it is whole, so that one that breaks off is an error and not half an answer. */
async function passJson(
  call: UpstreamCall,
  status: number,
  headers: Readonly<Record<string, string>>,
  body: AnswerBody,
): Promise<CallOutcome> {
  const { exchange } = call;
  const inspector = new JsonInspector();
  exchange.onClose(() => inspector.free());
  const watch = credentialWatch(call.route);
  await body.each((part) => {
    watch(part);
    inspector.push(part);
    if (exchange.begun) return exchange.write(part);
    if (inspector.size <= WHOLE) return undefined;
    exchange.begin(status, headers);
    return exchange.write(inspector.bytes());
  }, call.route.entry.timeoutMs);
  if (inspector.size === 0) return refuse(call, 502, 'answers a request without a body', 'http_error');
  const outcome = inspector.outcome();
  if (exchange.begun) {
    exchange.end();
  } else {
    if (outcome.outcome !== 'ok' && quotesCredential(call.route, inspector.bytes())) {
      throw new CredentialRepeated();
    }
    exchange.begin(status, { ...headers, 'content-length': String(inspector.size) });
    exchange.end(inspector.bytes());
  }
  return outcome;
}

/** An event stream: each part goes on as it comes, and a slow client slows its upstream down. */
async function passEvents(
  { exchange, route }: UpstreamCall,
  { statusCode: status, body }: UpstreamAnswer,
  headers: Readonly<Record<string, string>>,
  changes: EventChanges | undefined,
): Promise<CallOutcome> {
  const inspector = new EventInspector();
  const rewriter = changes && eventRewriter(changes);
  const watch = credentialWatch(route);
  exchange.begin(status, { ...headers, 'x-accel-buffering': 'no' }); // for a proxy in front of us
  exchange.flush();
  for await (const chunk of body) {
    watch(chunk);
    inspector.push(chunk);
    const next = rewriter ? rewriter.feed(chunk) : chunk;
    if (next.length > 0) await exchange.write(next);
  }
  exchange.end();
  return status < 400 ? inspector.outcome() : { outcome: 'http_error' };
}

/** A JSON error passes as it is, unless the upstream repeats the gateway's own credential in it, or a piece. */
function passError(
  call: UpstreamCall,
  status: number,
  headers: Readonly<Record<string, string>>,
  bytes: Buffer,
): CallOutcome {
  const { exchange, route } = call;
  if (quotesCredential(route, bytes)) {
    return refuse(call, status >= 500 ? 502 : status, `answers with status ${status}`, 'http_error');
  }
  exchange.begin(status, { ...headers, 'content-length': String(bytes.length) });
  exchange.end(bytes);
  const { code } = errorCode(bytes);
  return { outcome: 'http_error', ...(code !== undefined && { code }) };
}

function errorCode(bytes: Buffer): Partial<CallOutcome> {
  try {
    return outcomeOf(JSON.parse(bytes.toString('utf8')));
  } catch {
    return {};
  }
}
