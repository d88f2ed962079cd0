import type { CallEnded } from '../../../machines/gateway/key.ts';

/**
 * What is measured of a call: one server span and the four `gen_ai.*` histograms (O24). `CallFacts` is all that telemetry
 * may know of it.
 */

/** A call as telemetry may know it: no key material, no method name, no query (O24). */
export interface CallFacts {
  /** Path without its query, e.g. `/memory/mcp`. */
  readonly path: string;
  /** Name of the server; the aggregate's is empty. */
  readonly server: string;
  readonly alias?: string | undefined;
  /** `user_id` of the key. */
  readonly owner?: string | undefined;
  /** HTTP status sent; absent when the client left before. */
  readonly status?: number | undefined;
  readonly outcome?: CallEnded['outcome'] | undefined;
  /** Of a call of a tool that went to its upstream. */
  readonly tool?: ToolFacts | undefined;
}

export interface ToolFacts {
  /** The upstream's own name. */
  readonly name: string;
  /** `gen_ai.request.model`: the upstream's model. */
  readonly model: string;
  readonly cost: number;
  /** Until the upstream began to answer, milliseconds. */
  readonly responseMs: number;
  /** Tokens that the result reports. */
  readonly tokens?: { readonly input?: number | undefined; readonly output?: number | undefined } | undefined;
}

/** A span that is under way. */
export interface CallSpan {
  /** The trace headers that go up, so that an upstream's spans hang below this one. */
  readonly headers: Readonly<Record<string, string>>;
  /** Ends it. Exactly once; later calls do nothing. */
  end(facts: CallFacts): void;
}

/** Spans and instruments of gateway calls. */
export interface CallTelemetry {
  /**
   * @param carrier trace context of the caller: `traceparent` and `tracestate`, of its headers or its `_meta`
   * @param agoMs how long ago the request came, milliseconds
   */
  begin(carrier: Readonly<Record<string, unknown>>, agoMs?: number): CallSpan;
}

/** Version ff is none. */
const TRACEPARENT = /^(?!ff)[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}$/;
/** What may be a header: a message can hold anything here. */
const TRACESTATE = /^[\t\x20-\x7e]{1,512}$/;

/** What of a caller's trace context is well-formed. */
export function traceHeaders(carrier: Readonly<Record<string, unknown>>): Record<string, string> {
  const { traceparent, tracestate } = carrier;
  if (typeof traceparent !== 'string' || !TRACEPARENT.test(traceparent)) return {};
  const state = typeof tracestate === 'string' && TRACESTATE.test(tracestate) ? tracestate : undefined;
  return { traceparent, ...(state && { tracestate: state }) };
}

/** Where nothing is exported: the caller's trace context goes up as it came. */
export const noTelemetry: CallTelemetry = {
  begin: (carrier) => ({ headers: traceHeaders(carrier), end() {} }),
};

/**
 * One server span a call and the four `gen_ai.*` histograms (O24), exported by whatever plugin provides telemetry. What may
 * be told of a call is `CallFacts`, and nothing else.
 */
