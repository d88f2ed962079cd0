import { isObject } from '../../../core/json.ts';
import type { Message } from '../mcp/index.ts';
import type { Exchange } from './exchange.ts';
import type { GatewayParts } from './parts.ts';

/**
 * Begins the one server span of a call and ends it with the exchange (O24). What goes up from here on hangs below it.
 *
 * @param path without a query
 * @param key id of the caller's key
 */
export function traceCall(
  { telemetry, keys }: GatewayParts,
  exchange: Exchange,
  path: string,
  key?: string,
  message?: Message,
): void {
  const params = message?.body.params;
  const meta = isObject(params) && isObject(params._meta) ? params._meta : {};
  const given = 'traceparent' in meta ? meta : exchange.headers;
  const span = telemetry.begin(given, exchange.ms);
  Object.assign(exchange.headers, span.headers);
  const { alias, owner } = (key === undefined ? undefined : keys.get(key)?.context.terms) ?? {};
  const server = /^\/([^/]+)\/mcp/.exec(path)?.[1] ?? '';
  exchange.onClose(() => {
    span.end({ path, server, alias, owner, status: exchange.status, ...exchange.facts });
  });
}
