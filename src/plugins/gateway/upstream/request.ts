import { eraOf } from '../mcp/checks.ts';
import { encode, type Message } from '../mcp/message.ts';
import { upstreamName } from '../mcp/tool-names.ts';
import type { Route } from '../routes/route.ts';
import type { UpstreamRequest } from './client.ts';
import { ownHeaders, upHeaders } from './headers.ts';

/** A client's request, as one upstream is to get it. */
export interface ForUpstream extends Pick<UpstreamRequest, 'method' | 'signal'> {
  /** The client's: what passes is taken from them. */
  readonly headers: NodeJS.Dict<string | string[]>;
  /** Of a POST. */
  readonly message: Message | undefined;
  /** The upstream's own session. */
  readonly session: string | undefined;
}

/** The request to one route: its own credential or the caller's, its own session, its own names. */
export function requestTo(
  route: Route,
  { method, headers: given, message, session, signal }: ForUpstream,
): UpstreamRequest {
  const { url, entry } = route;
  if (!url) throw new RangeError(`${route.name} has no URL`);
  const { timeoutMs } = entry;
  const headers = upHeaders(given);
  if (session !== undefined) headers['mcp-session-id'] = session;
  const tool = message?.method === 'tools/call' ? upstreamName(route, message.name ?? '') : undefined;
  Object.assign(headers, ownHeaders(eraOf(given, message), message, tool));
  const { authorization } = given;
  Object.assign(headers, route.credential(typeof authorization === 'string' ? authorization : undefined));
  return { url, method, headers, ...(message && { body: encode(message, tool) }), signal, timeoutMs };
}
