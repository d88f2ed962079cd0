import { type Attributes, type HrTime, SpanStatusCode, TraceFlags } from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import { RandomIdGenerator, type ReadableSpan, type SpanProcessor } from '@opentelemetry/sdk-trace';
import type { EndedSpan, Spans } from '../../core/contracts/telemetry.ts';

const NONE: never[] = [];
const ids = new RandomIdGenerator();

/**
 * Spans of a scope, handed to the SDK's processor whole. The SDK's own tracer takes a span attribute by attribute and
 * checks each, for it doesn't know whose they are; that took longer than all that a call is decided by.
 *
 * @param processor takes what ended, and leaves out what is not sampled
 * @param name of the scope, with the version of what it instruments
 */
export function spansOf(processor: SpanProcessor, resource: Resource, name: string, version: string): Spans {
  const instrumentationScope = { name, version };
  return {
    begin: (parent) => ({
      traceId: parent?.traceId ?? ids.generateTraceId(),
      spanId: ids.generateSpanId(),
      traceFlags: (parent?.traceFlags ?? TraceFlags.SAMPLED) & TraceFlags.SAMPLED,
    }),
    end: (span) => processor.onEnd(new WholeSpan(span, resource, instrumentationScope)),
  };
}

class WholeSpan implements ReadableSpan {
  readonly name: string;
  readonly kind: ReadableSpan['kind'];
  readonly parentSpanContext?: NonNullable<ReadableSpan['parentSpanContext']>;
  readonly startTime: HrTime;
  readonly endTime: HrTime;
  readonly duration: HrTime;
  readonly status: ReadableSpan['status'];
  readonly attributes: Attributes;
  readonly resource: Resource;
  readonly instrumentationScope: ReadableSpan['instrumentationScope'];
  readonly links = NONE;
  readonly events = NONE;
  readonly ended = true;
  readonly droppedAttributesCount = 0;
  readonly droppedEventsCount = 0;
  readonly droppedLinksCount = 0;
  readonly #context: EndedSpan['context'];

  constructor(
    { context, parent, name, kind, startMs, endMs, attributes, failed }: EndedSpan,
    resource: Resource,
    scope: ReadableSpan['instrumentationScope'],
  ) {
    this.name = name;
    this.kind = kind;
    if (parent) this.parentSpanContext = parent;
    this.startTime = hrTime(startMs);
    this.endTime = hrTime(endMs);
    this.duration = hrTime(endMs - startMs);
    this.status = { code: failed ? SpanStatusCode.ERROR : SpanStatusCode.UNSET };
    this.attributes = attributes;
    this.resource = resource;
    this.instrumentationScope = scope;
    this.#context = context;
  }

  spanContext(): EndedSpan['context'] {
    return this.#context;
  }
}

/** @param ms since the epoch, or a duration, with a fraction @returns whole seconds and nanoseconds */
export function hrTime(ms: number): HrTime {
  const seconds = Math.floor(ms / 1_000);
  return [seconds, Math.floor((ms - seconds * 1_000) * 1e6)];
}
