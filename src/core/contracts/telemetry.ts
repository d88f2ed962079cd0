import type { Meter, Tracer } from '@opentelemetry/api';
import type { ReadableSpan, SpanProcessor } from '@opentelemetry/sdk-trace';
import { defineToken, type Token } from './token.ts';

/**
 * Tracers and meters of the OpenTelemetry SDK, for the spans and metrics of this process. It is enabled where a receiver
 * is configured; elsewhere the SDK is not loaded, and the methods throw.
 */
export interface Telemetry {
  readonly enabled: boolean;
  /** @param scope name of the instrumentation scope, e.g. `holdfast.gateway` */
  tracer(scope: string): Tracer;
  /** @param scope name of the instrumentation scope */
  meter(scope: string): Meter;
  /**
   * Exports the metrics now.
   *
   * @returns why the receiver did not take them; undefined when it did
   */
  exportMetrics(): Promise<string | undefined>;
  /** For spans that are built whole when they end, without a tracer. @param scope name of the instrumentation scope */
  spanExport(scope: string): SpanExport;
}

/** The SDK's span processor, and the two fields that are the same in all spans of a scope. */
export interface SpanExport extends Pick<ReadableSpan, 'resource' | 'instrumentationScope'> {
  readonly processor: Pick<SpanProcessor, 'onEnd'>;
}

/** Provided by the plugin that exports the telemetry of this process. */
export const TelemetryToken: Token<Telemetry> = defineToken('telemetry');
