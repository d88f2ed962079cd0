import { type Attributes, type HrTime, ValueType } from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import {
  AggregationTemporality,
  type CollectionResult,
  DataPointType,
  type HistogramMetricData,
  type MetricProducer,
} from '@opentelemetry/sdk-metrics';
import type { Histogram, HistogramDefinition, Series } from '../../core/contracts/telemetry.ts';
import { Distribution } from '../../core/host/metrics/distribution.ts';
import { hrTime } from './spans.ts';

/** Of one histogram, as the SDK has it. */
const MOST_SERIES = 2_000;
/** By the specification, on the series that stands for those that were too many. */
const OVERFLOW: Attributes = { 'otel.metric.overflow': true };

/**
 * Histograms whose series are kept by who records: the SDK's own sort and compare all attributes for each value. The
 * SDK's reader collects and exports them like its own.
 */
export class Histograms implements MetricProducer {
  readonly #resource: Resource;
  readonly #scopes = new Map<string, Map<string, BoundedHistogram>>();
  readonly #version: string;

  constructor(resource: Resource, version: string) {
    this.#resource = resource;
    this.#version = version;
  }

  /** Asked twice for a name in a scope, it gives the same. */
  of(scope: string, definition: HistogramDefinition): Histogram {
    const known = this.#scopes.get(scope) ?? new Map<string, BoundedHistogram>();
    this.#scopes.set(scope, known);
    const histogram = known.get(definition.name) ?? new BoundedHistogram(definition);
    known.set(definition.name, histogram);
    return histogram;
  }

  async collect(): Promise<CollectionResult> {
    const now = hrTime(Date.now());
    const scopeMetrics = [...this.#scopes].map(([name, histograms]) => ({
      scope: { name, version: this.#version },
      metrics: [...histograms.values()].flatMap((one) => one.collect(now)),
    }));
    return {
      resourceMetrics: {
        resource: this.#resource,
        scopeMetrics: scopeMetrics.filter(({ metrics }) => metrics.length > 0),
      },
      errors: [],
    };
  }
}

class BoundedHistogram implements Histogram {
  readonly #definition: HistogramDefinition;
  readonly #series = new Map<string, Counted>();
  #overflow: Counted | undefined;

  constructor(definition: HistogramDefinition) {
    this.#definition = definition;
  }

  of(attributes: Attributes): Series {
    const sorted = Object.entries(attributes).toSorted(([a], [b]) => (a < b ? -1 : 1));
    const name = JSON.stringify(sorted);
    const known = this.#series.get(name);
    if (known) return known;
    const { bounds } = this.#definition;
    if (this.#series.size >= MOST_SERIES - 1) {
      this.#overflow ??= new Counted(OVERFLOW, bounds);
      return this.#overflow;
    }
    const series = new Counted(attributes, bounds);
    this.#series.set(name, series);
    return series;
  }

  /** Nothing where nothing was recorded. */
  collect(now: HrTime): HistogramMetricData[] {
    const series = [...this.#series.values(), ...(this.#overflow ? [this.#overflow] : [])];
    const dataPoints = series.filter(({ count }) => count > 0).map((one) => one.point(now));
    if (dataPoints.length === 0) return [];
    const { name, description, unit } = this.#definition;
    return [
      {
        descriptor: { name, description, unit, valueType: ValueType.DOUBLE },
        aggregationTemporality: AggregationTemporality.CUMULATIVE,
        dataPointType: DataPointType.HISTOGRAM,
        dataPoints,
      },
    ];
  }
}

class Counted extends Distribution implements Series {
  readonly #attributes: Attributes;
  readonly #since = hrTime(Date.now());

  constructor(attributes: Attributes, bounds: readonly number[]) {
    super(bounds);
    this.#attributes = attributes;
  }

  point(now: HrTime): HistogramMetricData['dataPoints'][number] {
    const { bounds, counts, count, sum, min, max } = this;
    const value = { buckets: { boundaries: [...bounds], counts: [...counts] }, count, sum, min, max };
    return { attributes: this.#attributes, startTime: this.#since, endTime: now, value };
  }
}
