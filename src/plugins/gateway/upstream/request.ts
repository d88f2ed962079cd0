import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import {
  ask,
  type UpstreamAnswer,
  UpstreamFault,
  type UpstreamRequest,
} from '../fast-path/upstream-request.ts';
import type { IssuedCredential } from '../issued/issued-tokens.ts';
import { withoutToken } from '../issued/token-fault.ts';
import { encode, type Message, NONE } from '../mcp/message.ts';
import { CALLING_KEY, type Era, encodeHeaderValue, eraOf, subjectOf } from '../mcp/protocol.ts';
import type { Route } from '../routes/route.ts';

/** A client's request, as one upstream is to get it. */
export interface ForUpstream extends Pick<UpstreamRequest, 'method' | 'signal'> {
  /** The client's: what passes is taken from them. */
  readonly headers: NodeJS.Dict<string | string[]>;
  /** The JSON-RPC message; undefined unless the request is a POST. */
  readonly message: Message | undefined;
  /** The upstream's own session. */
  readonly session: string | undefined;
  /** Id of the virtual key. */
  readonly key: string;
}

/** The request to one route: its own credential or the caller's, its own session, its own names. */
function requestTo(
  route: Route,
  { method, headers: given, message, session, key, signal }: ForUpstream,
): UpstreamRequest {
  const { url, entry } = route;
  if (!url) throw new RangeError(`${route.name} has no URL`);
  const { timeoutMs } = entry;
  const tool = message?.method === 'tools/call' ? route.tools.upstreamTool(message.name ?? '') : undefined;
  const headers = upHeaders(given, tool === undefined || tool.fixed === NONE);
  if (session !== undefined) headers['mcp-session-id'] = session;
  Object.assign(headers, ownHeaders(eraOf(given, message), message, tool?.name));
  if (route.isLocal) headers[CALLING_KEY] = key;
  const { authorization } = given;
  Object.assign(headers, route.credential(typeof authorization === 'string' ? authorization : undefined));
  return { url, method, headers, ...(message && { body: encode(message, tool) }), signal, timeoutMs };
}

/**
 * Sends a request to the upstream of a route, with a token that lives where an authorization server issues it.
 *
 * @returns the answer when its headers are there
 * @throws UpstreamFault there is no token; what the connection throws
 */
export function askRoute(agent: Dispatcher, route: Route, sent: ForUpstream): Promise<UpstreamAnswer> {
  const { issued } = route;
  return issued ? askWithToken(agent, route, issued, sent) : ask(agent, requestTo(route, sent));
}

/** What answers 401 has not processed the request, so that it may be sent once more with another token. */
async function askWithToken(
  agent: Dispatcher,
  route: Route,
  issued: IssuedCredential,
  sent: ForUpstream,
): Promise<UpstreamAnswer> {
  const fault = await issued.prepare(sent.signal);
  if (fault) throw new UpstreamFault(`is ${withoutToken(fault)}`);
  const { value } = issued;
  const answer = await ask(agent, requestTo(route, sent));
  if (answer.statusCode !== 401 || value === undefined) return answer;
  if (!(await issued.replace(value, sent.signal))) return answer;
  void answer.body.dump();
  return ask(agent, requestTo(route, sent));
}

/**
 * The headers of a client that are forwarded. It is an allow list, so that a header that is added to the gateway later, or
 * that a proxy reads in another way, is not forwarded by mistake (G19, G25).
 */
const UP: ReadonlySet<string> = new Set([
  'last-event-id',
  'mcp-protocol-version',
  'traceparent',
  'tracestate',
  'user-agent',
]);
const DOWN = ['content-type', 'retry-after'] as const;
/** Repeats an argument of a tool. */
export const PARAM = 'mcp-param-';

/**
 * @param repeatsArguments whether those go up that repeat arguments: not beside arguments that the operator has fixed
 * @returns the headers that go up as they are
 */
function upHeaders(headers: IncomingHttpHeaders, repeatsArguments: boolean): Record<string, string> {
  const passed: Record<string, string> = {};
  for (const name in headers) {
    if (!UP.has(name) && !(repeatsArguments && name.startsWith(PARAM))) continue;
    const value = headers[name];
    if (typeof value === 'string') passed[name] = value;
  }
  return passed;
}

/** @returns the headers that come down as they are */
export function downHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const passed: Record<string, string> = {};
  for (const name of DOWN) {
    const value = headers[name];
    if (typeof value === 'string') passed[name] = value;
  }
  const allow = allowOf(headers);
  if (allow !== undefined) passed.allow = allow;
  return passed;
}

/** @returns the methods that an upstream names beside a 405, and nothing else that may stand there */
export function allowOf({ allow }: IncomingHttpHeaders): string | undefined {
  return allow !== undefined && /^[A-Z]{3,10}(?: ?, ?[A-Z]{3,10}){0,9}$/.test(allow) ? allow : undefined;
}

/**
 * What the gateway writes anew from the message that was decided on: a dual-era upstream that routes by these must see no other
 * call than the one that was admitted.
 *
 * @param message of a POST
 * @param tool the upstream's own name, for a call of one
 */
function ownHeaders(
  era: Era,
  message: Message | undefined,
  tool: string | undefined,
): Record<string, string> {
  if (!message) return { accept: 'text/event-stream' };
  // A client may accept anything; strict upstreams want both named.
  const media = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' };
  if (era === 'sessions') return media;
  const subject = tool ?? subjectOf(message);
  return {
    ...media,
    'mcp-method': message.method ?? '',
    ...(subject !== undefined && { 'mcp-name': encodeHeaderValue(subject) }),
  };
}

/** @returns a header's value, the first one where it came several times */
export function headerOf(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}

export const isEvents = (contentType: string): boolean => /^text\/event-stream\s*(?:;|$)/i.test(contentType);
