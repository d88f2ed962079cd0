import type { Unhandled } from '../../../core/host/http/requests.ts';
import { type Caller, inspectCaller, type RejectedCaller } from '../keys/caller.ts';
import { IN_AUTHORIZATION } from '../keys/misplaced-keys.ts';
import type { ServedRoutes } from '../routes/route.ts';
import { type SpanServices, spanAttributes } from '../telemetry/call-telemetry.ts';
import { NOWHERE } from './call.ts';
import type { RejectionLimiter } from './rejection-limiter.ts';

interface UnhandledServices extends SpanServices {
  readonly routes: ServedRoutes;
  readonly rejections: RejectionLimiter;
}

/** Rules that are reported by themselves. */
const REPORTED: ReadonlySet<string> = new Set(['master_key_presented', 'key_only_in_authorization']);
const ENDPOINT = /^\/(?:([^/]+)\/mcp|mcp\/(?:sse)?)$/;

/**
 * A call that ended before its handler: too large, too slow, from a foreign page, by another method. Its head was read,
 * so it is a call with one span, and what it brings is searched for keys like any other's; what never became a request
 * is a counter of the surface.
 */
export function endUnhandled(gateway: UnhandledServices, request: Unhandled): void {
  const { telemetry, keys, routes } = gateway;
  const { raw, correlation, status, ms } = request;
  const path = decoded((raw.url ?? '').split('?', 1)[0] ?? '');
  const [endpoint, server] = ENDPOINT.exec(path) ?? [];
  if (endpoint === undefined) return;
  const shown = server === undefined || routes.table.routes.has(server) ? path : NOWHERE;
  const caller = inspectCaller(raw, keys);
  const attributes = spanAttributes(gateway, shown, 'rule' in caller ? undefined : caller.id);
  const span = telemetry.begin(raw.headers, ms);
  span.end({ ...attributes, status, outcome: status === undefined ? 'gone' : 'answered' });
  const found = toReport(caller);
  if (!found) return;
  const source = raw.socket.remoteAddress ?? '';
  // It is answered already; what can't be recorded is in the log of the process.
  gateway.rejections.reject({ ...found, source, path: shown }, correlation, status).catch(() => undefined);
}

/** What is reported of it (G9, G25), although the request was refused for something else. */
function toReport(caller: Caller): RejectedCaller | undefined {
  if ('rule' in caller) return REPORTED.has(caller.rule) || caller.misplaced ? caller : undefined;
  const { authorization = 'bearer', misplaced } = caller;
  if (authorization !== 'bearer') {
    return { rule: 'not_read', misplaced: { key: authorization, where: IN_AUTHORIZATION } };
  }
  return misplaced && { rule: 'not_read', misplaced };
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
