import {
  type Attributes,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import type { Telemetry } from '../../../core/adapters/telemetry.ts';
import { instruments } from './instruments.ts';
import { type CallFacts, type CallSpan, type CallTelemetry, traceHeaders } from './telemetry.ts';

const SCOPE = 'holdfast.gateway';
/** Spans and histograms of calls. Loaded only where they are exported. */
export function recordedCalls(telemetry: Telemetry, toolSpans: boolean): CallTelemetry {
  const tracer = telemetry.tracer(SCOPE);
  const record = instruments(telemetry.meter(SCOPE));
  return {
    begin(carrier, agoMs = 0) {
      const startTime = Date.now() - agoMs;
      const started = performance.now() - agoMs;
      const parent = parentOf(traceHeaders(carrier));
      const span = tracer.startSpan('POST /mcp', { kind: SpanKind.SERVER, startTime }, parent);
      let ended = false;
      return {
        headers: headersOf(span),
        end(facts) {
          if (ended) return;
          ended = true;
          const ms = performance.now() - started;
          finish(span, facts, startTime + ms);
          if (!facts.tool) return;
          record(facts, facts.tool, ms);
          if (toolSpans) toolSpan(span, facts.tool.name, startTime, startTime + ms, facts);
        },
      } satisfies CallSpan;
    },
  };

  /** By the conventions for MCP, which unlike the server span bears the method. */
  function toolSpan(parent: Span, tool: string, startTime: number, endTime: number, facts: CallFacts): void {
    const span = tracer.startSpan(
      `tools/call ${tool}`,
      {
        kind: SpanKind.CLIENT,
        startTime,
        attributes: {
          'mcp.method.name': 'tools/call',
          'gen_ai.tool.name': tool,
          'gen_ai.operation.name': 'execute_tool',
        },
      },
      trace.setSpan(ROOT_CONTEXT, parent),
    );
    const { outcome = 'ok' } = facts;
    if (outcome !== 'ok') {
      span.setAttribute('error.type', outcome);
      span.setStatus({ code: SpanStatusCode.ERROR });
    }
    span.end(endTime);
  }
}

function finish(span: Span, facts: CallFacts, endTime: number): void {
  const { path, server, alias, owner, status, outcome } = facts;
  span.updateName(`POST ${path}`);
  const attributes: Attributes = { 'http.method': 'POST', 'http.target': path };
  if (server) attributes['mcp.server'] = server;
  if (alias !== undefined) attributes['metadata.user_api_key_alias'] = alias;
  if (owner !== undefined) attributes.user_id = owner;
  if (status !== undefined) attributes['http.status_code'] = status;
  if (outcome !== undefined) attributes['holdfast.outcome'] = outcome;
  span.setAttributes(attributes);
  setStatus(span, facts);
  span.end(endTime);
}

/** Set without text: an upstream's words may hold anything. */
function setStatus(span: Span, { status, outcome }: CallFacts): void {
  const failed = (status ?? 0) >= 500 || outcome === 'unreachable' || outcome === 'cut';
  if (failed) span.setStatus({ code: SpanStatusCode.ERROR });
}

function parentOf({ traceparent, tracestate: _ }: Record<string, string>) {
  const [, traceId, spanId, flags] = traceparent?.split('-') ?? [];
  if (traceId === undefined || spanId === undefined) return ROOT_CONTEXT;
  const context = { traceId, spanId, traceFlags: Number.parseInt(flags ?? '0', 16), isRemote: true };
  return trace.setSpanContext(ROOT_CONTEXT, context);
}

function headersOf(span: Span): Record<string, string> {
  const { traceId, spanId, traceFlags } = span.spanContext();
  return { traceparent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}` };
}
