import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Meter } from '@opentelemetry/api';
import type { LogStatus } from '../../core/kernel/log/event-log.ts';

const RESOLUTION_MS = 50;
const NANOSECONDS = 1e9;

/**
 * The process itself, by the names of the conventions: delay of the event loop since the export before, heap, memory,
 * what waits for the log, and a heartbeat that goes on whatever else stands still.
 *
 * @returns ends it
 */
export function measureProcess(meter: Meter, log: () => LogStatus): () => void {
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
