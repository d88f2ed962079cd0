import { type ChannelCredentials, Metadata } from '@grpc/grpc-js';
import { SeverityNumber } from '@opentelemetry/api-logs';
import { OTLPLogExporter as LogsGrpc } from '@opentelemetry/exporter-logs-otlp-grpc';
import { OTLPLogExporter as LogsHttp } from '@opentelemetry/exporter-logs-otlp-http';
import { OTLPLogExporter as LogsProto } from '@opentelemetry/exporter-logs-otlp-proto';
import { OTLPMetricExporter as MetricsGrpc } from '@opentelemetry/exporter-metrics-otlp-grpc';
import { OTLPMetricExporter as MetricsHttp } from '@opentelemetry/exporter-metrics-otlp-http';
import { OTLPMetricExporter as MetricsProto } from '@opentelemetry/exporter-metrics-otlp-proto';
import { OTLPTraceExporter as TracesGrpc } from '@opentelemetry/exporter-trace-otlp-grpc';
import { OTLPTraceExporter as TracesHttp } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as TracesProto } from '@opentelemetry/exporter-trace-otlp-proto';
import { CompressionAlgorithm } from '@opentelemetry/otlp-exporter-base';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchLogRecordProcessor, LoggerProvider } from '@opentelemetry/sdk-logs';
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import type { Receiving } from './rig.ts';

export const TRANSPORTS = ['http/json', 'http/protobuf', 'grpc'] as const;
export type Transport = (typeof TRANSPORTS)[number];

/**
 * The exporters of the official SDK as a stock program has them: nothing but environment variables, whose names are the
 * same in every language.
 */
export function exportersOf(transport: Transport, { http, grpc, key }: Receiving) {
  const before = { ...process.env };
  Object.assign(process.env, {
    OTEL_EXPORTER_OTLP_ENDPOINT: transport === 'grpc' ? grpc : http,
    OTEL_EXPORTER_OTLP_HEADERS: `authorization=${key}`,
    OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
  });
  try {
    if (transport === 'grpc')
      return { traces: new TracesGrpc(), metrics: new MetricsGrpc(), logs: new LogsGrpc() };
    if (transport === 'http/json')
      return { traces: new TracesHttp(), metrics: new MetricsHttp(), logs: new LogsHttp() };
    return { traces: new TracesProto(), metrics: new MetricsProto(), logs: new LogsProto() };
  } finally {
    process.env = before;
  }
}

export function grpcExporters(url: string, key: string, channel: ChannelCredentials) {
  const metadata = new Metadata();
  if (key !== '') metadata.set('authorization', key);
  const options = { url, metadata, credentials: channel, compression: CompressionAlgorithm.GZIP };
  return {
    traces: new TracesGrpc(options),
    metrics: new MetricsGrpc(options),
    logs: new LogsGrpc(options),
  };
}

type Exporters = ReturnType<typeof exportersOf>;

/** A small program: two spans, three instruments, one log line, all sent when it resolves. */
export async function runProgram(service: string, exporters: Exporters): Promise<void> {
  const resource = resourceFromAttributes({ 'service.name': service });
  const tracers = new TracerProvider({
    resource,
    spanProcessors: [new BatchSpanProcessor({ exporter: exporters.traces })],
  });
  const meters = new MeterProvider({
    resource,
    readers: [
      new PeriodicExportingMetricReader({ exporter: exporters.metrics, exportIntervalMillis: 3_600_000 }),
    ],
  });
  const loggers = new LoggerProvider({
    resource,
    processors: [new BatchLogRecordProcessor({ exporter: exporters.logs })],
  });
  const tracer = tracers.getTracer('program', '1.0');
  for (const name of ['first', 'second']) {
    const span = tracer.startSpan(name, { attributes: { ok: true, list: ['a', 'b'] } });
    span.addEvent('happened', { n: 1 });
    span.end();
  }
  const meter = meters.getMeter('program');
  meter.createCounter('calls').add(3, { route: 'a' });
  meter.createGauge('level').record(0.5);
  meter.createHistogram('seconds').record(0.2);
  loggers
    .getLogger('program')
    .emit({ severityNumber: SeverityNumber.WARN, severityText: 'WARN', body: 'a line' });
  await Promise.all([tracers.shutdown(), meters.shutdown(), loggers.shutdown()]);
}
