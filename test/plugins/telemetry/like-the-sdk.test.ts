import {
  type Attributes,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { MeterProvider, MetricReader, type ScopeMetrics } from '@opentelemetry/sdk-metrics';
import {
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import test from 'ava';
import fc from 'fast-check';
import { Histograms } from '../../../src/plugins/telemetry/histograms.ts';
import { spansOf } from '../../../src/plugins/telemetry/spans.ts';

const resource = resourceFromAttributes({ 'service.name': 'test' });
const definition = { name: 'h', description: 'a histogram', unit: 's', bounds: [0, 0.5, 1, 10] };

class Read extends MetricReader {
  protected async onForceFlush(): Promise<void> {}
  protected async onShutdown(): Promise<void> {}
}

/** Without what differs from run to run. */
function comparable(scopes: readonly ScopeMetrics[]) {
  return scopes.map(({ scope, metrics }) => ({
    scope: { name: scope.name, version: scope.version },
    metrics: metrics.map(({ descriptor, aggregationTemporality, dataPointType, dataPoints }) => ({
      descriptor: { ...descriptor, type: undefined, advice: undefined },
      aggregationTemporality,
      dataPointType,
      points: dataPoints
        .map(({ attributes, value }) => ({ attributes: Object.entries(attributes).sort(), value }))
        .sort((a, b) => (JSON.stringify(a.attributes) < JSON.stringify(b.attributes) ? -1 : 1)),
    })),
  }));
}

test('[O24] a histogram counts as the SDK’s own does, whatever comes', async (t) => {
  const attributes: fc.Arbitrary<Attributes> = fc.dictionary(
    fc.constantFrom('a', 'b', 'c'),
    fc.constantFrom('x', 'y'),
  );
  const value = fc.oneof(fc.constantFrom(0, 0.5, 1, 10), fc.double({ min: 0, max: 20, noNaN: true }));
  const records = fc.array(fc.tuple(attributes, value), { minLength: 1, maxLength: 60 });
  await fc.assert(
    fc.asyncProperty(records, async (all) => {
      const ours = new Histograms(resource, '1');
      const reader = new Read({});
      const meter = new MeterProvider({ resource, readers: [reader] }).getMeter('s', '1');
      const { name, description, unit, bounds } = definition;
      const theirs = meter.createHistogram(name, {
        description,
        unit,
        advice: { explicitBucketBoundaries: bounds },
      });
      for (const [given, recorded] of all) {
        ours.of('s', definition).of(given).record(recorded);
        theirs.record(recorded, given);
      }
      const [mine, sdk] = await Promise.all([ours.collect(), reader.collect()]);
      t.deepEqual(
        comparable(mine.resourceMetrics.scopeMetrics),
        comparable(sdk.resourceMetrics.scopeMetrics),
      );
    }),
    { numRuns: 60 },
  );
});

test('[O24] a histogram that nothing was recorded of is not told, and of too many series one stands for the rest', async (t) => {
  const ours = new Histograms(resource, '1');
  const histogram = ours.of('s', definition);
  histogram.of({ a: 'x' });
  t.deepEqual((await ours.collect()).resourceMetrics.scopeMetrics, []);
  for (let key = 0; key < 2_500; key += 1) histogram.of({ key: `k${key}` }).record(1);
  histogram.of({ key: 'k0' }).record(Number.NaN);
  const [metric] = (await ours.collect()).resourceMetrics.scopeMetrics[0]?.metrics ?? [];
  const points = metric?.dataPoints ?? [];
  t.is(points.length, 1_999);
  t.deepEqual(points.at(-1)?.attributes, { 'otel.metric.overflow': true });
  const counts = points.map(({ value }) => (value as { count: number }).count);
  t.is(
    counts.reduce((sum, count) => sum + count, 0),
    2_500,
  );
});

/** What an exporter reads of a span. */
const told = (span: ReadableSpan) => ({
  name: span.name,
  kind: span.kind,
  parent: span.parentSpanContext,
  startTime: span.startTime,
  endTime: span.endTime,
  duration: span.duration,
  status: span.status,
  attributes: span.attributes,
  links: span.links,
  events: span.events,
  ended: span.ended,
  resource: span.resource.attributes,
  scope: { name: span.instrumentationScope.name, version: span.instrumentationScope.version },
  dropped: [span.droppedAttributesCount, span.droppedEventsCount, span.droppedLinksCount],
  traceFlags: span.spanContext().traceFlags,
  below: span.parentSpanContext ? span.spanContext().traceId : undefined,
});

test('[O24] a span is exported as one of the SDK’s tracer is, below a sampled parent, an unsampled one and none', async (t) => {
  const parents: (SpanContext | undefined)[] = [
    undefined,
    {
      traceId: '0af7651916cd43dd8448eb211c80319c',
      spanId: 'b7ad6b7169203331',
      traceFlags: 1,
      isRemote: true,
    },
    {
      traceId: '0af7651916cd43dd8448eb211c80319c',
      spanId: 'b7ad6b7169203331',
      traceFlags: 0,
      isRemote: true,
    },
  ];
  const startMs = 1_790_000_000_123.25;
  const endMs = startMs + 1_250.5;
  const attributes = { 'http.method': 'POST', 'http.status_code': 500 };
  for (const parent of parents) {
    const [theirs, ours] = [new InMemorySpanExporter(), new InMemorySpanExporter()];
    const spanProcessors = [new SimpleSpanProcessor({ exporter: theirs })];
    const tracer = new TracerProvider({ resource, spanProcessors }).getTracer('s', '1');
    const context = parent ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT;
    const span = tracer.startSpan(
      'POST /x',
      { kind: SpanKind.SERVER, startTime: startMs, attributes },
      context,
    );
    span.setStatus({ code: SpanStatusCode.ERROR }).end(endMs);
    const spans = spansOf(new SimpleSpanProcessor({ exporter: ours }), resource, 's', '1');
    const own = { context: spans.begin(parent), parent, name: 'POST /x', kind: SpanKind.SERVER };
    spans.end({ ...own, startMs, endMs, attributes, failed: true });
    const [mine, sdk] = [ours.getFinishedSpans(), theirs.getFinishedSpans()];
    t.deepEqual(mine.map(told), sdk.map(told));
    t.is(mine.length, parent?.traceFlags === 0 ? 0 : 1);
    for (const one of mine) {
      t.regex(one.spanContext().traceId, /^[\da-f]{32}$/);
      t.regex(one.spanContext().spanId, /^[\da-f]{16}$/);
      t.not(one.spanContext().spanId, parent?.spanId);
    }
  }
});
