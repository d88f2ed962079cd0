import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Meter } from '@opentelemetry/api';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { BatchSpanProcessor } from '@opentelemetry/sdk-trace';
import type { Histogram, HistogramDefinition, Spans } from '../../core/contracts/telemetry.ts';
import type { LogStatus } from '../../core/kernel/log/event-log.ts';
import { version } from '../../core/kernel/version.ts';
import { Histograms } from './histograms.ts';
import { LateExporter } from './late-exporter.ts';
import { spansOf } from './spans.ts';

/** Spans that wait for a receiver that is away; more are dropped. */
const QUEUE_LIMIT = 4_096;
const DEADLINE_MS = 5_000;
/** For the last batches at a stop. */
const LAST_MS = 3_000;

export interface SdkOptions {
  /** Base of the receiver as it is now; undefined while it is not there. */
  readonly endpoint: () => string | undefined;
  readonly token: () => Promise<string | undefined>;
  readonly serviceName: string;
  readonly everyMs: number;
  readonly metricsEveryMs: number;
  readonly log: () => LogStatus;
}

export interface Sdk {
  spans(scope: string): Spans;
  histogram(scope: string, definition: HistogramDefinition): Histogram;
  meter(scope: string): Meter;
  /** Sends what is left. */
  stop(): Promise<void>;
}

/** Starts the SDK: bounded queues, exports in the background. Loaded only where telemetry has an endpoint. */
export function startSdk({ endpoint, token, serviceName, everyMs, metricsEveryMs, log }: SdkOptions): Sdk {
  const settings = (base: string, path: string) => ({
    url: `${base.replace(/\/+$/, '')}${path}`,
    timeoutMillis: DEADLINE_MS,
    headers: async () => headersOf(await token()),
  });
  const resource = resourceFromAttributes({ 'service.name': serviceName, 'service.version': version });
  const finished = new BatchSpanProcessor({
    exporter: new LateExporter(endpoint, (base) => new OTLPTraceExporter(settings(base, '/v1/traces'))),
    maxQueueSize: QUEUE_LIMIT,
    scheduledDelayMillis: everyMs,
    exportTimeoutMillis: DEADLINE_MS,
  });
  const histograms = new Histograms(resource, version);
  const meters = new MeterProvider({
    resource,
    readers: [
      new PeriodicExportingMetricReader({
        exporter: new LateExporter(endpoint, (base) => new OTLPMetricExporter(settings(base, '/v1/metrics'))),
        metricProducers: [histograms],
        exportIntervalMillis: metricsEveryMs,
        exportTimeoutMillis: Math.min(metricsEveryMs, DEADLINE_MS),
      }),
    ],
  });
  const endMeasuring = measureProcess(meters.getMeter('holdfast.process', version), log);
  return {
    spans: (scope) => spansOf(finished, resource, scope, version),
    histogram: (scope, definition) => histograms.of(scope, definition),
    meter: (scope) => meters.getMeter(scope, version),
    async stop() {
      const sent = Promise.allSettled([finished.shutdown(), meters.shutdown()]);
      // A receiver that is away must not hold a stop up.
      await Promise.race([sent, sleep(LAST_MS, undefined, { ref: false })]);
      endMeasuring();
    },
  };
}

function headersOf(token: string | undefined): Record<string, string> {
  return token === undefined ? {} : { authorization: token };
}

const RESOLUTION_MS = 50;
const NANOSECONDS = 1e9;

/**
 * The process itself, by the names of the conventions: delay of the event loop since the export before, heap, memory,
 * what waits for the log, and a heartbeat that goes on whatever else stands still.
 *
 * @returns ends it
 */
function measureProcess(meter: Meter, log: () => LogStatus): () => void {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  const p50 = meter.createObservableGauge('nodejs.eventloop.delay.p50', { unit: 's' });
  const p99 = meter.createObservableGauge('nodejs.eventloop.delay.p99', { unit: 's' });
  const most = meter.createObservableGauge('nodejs.eventloop.delay.max', { unit: 's' });
  const heap = meter.createObservableGauge('v8js.memory.heap.used', { unit: 'By' });
  const resident = meter.createObservableGauge('process.memory.usage', { unit: 'By' });
  const queued = meter.createObservableGauge('holdfast.log.queued', { unit: '{record}' });
  const queuedBytes = meter.createObservableGauge('holdfast.log.queued.size', { unit: 'By' });
  const heartbeat = meter.createObservableGauge('router.diag.heartbeat', {
    description: 'Always 1: this host sends telemetry.',
  });
  const all = [p50, p99, most, heap, resident, queued, queuedBytes, heartbeat];
  const observe: Parameters<Meter['addBatchObservableCallback']>[0] = (result) => {
    result.observe(p50, delay.percentile(50) / NANOSECONDS);
    result.observe(p99, delay.percentile(99) / NANOSECONDS);
    result.observe(most, delay.max / NANOSECONDS);
    delay.reset();
    const { heapUsed, rss } = process.memoryUsage();
    result.observe(heap, heapUsed);
    result.observe(resident, rss);
    const status = log();
    result.observe(queued, status.queued);
    result.observe(queuedBytes, status.queuedBytes);
    result.observe(heartbeat, 1);
  };
  meter.addBatchObservableCallback(observe, all);
  return () => {
    meter.removeBatchObservableCallback(observe, all);
    delay.disable();
  };
}
