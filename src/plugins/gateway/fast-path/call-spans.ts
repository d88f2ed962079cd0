/**
 * Spans of calls, built whole when a call ends and handed to the SDK's span processor. The SDK's tracer takes a span
 * attribute by attribute and makes many objects for it, which live until the next export.
 *
 * Bench `gateway`, row "small, 8 clients" (target: at least 0.6 of the bare undici proxy in the same run): 0.70 with it,
 * 0.62 by the tracer; the slowest hundredth of the calls took 8.7 ms with it, 14.7 ms by the tracer. Measured in turns.
 */
import {
  type Attributes,
  type HrTime,
  isSpanContextValid,
  type SpanContext,
  type SpanKind,
  SpanStatusCode,
  TraceFlags,
} from '@opentelemetry/api';
import { RandomIdGenerator, type ReadableSpan } from '@opentelemetry/sdk-trace';
import type { SpanExport } from '../../../core/contracts/telemetry.ts';

const ids = new RandomIdGenerator();

/** All that a span of a call says. Times are milliseconds since the epoch, with a fraction. */
export interface EndedSpan {
  readonly context: SpanContext;
  readonly parent: SpanContext | undefined;
  readonly startMs: number;
  readonly endMs: number;
  readonly name: string;
  readonly kind: SpanKind;
  readonly attributes: Attributes;
  readonly failed: boolean;
}

/**
 * The place of a new span in its trace.
 *
 * @param parent undefined for the first span of a trace; when it is not sampled, what is below it is not either
 */
export function contextBelow(parent: SpanContext | undefined): SpanContext {
  return {
    traceId: parent?.traceId ?? ids.generateTraceId(),
    spanId: ids.generateSpanId(),
    traceFlags: (parent?.traceFlags ?? TraceFlags.SAMPLED) & TraceFlags.SAMPLED,
  };
}

/** @returns the place that a well-formed header `traceparent` names; undefined when its ids are not valid */
export function contextOf(traceparent: string): SpanContext | undefined {
  const [, traceId = '', spanId = '', flags = '0'] = traceparent.split('-');
  const context = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
  return isSpanContextValid(context) ? context : undefined;
}

/** @returns the header `traceparent` for what is below a span */
export function traceparentOf({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags === TraceFlags.SAMPLED ? '01' : '00'}`;
}

/** Hands a span to the SDK, which leaves out what is not sampled. */
export function exportSpan(
  { processor, resource, instrumentationScope }: SpanExport,
  { context, parent, startMs, endMs, name, kind, attributes, failed }: EndedSpan,
): void {
  const span: ReadableSpan = {
    name,
    kind,
    spanContext: () => context,
    startTime: hrTime(startMs),
    endTime: hrTime(endMs),
    duration: hrTime(endMs - startMs),
    status: { code: failed ? SpanStatusCode.ERROR : SpanStatusCode.UNSET },
    attributes,
    links: [],
    events: [],
    ended: true,
    resource,
    instrumentationScope,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
  processor.onEnd(parent ? { ...span, parentSpanContext: parent } : span);
}

/** @param ms since the epoch, or a duration, with a fraction @returns whole seconds and nanoseconds */
function hrTime(ms: number): HrTime {
  const seconds = Math.floor(ms / 1_000);
  return [seconds, Math.floor((ms - seconds * 1_000) * 1e6)];
}
