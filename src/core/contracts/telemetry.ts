import type { Attributes, Meter, SpanContext, SpanKind } from '@opentelemetry/api';
import { defineToken, type Token } from './token.ts';

/** A span that is over. */
export interface EndedSpan {
  /** As `Spans.begin` gave it. */
  readonly context: SpanContext;
  readonly parent: SpanContext | undefined;
  readonly name: string;
  readonly kind: SpanKind;
  /** Unix time, milliseconds with a fraction. */
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Attributes;
  /** Told without a text: another's words may hold anything. */
  readonly failed: boolean;
}

/** The spans of one scope. Each is told when it is over and all of it is known. */
export interface Spans {
  /**
   * @param parent one that is not sampled decides so for the span
   * @returns the ids of a span that begins: what it calls may have to know them
   */
  begin(parent?: SpanContext): SpanContext;
  end(span: EndedSpan): void;
}

export interface HistogramDefinition {
  readonly name: string;
  readonly description: string;
  /** By UCUM, e.g. `s`. */
  readonly unit: string;
  /** Upper bounds of its buckets, ascending. */
  readonly bounds: readonly number[];
}

/** What is recorded of a histogram with one set of attributes. */
export interface Series {
  /** @param value not negative */
  record(value: number): void;
}

/** Values whose series is found once and not for each value: to compare attributes takes longer than to count. */
export interface Histogram {
  /** The same series for the same attributes, in whatever order. Of too many series the last stands for the rest. */
  of(attributes: Attributes): Series;
}

/**
 * Our own spans and instruments, by the OpenTelemetry SDK. Where no receiver is configured it is not enabled: nothing is
 * loaded, and whoever asks all the same gets an error.
 */
export interface Telemetry {
  readonly enabled: boolean;
  spans(scope: string): Spans;
  histogram(scope: string, definition: HistogramDefinition): Histogram;
  /** All other instruments. */
  meter(scope: string): Meter;
}

/** Provided by the plugin that exports our own telemetry. */
export const TelemetryToken: Token<Telemetry> = defineToken('telemetry');
