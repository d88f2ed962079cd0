import protobuf from 'protobufjs/light.js';
import { BodyInvalid, isMessage, type Message } from './values.ts';

/**
 * The messages of OTLP 1.x as far as they are mapped: `field:number:type`, `*` for repeated, `?` where an absent field
 * differs from zero. The reader skips fields that are not listed.
 */
const MESSAGES: Readonly<Record<string, string>> = {
  AnyValue:
    'stringValue:1:string? boolValue:2:bool? intValue:3:int64? doubleValue:4:double? arrayValue:5:ArrayValue? kvlistValue:6:KeyValueList? bytesValue:7:bytes?',
  ArrayValue: 'values:1:AnyValue*',
  KeyValueList: 'values:1:KeyValue*',
  KeyValue: 'key:1:string value:2:AnyValue',
  InstrumentationScope:
    'name:1:string version:2:string attributes:3:KeyValue* droppedAttributesCount:4:uint32',
  Resource: 'attributes:1:KeyValue* droppedAttributesCount:2:uint32',

  TraceRequest: 'resourceSpans:1:ResourceSpans*',
  ResourceSpans: 'resource:1:Resource scopeSpans:2:ScopeSpans* schemaUrl:3:string',
  ScopeSpans: 'scope:1:InstrumentationScope spans:2:Span* schemaUrl:3:string',
  Span: 'traceId:1:bytes spanId:2:bytes traceState:3:string parentSpanId:4:bytes name:5:string kind:6:int32 startTimeUnixNano:7:fixed64 endTimeUnixNano:8:fixed64 attributes:9:KeyValue* droppedAttributesCount:10:uint32 events:11:SpanEvent* droppedEventsCount:12:uint32 links:13:SpanLink* droppedLinksCount:14:uint32 status:15:Status flags:16:fixed32',
  SpanEvent: 'timeUnixNano:1:fixed64 name:2:string attributes:3:KeyValue* droppedAttributesCount:4:uint32',
  SpanLink:
    'traceId:1:bytes spanId:2:bytes traceState:3:string attributes:4:KeyValue* droppedAttributesCount:5:uint32 flags:6:fixed32',
  Status: 'message:2:string code:3:int32',

  LogsRequest: 'resourceLogs:1:ResourceLogs*',
  ResourceLogs: 'resource:1:Resource scopeLogs:2:ScopeLogs* schemaUrl:3:string',
  ScopeLogs: 'scope:1:InstrumentationScope logRecords:2:LogRecord* schemaUrl:3:string',
  LogRecord:
    'timeUnixNano:1:fixed64 severityNumber:2:int32 severityText:3:string body:5:AnyValue attributes:6:KeyValue* droppedAttributesCount:7:uint32 flags:8:fixed32 traceId:9:bytes spanId:10:bytes observedTimeUnixNano:11:fixed64 eventName:12:string',

  MetricsRequest: 'resourceMetrics:1:ResourceMetrics*',
  ResourceMetrics: 'resource:1:Resource scopeMetrics:2:ScopeMetrics* schemaUrl:3:string',
  ScopeMetrics: 'scope:1:InstrumentationScope metrics:2:Metric* schemaUrl:3:string',
  Metric:
    'name:1:string description:2:string unit:3:string gauge:5:Gauge sum:7:Sum histogram:9:Histogram exponentialHistogram:10:ExponentialHistogram summary:11:Summary',
  Gauge: 'dataPoints:1:NumberPoint*',
  Sum: 'dataPoints:1:NumberPoint* aggregationTemporality:2:int32 isMonotonic:3:bool',
  Histogram: 'dataPoints:1:HistogramPoint* aggregationTemporality:2:int32',
  ExponentialHistogram: 'dataPoints:1:ExponentialPoint* aggregationTemporality:2:int32',
  Summary: 'dataPoints:1:SummaryPoint*',
  NumberPoint:
    'startTimeUnixNano:2:fixed64 timeUnixNano:3:fixed64 asDouble:4:double? exemplars:5:Exemplar* asInt:6:sfixed64? attributes:7:KeyValue* flags:8:uint32',
  HistogramPoint:
    'startTimeUnixNano:2:fixed64 timeUnixNano:3:fixed64 count:4:fixed64 sum:5:double? bucketCounts:6:fixed64* explicitBounds:7:double* exemplars:8:Exemplar* attributes:9:KeyValue* flags:10:uint32 min:11:double? max:12:double?',
  ExponentialPoint:
    'attributes:1:KeyValue* startTimeUnixNano:2:fixed64 timeUnixNano:3:fixed64 count:4:fixed64 sum:5:double? scale:6:sint32 zeroCount:7:fixed64 positive:8:Buckets negative:9:Buckets flags:10:uint32 exemplars:11:Exemplar* min:12:double? max:13:double? zeroThreshold:14:double',
  Buckets: 'offset:1:sint32 bucketCounts:2:uint64*',
  SummaryPoint:
    'startTimeUnixNano:2:fixed64 timeUnixNano:3:fixed64 count:4:fixed64 sum:5:double quantileValues:6:Quantile* attributes:7:KeyValue* flags:8:uint32',
  Quantile: 'quantile:1:double value:2:double',
  Exemplar:
    'timeUnixNano:2:fixed64 asDouble:3:double? spanId:4:bytes traceId:5:bytes asInt:6:sfixed64? filteredAttributes:7:KeyValue*',
};

/** Messages in one body: an empty one takes two bytes there and a hundred here. */
const MOST_MESSAGES = 1_000_000;

const root = build();
let decoded = 0;

/** The types, each counting what it decodes. Exported for tests, which encode with them. */
export function build(): protobuf.Root {
  const nested = Object.fromEntries(Object.entries(MESSAGES).map(([name, fields]) => [name, typeOf(fields)]));
  const made = protobuf.Root.fromJSON({ nested });
  for (const name of Object.keys(MESSAGES)) {
    const type = made.lookupType(name).setup();
    const { decode } = type;
    type.decode = (...arguments_) => {
      decoded += 1;
      if (decoded > MOST_MESSAGES) throw new BodyInvalid(`it has more than ${MOST_MESSAGES} messages`);
      return decode.apply(type, arguments_);
    };
  }
  return made;
}

function typeOf(definition: string): protobuf.IType {
  const fields: Record<string, protobuf.IField> = {};
  const oneofs: Record<string, protobuf.IOneOf> = {};
  for (const field of definition.split(' ')) {
    const [name = '', number, type = ''] = field.split(':');
    const mark = /[*?]$/.exec(type)?.[0];
    fields[name] = { id: Number(number), type: mark ? type.slice(0, -1) : type };
    if (mark === '*') fields[name].rule = 'repeated';
    if (mark === '?') {
      fields[name].options = { proto3_optional: true };
      oneofs[`_${name}`] = { oneof: [name] };
    }
  }
  return { fields, oneofs };
}

/**
 * @param type of the request, e.g. `TraceRequest`
 * @throws BodyInvalid it is no such message, or ends too early
 */
export function parseProtobuf(body: Buffer, type: string): Message {
  decoded = 0;
  try {
    const message: unknown = root.lookupType(type).decode(body);
    if (isMessage(message)) return message;
  } catch (error) {
    if (error instanceof BodyInvalid) throw error;
  }
  throw new BodyInvalid('it is no OTLP protobuf message, or ends too early');
}
