import { encode, type Message } from '../mcp/message.ts';
import { upstreamName } from '../mcp/tool-names.ts';
import type { Route } from '../routes/table.ts';
import type { UpstreamRequest } from './client.ts';
import { upHeaders } from './headers.ts';

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
  // An overwrite route's own credential; a credential-free one has none.
  const authorization = entry.disposition === 'relay' ? given.authorization : route.authorization();
  if (typeof authorization === 'string') headers.authorization = authorization;
  if (!message) return { url, method, headers, signal, timeoutMs };
  headers['content-type'] = 'application/json';
  const tool = message.method === 'tools/call' ? upstreamName(route, message.name ?? '') : undefined;
  const subject = tool ?? given['mcp-name'];
  if (given['mcp-name'] !== undefined && typeof subject === 'string') headers['mcp-name'] = subject;
  return { url, method, headers, body: encode(message, tool), signal, timeoutMs };
}
