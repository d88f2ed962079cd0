import { isObject } from '../../../core/kernel/json.ts';
import type { Exchange } from '../exchange.ts';
import type { Message } from '../mcp/message.ts';
import type { GatewayParts } from './parts.ts';

/** Where no server is: a path that a caller made up is told to nobody. */
export const NOWHERE = '/(none)/mcp';

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
  // All of it anew: the state of one trace says nothing under the parent of another.
  if (exchange.headers.traceparent !== undefined) delete exchange.headers.traceparent;
  if (exchange.headers.tracestate !== undefined) delete exchange.headers.tracestate;
  Object.assign(exchange.headers, span.headers);
  const whose = whoseCall(parts, path, key);
  exchange.onClose(() => {
    const { path: at, server, alias, owner } = whose;
    const { outcome, tool } = exchange.facts;
    span.end({ path: at, server, alias, owner, status: exchange.status, outcome, tool });
  });
}

/** What a span says of a call, but for how it ended. @param key id of the caller's key */
export function whoseCall({ keys }: GatewayParts, path: string, key: string | undefined) {
  const { alias, owner } = (key === undefined ? undefined : keys.get(key)?.context.terms) ?? {};
  return { path, server: /^\/([^/]+)\/mcp/.exec(path)?.[1] ?? '', alias, owner };
}
