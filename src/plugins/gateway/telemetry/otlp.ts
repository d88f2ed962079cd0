import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Attributes,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { readTokenFile } from '../../../core/secrets/index.ts';
import { version } from '../../../core/version.ts';
import { instruments } from './instruments.ts';
import {
  type CallFacts,
  type CallSpan,
  type Telemetry,
  type TelemetryOptions,
  traceHeaders,
} from './telemetry.ts';

const SCOPE = 'holdfast.gateway';
/** What waits for a receiver that is away; more is dropped. */
const QUEUE_LIMIT = 4_096;
const DEADLINE_MS = 5_000;
/** For the last batches at a stop. */
const LAST_MS = 3_000;

/** Spans and metrics by the OpenTelemetry SDK, sent as OTLP over HTTP. Loaded only where a receiver is configured. */
export function otlpTelemetry(options: TelemetryOptions): Telemetry {
  const { endpoint, tokenFile, serviceName, everyMs } = options;
  const exporter = (path: string) => ({
    url: `${endpoint.replace(/\/+$/, '')}${path}`,
    timeoutMillis: DEADLINE_MS,
    headers: async () => authorization(tokenFile),
  });
  const resource = resourceFromAttributes({ 'service.name': serviceName, 'service.version': version });
  const tracers = new TracerProvider({
    resource,
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: new OTLPTraceExporter(exporter('/v1/traces')),
        maxQueueSize: QUEUE_LIMIT,
        scheduledDelayMillis: everyMs,
        exportTimeoutMillis: DEADLINE_MS,
      }),
    ],
  });
  const meters = new MeterProvider({
    resource,
    readers: [
      new PeriodicExportingMetricReader({
        exporter: new OTLPMetricExporter(exporter('/v1/metrics')),
        exportIntervalMillis: everyMs,
        exportTimeoutMillis: Math.min(everyMs, DEADLINE_MS),
      }),
    ],
  });
  const tracer = tracers.getTracer(SCOPE, version);
  const record = instruments(meters.getMeter(SCOPE, version));
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
          if (options.toolSpans) toolSpan(span, facts.tool.name, startTime, startTime + ms, facts);
        },
      } satisfies CallSpan;
    },
    async stop() {
      const sent = Promise.allSettled([tracers.shutdown(), meters.shutdown()]);
      // A receiver that is away must not hold a stop up.
      await Promise.race([sent, sleep(LAST_MS, undefined, { ref: false })]);
    },
  };

  function toolSpan(parent: Span, tool: string, startTime: number, endTime: number, facts: CallFacts): void {
    const span = tracer.startSpan(
      `tools/call ${tool}`,
      {
        kind: SpanKind.CLIENT,
        startTime,
        attributes: { 'gen_ai.tool.name': tool, 'gen_ai.operation.name': 'execute_tool' },
      },
      trace.setSpan(ROOT_CONTEXT, parent),
    );
    setStatus(span, facts);
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

/** Read for each batch, so that a rotated key needs no restart. A file that can't be read leaves the header out. */
function authorization(tokenFile: string | undefined): Record<string, string> {
  if (tokenFile === undefined) return {};
  try {
    return { authorization: readTokenFile(tokenFile) };
  } catch {
    return {};
  }
}
