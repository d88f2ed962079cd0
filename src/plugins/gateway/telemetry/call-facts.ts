import type { CallEnded } from '../../../machines/gateway/call-shapes.ts';

// What is measured of a call: one server span and the four `gen_ai.*` histograms (O24). `CallFacts` is all that telemetry
// may know of it.

/** What telemetry may contain about a call: no key, no method name, no query (O24). */
export interface CallFacts {
  /** Path without its query, e.g. `/memory/mcp`. */
  readonly path: string;
  /** Name of the server; empty for the aggregate. */
  readonly server: string;
  readonly alias?: string | undefined;
  /** `user_id` of the key. */
  readonly owner?: string | undefined;
  /** HTTP status of the answer; absent when the client left before. */
  readonly status?: number | undefined;
  readonly outcome?: CallEnded['outcome'] | undefined;
  /** Only when the call of a tool was forwarded. */
  readonly tool?: ToolFacts | undefined;
}

/** What is measured of a tool that was called. */
export interface ToolFacts {
  /** The upstream's own name. */
  readonly name: string;
  /** `gen_ai.request.model`: the upstream's model. */
  readonly model: string;
  /** The route, where its entry names neither a model nor tools: there, clients can make models up without end. */
  readonly undeclaredAt?: string | undefined;
  readonly cost: number;
  /** Until the upstream began to answer, milliseconds. */
  readonly responseMs: number;
  /** Tokens as the result reports them. */
  readonly tokens?: { readonly input?: number | undefined; readonly output?: number | undefined } | undefined;
}

/** A span that has begun. */
export interface CallSpan {
  /** Trace headers for the upstream, so that its spans become children of this one. */
  readonly headers: Readonly<Record<string, string>>;
  /** Ends the span. Only the first call has an effect. */
  end(facts: CallFacts): void;
}

/** Records the calls of the gateway. */
export interface CallTelemetry {
  /**
   * @param carrier the caller's headers or `_meta`, with `traceparent` and `tracestate`
   * @param agoMs how long ago the request came, milliseconds
   */
  begin(carrier: Readonly<Record<string, unknown>>, agoMs?: number): CallSpan;
}
