import fc from 'fast-check';
import type { Signal } from '../../../src/plugins/otlp/decode/decode.ts';

/** A request in its JSON form. */
type Request<Field extends string = string> = Readonly<Record<Field, Record<string, unknown>[]>>;

export const inTraces = (...spans: unknown[]): Request<'resourceSpans'> => ({
  resourceSpans: [{ scopeSpans: [{ spans }] }],
});
export const inLogs = (...logRecords: unknown[]): Request<'resourceLogs'> => ({
  resourceLogs: [{ scopeLogs: [{ logRecords }] }],
});
export const inMetrics = (...metrics: unknown[]): Request<'resourceMetrics'> => ({
  resourceMetrics: [{ scopeMetrics: [{ metrics }] }],
});

const text = fc.string({ unit: 'grapheme', maxLength: 8 });
/** JSON has no negative zero. */
const double = fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0);
const value = fc.letrec((tie) => ({
  any: fc.oneof(
    { depthSize: 'small' },
    fc.record({ stringValue: text }),
    fc.record({ boolValue: fc.boolean() }),
    fc.record({ intValue: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String) }),
    fc.record({ doubleValue: double }),
    fc.record({
      bytesValue: fc.uint8Array({ maxLength: 6 }).map((bytes) => Buffer.from(bytes).toString('base64')),
    }),
    fc.constant({}),
    fc.record({ arrayValue: fc.record({ values: fc.array(tie('any'), { maxLength: 3 }) }) }),
    fc.record({
      kvlistValue: fc.record({
        values: fc.array(fc.record({ key: text, value: tie('any') }), { maxLength: 3 }),
      }),
    }),
  ),
})).any;
const attributes = fc.array(fc.record({ key: text, value }), { maxLength: 3 });
const hex = (bytes: number) =>
  fc.uint8Array({ minLength: bytes, maxLength: bytes }).map((one) => Buffer.from(one).toString('hex'));
/** Any at all. */
export const time: fc.Arbitrary<string> = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map(String);
const count = fc.nat({ max: 2 ** 31 });
const some = <T>(one: fc.Arbitrary<T>) => fc.array(one, { maxLength: 2 });

const exemplars = some(
  fc.record({
    timeUnixNano: time,
    asDouble: double,
    traceId: hex(16),
    spanId: hex(8),
    filteredAttributes: attributes,
  }),
);
const counts = some(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map(String));

/**
 * Requests of each signal, with whatever a producer may write into their fields.
 *
 * @param at of spans and records @param pointAt of data points
 */
export function bodies(
  at: fc.Arbitrary<string>,
  pointAt: fc.Arbitrary<string>,
): readonly [Signal, fc.Arbitrary<Request>][] {
  const spanArbitrary = fc.record({
    traceId: hex(16),
    spanId: hex(8),
    parentSpanId: fc.oneof(hex(8), fc.constant('')),
    traceState: text,
    name: text,
    kind: fc.nat({ max: 7 }),
    startTimeUnixNano: at,
    endTimeUnixNano: time,
    attributes,
    droppedAttributesCount: count,
    events: some(fc.record({ timeUnixNano: time, name: text, attributes })),
    links: some(fc.record({ traceId: hex(16), spanId: hex(8), traceState: text, attributes })),
    status: fc.record({ code: fc.nat({ max: 4 }), message: text }),
    flags: count,
  });
  const logArbitrary = fc.record({
    timeUnixNano: at,
    observedTimeUnixNano: time,
    severityNumber: fc.nat({ max: 30 }),
    severityText: text,
    body: value,
    attributes,
    flags: count,
    traceId: hex(16),
    spanId: hex(8),
    eventName: text,
  });
  const pointFields = {
    timeUnixNano: pointAt,
    startTimeUnixNano: time,
    attributes,
    flags: fc.nat({ max: 1 }),
  };
  const metricArbitrary = fc.oneof(
    fc.record({
      name: text,
      gauge: fc.record({ dataPoints: some(fc.record({ ...pointFields, asDouble: double, exemplars })) }),
    }),
    fc.record({
      name: text,
      sum: fc.record({
        isMonotonic: fc.boolean(),
        aggregationTemporality: fc.nat({ max: 3 }),
        dataPoints: some(
          fc.record({
            ...pointFields,
            asInt: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String),
          }),
        ),
      }),
    }),
    fc.record({
      name: text,
      histogram: fc.record({
        dataPoints: some(
          fc.record({
            ...pointFields,
            count: time,
            sum: double,
            min: double,
            bucketCounts: counts,
            explicitBounds: some(double),
          }),
        ),
      }),
    }),
    fc.record({
      name: text,
      exponentialHistogram: fc.record({
        dataPoints: some(
          fc.record({
            ...pointFields,
            count: time,
            scale: fc.integer(),
            zeroCount: time,
            positive: fc.record({ offset: fc.integer(), bucketCounts: counts }),
          }),
        ),
      }),
    }),
    fc.record({
      name: text,
      summary: fc.record({
        dataPoints: some(
          fc.record({
            ...pointFields,
            count: time,
            sum: double,
            quantileValues: some(fc.record({ quantile: double, value: double })),
          }),
        ),
      }),
    }),
  );

  return [
    ['traces', fc.array(spanArbitrary, { maxLength: 3 }).map((items) => inTraces(...items))],
    ['logs', fc.array(logArbitrary, { maxLength: 3 }).map((items) => inLogs(...items))],
    ['metrics', fc.array(metricArbitrary, { maxLength: 3 }).map((items) => inMetrics(...items))],
  ];
}
