import { attributes, noteDropped } from './attributes.ts';
import type { Rows } from './rows.ts';
import {
  anyTime,
  between,
  choice,
  hasTime,
  ItemRefused,
  id,
  type Message,
  message,
  messages,
  name,
  rowTime,
  text,
} from './values.ts';

const KINDS = ['Unspecified', 'Internal', 'Server', 'Client', 'Producer', 'Consumer'] as const;
const CODES = ['Unset', 'Ok', 'Error'] as const;
/** Events, and links, of one span: many times what SDKs keep. */
const MOST_PARTS = 10_000;

/** Every span of an ExportTraceServiceRequest as a row of `otel_traces`. */
export function mapTraces(request: Message, rows: Rows, nowMs: number): void {
  const levels = { resources: 'resourceSpans', scopes: 'scopeSpans', items: 'spans' };
  rows.walk(request, levels, (span, scope) => {
    const start = rowTime(span.startTimeUnixNano, nowMs, 'startTimeUnixNano');
    const end = hasTime(span.endTimeUnixNano)
      ? anyTime(span.endTimeUnixNano, 'endTimeUnixNano')
      : start.nanos;
    const status = message(span.status, 'the status');
    rows.add('otel_traces', start.day, scope, {
      Timestamp: start.nanos,
      TraceId: required(id(span.traceId, 16, 'traceId'), 'traceId'),
      SpanId: required(id(span.spanId, 8, 'spanId'), 'spanId'),
      ParentSpanId: parent(span.parentSpanId),
      TraceState: text(span.traceState, 'traceState'),
      SpanName: name(span.name, 'the name'),
      SpanKind: KINDS[choice(span.kind, KINDS, 'SPAN_KIND_', 'kind')],
      SpanAttributes: noteDropped(attributes(span.attributes), {
        attributes: span.droppedAttributesCount,
        events: span.droppedEventsCount,
        links: span.droppedLinksCount,
      }),
      Duration: between(start.nanos, end),
      StatusCode: CODES[choice(status.code, CODES, 'STATUS_CODE_', 'the status code')],
      StatusMessage: text(status.message, 'the status message'),
      ...eventColumns(messages(span.events, 'events', MOST_PARTS)),
      ...linkColumns(messages(span.links, 'links', MOST_PARTS)),
    });
  });
}

function eventColumns(events: readonly Message[]) {
  return {
    'Events.Timestamp': events.map((event) => anyTime(event.timeUnixNano, 'the time of an event')),
    'Events.Name': events.map((event) => name(event.name, 'the name of an event')),
    'Events.Attributes': events.map((event) =>
      noteDropped(attributes(event.attributes), { attributes: event.droppedAttributesCount }),
    ),
  };
}

function linkColumns(links: readonly Message[]) {
  return {
    'Links.TraceId': links.map((link) =>
      required(id(link.traceId, 16, 'the traceId of a link'), 'the traceId of a link'),
    ),
    'Links.SpanId': links.map((link) =>
      required(id(link.spanId, 8, 'the spanId of a link'), 'the spanId of a link'),
    ),
    'Links.TraceState': links.map((link) => text(link.traceState, 'the traceState of a link')),
    'Links.Attributes': links.map((link) =>
      noteDropped(attributes(link.attributes), { attributes: link.droppedAttributesCount }),
    ),
  };
}

/** Some producers write a root's parent as zeros. */
function parent(value: unknown): string {
  if (typeof value === 'string' && /^0{16}$/.test(value)) return '';
  if (value instanceof Uint8Array && value.length === 8 && value.every((byte) => byte === 0)) return '';
  return id(value, 8, 'parentSpanId');
}

function required(value: string, what: string): string {
  if (value === '') throw new ItemRefused(`${what} is missing`);
  return value;
}
