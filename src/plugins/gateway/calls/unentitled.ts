import { version } from '../../../core/kernel/version.ts';
import {
  type Answer,
  COMPLETE,
  METHOD_NOT_FOUND,
  result,
  rpcError,
  SERVER_INFO_META,
} from '../mcp/answers.ts';
import type { Message, RequestId } from '../mcp/message.ts';
import { eraOf, isKnown, isStateless, NEWEST_SESSIONED, REVISIONS } from '../mcp/protocol.ts';
import type { PassParts } from '../upstream/answer.ts';

type Unentitled = Pick<PassParts, 'exchange' | 'message' | 'seal'> & {
  readonly route: { readonly name: string };
};

/**
 * What a caller sees who may not use a route: it connects, gets a session and an empty tool list (G5), and its upstream
 * never hears of it (G6).
 */
export function unentitled({ exchange, message, route, seal }: Unentitled): Answer {
  if (exchange.method === 'GET') return { status: 405, headers: { allow: 'POST, DELETE' } };
  if (exchange.method === 'DELETE') return { status: 200 };
  if (message?.kind !== 'request') return { status: 202 };
  const id = message.id ?? null;
  const serverInfo = { name: route.name, version };
  if (eraOf(exchange.headers, message) === 'stateless') return stateless(message, id, serverInfo);
  switch (message.method) {
    case 'initialize': {
      const { protocolVersion } = (message.body.params ?? {}) as { protocolVersion?: unknown };
      const asked = String(protocolVersion);
      const agreed = isKnown(asked) && !isStateless(asked) ? asked : NEWEST_SESSIONED;
      const headers = { 'mcp-session-id': seal({ upstream: {}, version: agreed }) };
      return result(id, { protocolVersion: agreed, capabilities: { tools: {} }, serverInfo }, headers);
    }
    case 'ping':
      return result(id, {});
    case 'tools/list':
      return result(id, { tools: [] });
    default:
      return rpcError(200, id, METHOD_NOT_FOUND, `Method not found: ${message.method}`);
  }
}

/** The same without a session: each result says all that a client needs to know of it. */
function stateless({ method }: Message, id: RequestId | null, serverInfo: object): Answer {
  const common = { ...COMPLETE, ttlMs: 0, cacheScope: 'private', _meta: { [SERVER_INFO_META]: serverInfo } };
  switch (method) {
    case 'server/discover':
      return result(id, { ...common, supportedVersions: REVISIONS, capabilities: { tools: {} } });
    case 'tools/list':
      return result(id, { ...common, tools: [] });
    default:
      return rpcError(404, id, METHOD_NOT_FOUND, `Method not found: ${method}`);
  }
}
