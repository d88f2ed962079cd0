/** The OpenTelemetry SDK with bounded queues. It is loaded only where telemetry has an endpoint. */

import { readFileSync } from 'node:fs';
import { Agent, type AgentOptions } from 'node:http';
import { Agent as TlsAgent, type AgentOptions as TlsAgentOptions } from 'node:https';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { SecureContextOptions } from 'node:tls';
import type { Meter } from '@opentelemetry/api';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import type { Telemetry } from '../../core/contracts/telemetry.ts';
import { endsWithin } from '../../core/host/deadline.ts';
import { placeOf } from '../../core/host/http/addresses.ts';
import type { Identity } from '../../core/host/identity.ts';
import type { LogStatus } from '../../core/kernel/log/event-log.ts';
import { version } from '../../core/kernel/version.ts';
import { ReconnectingExporter } from './reconnecting-exporter.ts';

/** Spans that wait while the receiver is away; further spans are dropped. */
const SPAN_QUEUE_LIMIT = 4_096;
const EXPORT_TIMEOUT_MS = 5_000;
/** Longest wait for the last exports when the process stops. */
const STOP_TIMEOUT_MS = 3_000;

export interface SdkOptions {
  /** The host and instance that every span and series names. */
  readonly identity: Identity;
  /** @returns base URL of the receiver as it is now; undefined while it does not listen */
  readonly endpoint: () => string | undefined;
  /** @returns file with the certificate of that receiver, where it is of this process and speaks TLS */
  readonly certFile: () => string | undefined;
  /** @returns value of the header `authorization` */
  readonly token: () => Promise<string | undefined>;
  readonly serviceName: string;
  /** Interval of exports of spans, milliseconds. */
  readonly everyMs: number;
  /** Interval of exports of metrics, milliseconds. */
  readonly metricsEveryMs: number;
  readonly log: () => LogStatus;
}

export interface Sdk extends Omit<Telemetry, 'enabled'> {
  /** Exports what is queued, for at most three seconds. */
  stop(): Promise<void>;
}

export function startSdk(options: SdkOptions): Sdk {
  const { endpoint, certFile, token, serviceName, identity, everyMs, metricsEveryMs, log } = options;
  const settings = (base: string, path: string) => ({
    ...exportTo(base, path, certFile()),
    timeoutMillis: EXPORT_TIMEOUT_MS,
    headers: async () => authorizationHeader(await token()),
  });
  const resource = resourceFromAttributes({
    'service.name': serviceName,
    'service.version': version,
    'host.name': identity.host,
    'service.instance.id': identity.instance,
  });
  const spans = new BatchSpanProcessor({
    exporter: new ReconnectingExporter(
      endpoint,
      (base) => new OTLPTraceExporter(settings(base, '/v1/traces')),
    ),
    maxQueueSize: SPAN_QUEUE_LIMIT,
    scheduledDelayMillis: everyMs,
    exportTimeoutMillis: EXPORT_TIMEOUT_MS,
  });
  const metricExporter = new ReconnectingExporter(
    endpoint,
    (base) => new OTLPMetricExporter(settings(base, '/v1/metrics')),
  );
  const metrics = new PeriodicExportingMetricReader({
    exporter: metricExporter,
    exportIntervalMillis: metricsEveryMs,
    exportTimeoutMillis: Math.min(metricsEveryMs, EXPORT_TIMEOUT_MS),
  });
  const tracers = new TracerProvider({ resource, spanProcessors: [spans] });
  const meters = new MeterProvider({ resource, readers: [metrics] });
  const stopMeasuring = measureProcess(meters.getMeter('holdfast.process', version), log);
  return {
    tracer: (scope) => tracers.getTracer(scope, version),
    meter: (scope) => meters.getMeter(scope, version),
    async exportMetrics() {
      // A failure is reported to the SDK's own handler; the exporter keeps it.
      await metrics.forceFlush().catch(() => {});
      return metricExporter.fault;
    },
    spanExport: (name) => ({ processor: spans, resource, instrumentationScope: { name, version } }),
    async stop() {
      const exported = Promise.allSettled([tracers.shutdown(), meters.shutdown()]);
      await endsWithin(STOP_TIMEOUT_MS, exported);
      stopMeasuring();
    },
  };
}

/** @param base of the receiver: `http://…`, `https://…`, or `unix:<path of a socket>` */
function exportTo(base: string, path: string, certFile: string | undefined) {
  const { socketPath, root } = placeOf(base);
  if (socketPath === undefined) {
    if (certFile === undefined) return { url: root + path };
    const pinned = {
      maxCachedSessions: 0,
      allowPartialTrustChain: true,
      checkServerIdentity: () => undefined,
    };
    return { url: root + path, httpAgentOptions: () => new PinnedAgent(certFile, pinned) };
  }
  const options: AgentOptions & { readonly socketPath: string } = { socketPath };
  return { url: root + path, httpAgentOptions: () => new Agent(options) };
}

/** Trusts the certificate of the receiver of this process and no other, whatever name it is for. */
class PinnedAgent extends TlsAgent {
  readonly #certFile: string;

  constructor(
    certFile: string,
    options: TlsAgentOptions & Pick<SecureContextOptions, 'allowPartialTrustChain'>,
  ) {
    super(options);
    this.#certFile = certFile;
  }

  override createConnection(...[options, connected]: Parameters<TlsAgent['createConnection']>) {
    // Read for each connection, because it is renewed.
    // The authorities behind it in the file would let other certificates in.
    const [ca] =
      readFileSync(this.#certFile, 'utf8').match(/-----BEGIN[\s\S]+?-----END CERTIFICATE-----/) ?? [];
    return super.createConnection({ ...options, ca }, connected);
  }
}

function authorizationHeader(token: string | undefined): Record<string, string> {
  return token === undefined ? {} : { authorization: token };
}

const DELAY_RESOLUTION_MS = 50;
const NANOSECONDS = 1e9;

/**
 * Metrics of the process under the names of the semantic conventions: delay of the event loop since the last export,
 * heap, memory, records that wait for the log, and a heartbeat.
 *
 * @returns stops measuring
 */
function measureProcess(meter: Meter, log: () => LogStatus): () => void {
  const delay = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS });
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
