/** Spans and histograms of calls, by the OpenTelemetry API. Loaded only where they are exported. */
import {
  type Attributes,
  type Context,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import type { Telemetry } from '../../../core/contracts/telemetry.ts';
import { type CallFacts, type CallTelemetry, type ToolFacts, traceHeaders } from './call-telemetry.ts';

const SCOPE = 'holdfast.gateway';

/** Bucket boundaries of the conventions for generative AI: seconds, tokens, costs. */
const SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const TOKENS = [1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576];
const COSTS = [0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 50];

/** @param toolSpans whether each call of a tool gets a child span as well */
export function recordedCalls(telemetry: Telemetry, toolSpans: boolean): CallTelemetry {
  const tracer = telemetry.tracer(SCOPE);
  const recordTool = toolHistograms(telemetry);
  return {
    begin(carrier, agoMs = 0) {
      const startMs = Date.now() - agoMs;
      const started = performance.now() - agoMs;
      const given = traceHeaders(carrier);
      const parent = parentContext(given.traceparent);
      // The path is known at the end, and becomes part of the name then.
      const span = tracer.startSpan('POST', { kind: SpanKind.SERVER, startTime: startMs }, parent);
      let ended = false;
      return {
        headers: headersOf(span, parent === ROOT_CONTEXT ? undefined : given.tracestate),
        end(facts) {
          if (ended) return;
          ended = true;
          const ms = performance.now() - started;
          const endMs = startMs + ms;
          span.updateName(`POST ${facts.path}`).setAttributes(attributesOf(facts));
          if (hasFailed(facts)) span.setStatus({ code: SpanStatusCode.ERROR });
          span.end(endMs);
          if (!facts.tool) return;
          recordTool(facts, facts.tool, ms);
          if (toolSpans) addToolSpan(span, facts.tool.name, { startMs, endMs }, facts);
        },
      };
    },
  };

  /** The client span of the conventions for MCP, which names the method and the tool. */
  function addToolSpan(
    server: Span,
    tool: string,
    { startMs, endMs }: { readonly startMs: number; readonly endMs: number },
    { outcome = 'ok' }: CallFacts,
  ): void {
    const failed = outcome !== 'ok';
    const attributes = {
      'mcp.method.name': 'tools/call',
      'gen_ai.tool.name': tool,
      'gen_ai.operation.name': 'execute_tool',
      ...(failed && { 'error.type': outcome }),
    };
    const options = { kind: SpanKind.CLIENT, startTime: startMs, attributes };
    const span = tracer.startSpan(`tools/call ${tool}`, options, trace.setSpan(ROOT_CONTEXT, server));
    if (failed) span.setStatus({ code: SpanStatusCode.ERROR });
    span.end(endMs);
  }
}

function attributesOf({ path, server, alias, owner, status, outcome }: CallFacts): Attributes {
  const attributes: Attributes = { 'http.method': 'POST', 'http.target': path };
  if (server) attributes['mcp.server'] = server;
  if (alias !== undefined) attributes['metadata.user_api_key_alias'] = alias;
  if (owner !== undefined) attributes.user_id = owner;
  if (status !== undefined) attributes['http.status_code'] = status;
  if (outcome !== undefined) attributes['holdfast.outcome'] = outcome;
  return attributes;
}

function hasFailed({ status, outcome }: CallFacts): boolean {
  return (status ?? 0) >= 500 || outcome === 'unreachable' || outcome === 'cut';
}

function parentContext(traceparent: string | undefined): Context {
  const [, traceId, spanId, flags] = traceparent?.split('-') ?? [];
  if (traceId === undefined || spanId === undefined) return ROOT_CONTEXT;
  const parent = { traceId, spanId, traceFlags: Number.parseInt(flags ?? '0', 16), isRemote: true };
  return isSpanContextValid(parent) ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT;
}

function headersOf(span: Span, tracestate: string | undefined): Record<string, string> {
  const { traceId, spanId, traceFlags } = span.spanContext();
  const traceparent = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
  return tracestate === undefined ? { traceparent } : { traceparent, tracestate };
}

/** The four histograms of calls of tools (O24). @returns a function that records one call */
function toolHistograms(telemetry: Telemetry): (facts: CallFacts, tool: ToolFacts, ms: number) => void {
  const meter = telemetry.meter(SCOPE);
  const histogram = (name: string, description: string, unit: string, bounds: number[]) =>
    meter.createHistogram(name, { description, unit, advice: { explicitBucketBoundaries: bounds } });
  const operation = histogram(
    'gen_ai.client.operation.duration',
    'From the call to the end of its answer.',
    's',
    SECONDS,
  );
  const response = histogram(
    'gen_ai.client.response.duration',
    'From the call to the beginning of its answer.',
    's',
    SECONDS,
  );
  const usage = histogram(
    'gen_ai.client.token.usage',
    'Tokens that the upstream reports.',
    '{token}',
    TOKENS,
  );
  const cost = histogram('gen_ai.usage.cost', 'Cost of the call by the table of its route.', '{cost}', COSTS);
  return ({ alias, owner, server }, { model, responseMs, cost: amount, tokens }, ms) => {
    const attributes: Attributes = {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.request.model': model,
      'mcp.server': server,
      ...(alias !== undefined && { 'metadata.user_api_key_alias': alias }),
      ...(owner !== undefined && { 'metadata.user_api_key_user_id': owner }),
    };
    operation.record(ms / 1_000, attributes);
    response.record(responseMs / 1_000, attributes);
    cost.record(amount, attributes);
    for (const type of ['input', 'output'] as const) {
      const count = tokens?.[type];
      if (count !== undefined) usage.record(count, { ...attributes, 'gen_ai.token.type': type });
    }
  };
}
