import { type Attributes, isSpanContextValid, type SpanContext, SpanKind } from '@opentelemetry/api';
import type { Telemetry } from '../../../core/contracts/telemetry.ts';
import { instruments } from './instruments.ts';
import { type CallFacts, type CallSpan, type CallTelemetry, traceHeaders } from './telemetry.ts';

const SCOPE = 'holdfast.gateway';

/** Spans and histograms of calls. Loaded only where they are exported. */
export function recordedCalls(telemetry: Telemetry, toolSpans: boolean): CallTelemetry {
  const spans = telemetry.spans(SCOPE);
  const record = instruments(telemetry, SCOPE);
  return {
    begin(carrier, agoMs = 0) {
      const startMs = Date.now() - agoMs;
      const started = performance.now() - agoMs;
      const given = traceHeaders(carrier);
      const parent = parentOf(given);
      const context = spans.begin(parent);
      let ended = false;
      return {
        headers: headersOf(context, parent && given.tracestate),
        end(facts) {
          if (ended) return;
          ended = true;
          const ms = performance.now() - started;
          const times = { startMs, endMs: startMs + ms };
          const name = `POST ${facts.path}`;
          const attributes = attributesOf(facts);
          spans.end({
            context,
            parent,
            name,
            kind: SpanKind.SERVER,
            ...times,
            attributes,
            failed: hasFailed(facts),
          });
          if (!facts.tool) return;
          record(facts, facts.tool, ms);
          if (toolSpans) toolSpan(context, facts.tool.name, times, facts);
        },
      } satisfies CallSpan;
    },
  };

  /** By the conventions for MCP, which unlike the server span bears the method. */
  function toolSpan(
    parent: SpanContext,
    tool: string,
    times: { readonly startMs: number; readonly endMs: number },
    { outcome = 'ok' }: CallFacts,
  ): void {
    const failed = outcome !== 'ok';
    spans.end({
      context: spans.begin(parent),
      parent,
      name: `tools/call ${tool}`,
      kind: SpanKind.CLIENT,
      ...times,
      attributes: {
        'mcp.method.name': 'tools/call',
        'gen_ai.tool.name': tool,
        'gen_ai.operation.name': 'execute_tool',
        ...(failed && { 'error.type': outcome }),
      },
      failed,
    });
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

function parentOf({ traceparent }: Record<string, string>): SpanContext | undefined {
  const [, traceId, spanId, flags] = traceparent?.split('-') ?? [];
  if (traceId === undefined || spanId === undefined) return undefined;
  const parent = { traceId, spanId, traceFlags: Number.parseInt(flags ?? '0', 16), isRemote: true };
  return isSpanContextValid(parent) ? parent : undefined;
}

function headersOf(
  { traceId, spanId, traceFlags }: SpanContext,
  tracestate: string | undefined,
): Record<string, string> {
  const traceparent = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
  return tracestate === undefined ? { traceparent } : { traceparent, tracestate };
}
