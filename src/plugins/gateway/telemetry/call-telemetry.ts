import { isObject } from '../../../core/kernel/json.ts';
import type { Exchange } from '../exchange.ts';
import { holdsKey, withoutKey } from '../keys/misplaced-keys.ts';
import type { KeyDirectory, KeyLookup } from '../keys/virtual-keys.ts';
import type { Message } from '../mcp/message.ts';
import type { CallTelemetry, ToolFacts } from './call-facts.ts';

/** W3C trace context; version ff is invalid. */
const TRACEPARENT = /^(?!ff)[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}$/;
const LONGEST_STATE = 512;
const MOST_MEMBERS = 32;
/** A member of a `tracestate`: a simple or a tenant's key, and a value without `,` and `=`. */
const MEMBER =
  /^([a-z][\w*/-]{0,255}|[a-z\d][\w*/-]{0,240}@[a-z][\w*/-]{0,13})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;
/** A virtual key, whoever made it. */
const LOOKS_LIKE_KEY = /(?<![a-z\d])sk-[\w-]{6}/i;

/** @returns whether a text is a `tracestate` by W3C Trace Context, 3.3.1, and holds nothing that looks like a key */
function isTraceState(text: unknown): text is string {
  if (typeof text !== 'string' || text.length > LONGEST_STATE || LOOKS_LIKE_KEY.test(text)) return false;
  const names = new Set<string>();
  for (const part of text.split(',')) {
    const member = part.replace(/^[ \t]+|[ \t]+$/g, '');
    if (member === '') continue; // empty members are allowed
    const [, name] = MEMBER.exec(member) ?? [];
    if (name === undefined || /[A-Z]/.test(name) || names.has(name)) return false;
    names.add(name);
  }
  return names.size > 0 && names.size <= MOST_MEMBERS;
}

/** @returns the well-formed part of a caller's trace context */
export function traceHeaders(carrier: Readonly<Record<string, unknown>>): Record<string, string> {
  const { traceparent, tracestate } = carrier;
  if (typeof traceparent !== 'string' || !TRACEPARENT.test(traceparent)) return {};
  return { traceparent, ...(tracestate !== undefined && isTraceState(tracestate) && { tracestate }) };
}

/** Used where telemetry is disabled: the caller's trace context is forwarded unchanged. */
export const noTelemetry: CallTelemetry = {
  begin: (carrier) => ({ headers: traceHeaders(carrier), end() {} }),
};

/** What the span of a request is made with. */
export interface SpanServices {
  readonly telemetry: CallTelemetry;
  readonly keys: KeyLookup & Pick<KeyDirectory, 'get'>;
}

/**
 * Begins the one server span of a request and ends it with the exchange (O24). What goes up from here on is below it.
 *
 * @param path without a query
 * @param key id of the caller's key
 */
export function startSpan(
  gateway: SpanServices,
  exchange: Exchange,
  path: string,
  key?: string,
  message?: Message,
): void {
  const params = message?.body.params;
  const meta = isObject(params) && isObject(params._meta) ? params._meta : {};
  const carrier = 'traceparent' in meta ? withoutKeyInState(meta, gateway) : exchange.headers;
  const span = gateway.telemetry.begin(carrier, exchange.ms);
  // Both headers are replaced, because a `tracestate` belongs to the `traceparent` that it came with.
  if (exchange.headers.traceparent !== undefined) delete exchange.headers.traceparent;
  if (exchange.headers.tracestate !== undefined) delete exchange.headers.tracestate;
  Object.assign(exchange.headers, span.headers);
  const attributes = spanAttributes(gateway, path, key);
  exchange.onClose(() => {
    const { facts, status } = exchange;
    span.end({ ...attributes, ...facts, tool: facts.tool && toolWithoutKey(facts.tool, gateway), status });
  });
}

/** The trace context of a message. Keys in headers were found before; one in a message must not become a header. */
function withoutKeyInState(
  meta: Readonly<Record<string, unknown>>,
  { keys }: Pick<SpanServices, 'keys'>,
): Readonly<Record<string, unknown>> {
  const { traceparent, tracestate } = meta;
  return typeof tracestate === 'string' && holdsKey(tracestate, keys) ? { traceparent } : meta;
}

function toolWithoutKey(tool: ToolFacts, { keys }: Pick<SpanServices, 'keys'>): ToolFacts {
  const name = withoutKey(tool.name, keys);
  return name === tool.name ? tool : { ...tool, name, model: name };
}

/** What a span says of a request, but for how it ended. @param key id of the caller's key */
export function spanAttributes({ keys }: Pick<SpanServices, 'keys'>, path: string, key: string | undefined) {
  const { alias, owner } = (key === undefined ? undefined : keys.get(key)?.context.terms) ?? {};
  return { path, server: /^\/([^/]+)\/mcp/.exec(path)?.[1] ?? '', alias, owner };
}
