import type { Unhandled } from '../../../core/http/index.ts';
import { isObject } from '../../../core/json.ts';
import { identify } from '../keys/caller.ts';
import type { Message } from '../mcp/index.ts';
import type { Exchange } from './exchange.ts';
import type { GatewayParts } from './parts.ts';

/** Where no server is: a path that a caller made up is told to nobody. */
export const NOWHERE = '/(none)/mcp';
const ENDPOINT = /^\/(?:([^/]+)\/mcp|mcp\/(?:sse)?)$/;

/**
 * Begins the one server span of a call and ends it with the exchange (O24). What goes up from here on hangs below it.
 *
 * @param path without a query
 * @param key id of the caller's key
 */
export function traceCall(
  parts: GatewayParts,
  exchange: Exchange,
  path: string,
  key?: string,
  message?: Message,
): void {
  const params = message?.body.params;
  const meta = isObject(params) && isObject(params._meta) ? params._meta : {};
  const given = 'traceparent' in meta ? meta : exchange.headers;
  const span = parts.telemetry.begin(given, exchange.ms);
  Object.assign(exchange.headers, span.headers);
  const whose = whoseCall(parts, path, key);
  exchange.onClose(() => {
    span.end({ ...whose, status: exchange.status, ...exchange.facts });
  });
}

/**
 * The span of a call that ended before its handler: too large, too slow, from a foreign page, by another method. Its
 * head was read, so it is a call; what never became a request is a counter of the surface.
 */
export function traceUnhandled(parts: GatewayParts, { raw, status, ms }: Unhandled): void {
  const { telemetry, keys, masterId, table } = parts;
  const path = decoded((raw.url ?? '').split('?', 1)[0] ?? '');
  const [endpoint, server] = ENDPOINT.exec(path) ?? [];
  if (endpoint === undefined) return;
  const caller = identify(raw.headers, keys, masterId());
  const shown = server === undefined || table().routes.has(server) ? path : NOWHERE;
  const whose = whoseCall(parts, shown, 'rule' in caller ? undefined : caller.id);
  telemetry
    .begin(raw.headers, ms)
    .end({ ...whose, status, outcome: status === undefined ? 'gone' : 'answered' });
}

function whoseCall({ keys }: GatewayParts, path: string, key: string | undefined) {
  const { alias, owner } = (key === undefined ? undefined : keys.get(key)?.context.terms) ?? {};
  return { path, server: /^\/([^/]+)\/mcp/.exec(path)?.[1] ?? '', alias, owner };
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
