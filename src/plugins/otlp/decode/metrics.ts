import type { SignalTable } from '../../../core/contracts/columnar-tables.ts';
import { attributes } from './attributes.ts';
import type { RowValues } from './row-writer.ts';
import type { Rows, Scope } from './rows.ts';
import {
  anyTime,
  choice,
  double,
  flag,
  given,
  ItemRefused,
  id,
  integer,
  type Message,
  message,
  messages,
  name,
  rowTime,
  small,
} from './values.ts';

const TEMPORALITIES = ['Unspecified', 'Delta', 'Cumulative'] as const;
/** Buckets, bounds, quantiles or exemplars of one point. */
const MOST_PARTS = 10_000;
/** The flag of a point that says the series has ended: it has no value. */
const NO_RECORDED_VALUE = 1;

type PointColumns = (point: Message) => RowValues;

/** Each kind of metric: its field, its table, and the columns that only it has. */
const KINDS: readonly [field: string, table: SignalTable, ofPoint: PointColumns][] = [
  ['gauge', 'otel_metrics_gauge', numberColumns],
  ['sum', 'otel_metrics_sum', numberColumns],
  ['histogram', 'otel_metrics_histogram', histogramColumns],
  ['exponentialHistogram', 'otel_metrics_exponential_histogram', exponentialColumns],
  ['summary', 'otel_metrics_summary', summaryColumns],
];

/** Every data point of an ExportMetricsServiceRequest as a row of its kind's table. */
export function mapMetrics(request: Message, rows: Rows, nowMs: number): void {
  const levels = { resources: 'resourceMetrics', scopes: 'scopeMetrics', items: 'metrics' };
  const mapMetric = (metric: Message, scope: Scope) => {
    for (const [field, table, ofPoint] of KINDS) {
      const data = given(metric, field);
      if (data === undefined) continue;
      const holder = message(data, field);
      const ofMetric = {
        MetricName: required(name(metric.name, 'the name'), 'the name of the metric'),
        MetricDescription: name(metric.description, 'the description'),
        MetricUnit: name(metric.unit, 'the unit'),
        ...(table !== 'otel_metrics_gauge' && table !== 'otel_metrics_summary' && temporality(holder)),
        ...(table === 'otel_metrics_sum' && { IsMonotonic: flag(holder.isMonotonic, 'isMonotonic') }),
      };
      for (const point of messages(holder.dataPoints, 'dataPoints')) {
        rows.refusable(() => {
          const at = rowTime(point.timeUnixNano, nowMs, 'timeUnixNano');
          rows.add(table, at.day, scope, {
            ...ofMetric,
            Attributes: attributes(point.attributes),
            StartTimeUnix: anyTime(point.startTimeUnixNano, 'startTimeUnixNano'),
            TimeUnix: at.nanos,
            Flags: small(point.flags, 'flags'),
            ...ofPoint(point),
          });
        });
      }
      return;
    }
  };
  rows.walk(request, levels, mapMetric, pointsOf);
}

/** How many points a metric has; it may be anything. */
function pointsOf(metric: unknown): number {
  for (const [field] of KINDS) {
    const points = (metric as Record<string, { dataPoints?: unknown } | undefined> | null)?.[field]
      ?.dataPoints;
    if (Array.isArray(points)) return points.length;
  }
  return 1;
}

function temporality(holder: Message): RowValues {
  const value = holder.aggregationTemporality;
  return {
    AggregationTemporality: choice(value, TEMPORALITIES, 'AGGREGATION_TEMPORALITY_', 'the temporality'),
  };
}

function numberColumns(point: Message): RowValues {
  return { Value: numberOf(point), ...exemplarColumns(point.exemplars) };
}

/** A point without a value is no zero. */
function numberOf(point: Message): number | string {
  const asDouble = given(point, 'asDouble');
  if (asDouble !== undefined) return double(asDouble, 'asDouble');
  const asInt = given(point, 'asInt');
  if (asInt !== undefined) return Number(integer(asInt, 'asInt', true));
  if (small(point.flags, 'flags') & NO_RECORDED_VALUE) return 'nan';
  throw new ItemRefused('the point has no value');
}

function histogramColumns(point: Message): RowValues {
  const counts = integers(point.bucketCounts, 'bucketCounts');
  const bounds = doubles(point.explicitBounds, 'explicitBounds');
  if (counts.length !== 0 && counts.length !== bounds.length + 1) {
    throw new ItemRefused('bucketCounts and explicitBounds do not fit each other');
  }
  return {
    ...totals(point),
    ...extremes(point),
    BucketCounts: counts,
    ExplicitBounds: bounds,
    ...exemplarColumns(point.exemplars),
  };
}

function exponentialColumns(point: Message): RowValues {
  const positive = message(point.positive, 'positive');
  const negative = message(point.negative, 'negative');
  return {
    ...totals(point),
    ...extremes(point),
    Scale: small(point.scale, 'scale'),
    ZeroCount: integer(point.zeroCount, 'zeroCount'),
    ZeroThreshold: double(point.zeroThreshold ?? 0, 'zeroThreshold'),
    PositiveOffset: small(positive.offset, 'the positive offset'),
    PositiveBucketCounts: integers(positive.bucketCounts, 'the positive bucketCounts'),
    NegativeOffset: small(negative.offset, 'the negative offset'),
    NegativeBucketCounts: integers(negative.bucketCounts, 'the negative bucketCounts'),
    ...exemplarColumns(point.exemplars),
  };
}

function summaryColumns(point: Message): RowValues {
  const quantiles = messages(point.quantileValues, 'quantileValues', MOST_PARTS);
  return {
    ...totals(point),
    'ValueAtQuantiles.Quantile': quantiles.map(({ quantile }) => double(quantile ?? 0, 'a quantile')),
    'ValueAtQuantiles.Value': quantiles.map(({ value }) => double(value ?? 0, 'the value of a quantile')),
  };
}

function totals(point: Message): RowValues {
  return { Count: integer(point.count, 'count'), Sum: double(given(point, 'sum') ?? 0, 'sum') };
}

function extremes(point: Message): RowValues {
  const min = given(point, 'min');
  const max = given(point, 'max');
  return {
    ...(min !== undefined && { Min: double(min, 'min') }),
    ...(max !== undefined && { Max: double(max, 'max') }),
  };
}

function exemplarColumns(value: unknown): RowValues {
  const exemplars = messages(value, 'exemplars', MOST_PARTS);
  return {
    'Exemplars.FilteredAttributes': exemplars.map((one) => attributes(one.filteredAttributes)),
    'Exemplars.TimeUnix': exemplars.map((one) => anyTime(one.timeUnixNano, 'the time of an exemplar')),
    'Exemplars.Value': exemplars.map(numberOf),
    'Exemplars.SpanId': exemplars.map((one) => id(one.spanId, 8, 'the spanId of an exemplar')),
    'Exemplars.TraceId': exemplars.map((one) => id(one.traceId, 16, 'the traceId of an exemplar')),
  };
}

function integers(value: unknown, what: string): string[] {
  return array(value, what).map((one) => integer(one, what));
}

function doubles(value: unknown, what: string): (number | string)[] {
  return array(value, what).map((one) => double(one, what));
}

function array(value: unknown, what: string): readonly unknown[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw new ItemRefused(`${what} is no list`);
  if (value.length > MOST_PARTS) throw new ItemRefused(`it has more than ${MOST_PARTS} ${what}`);
  return value;
}

function required(value: string, what: string): string {
  if (value === '') throw new ItemRefused(`${what} is missing`);
  return value;
}
