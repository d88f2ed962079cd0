import { attributes, noteDropped, valueText } from './attributes.ts';
import type { Rows } from './rows.ts';
import { hasTime, type Instant, id, instantOf, type Message, name, rowTime, small } from './values.ts';

const HIGHEST_SEVERITY = 24;

/** Every record of an ExportLogsServiceRequest as a row of `otel_logs`. */
export function mapLogs(request: Message, rows: Rows, nowMs: number): void {
  const levels = { resources: 'resourceLogs', scopes: 'scopeLogs', items: 'logRecords' };
  rows.walk(request, levels, (record, scope) => {
    const at = timeOf(record, nowMs);
    const severity = small(record.severityNumber, 'severityNumber');
    rows.add('otel_logs', at.day, scope, {
      Timestamp: at.nanos,
      TraceId: id(record.traceId, 16, 'traceId'),
      SpanId: id(record.spanId, 8, 'spanId'),
      TraceFlags: small(record.flags, 'flags') & 0xff,
      SeverityText: name(record.severityText, 'severityText'),
      SeverityNumber: severity >= 0 && severity <= HIGHEST_SEVERITY ? severity : 0,
      Body: valueText(record.body),
      LogAttributes: noteDropped(attributes(record.attributes), {
        attributes: record.droppedAttributesCount,
      }),
      EventName: name(record.eventName, 'eventName'),
    });
  });
}

/** When it happened, else when it was seen, else now: a record without any time is common and not wrong. */
function timeOf(record: Message, nowMs: number): Instant {
  if (hasTime(record.timeUnixNano)) return rowTime(record.timeUnixNano, nowMs, 'timeUnixNano');
  if (hasTime(record.observedTimeUnixNano)) {
    return rowTime(record.observedTimeUnixNano, nowMs, 'observedTimeUnixNano');
  }
  return instantOf(nowMs);
}
