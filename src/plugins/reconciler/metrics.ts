import type { SetAnswer } from '../../core/contracts/router.ts';
import type { Counter, Histogram, Metrics } from '../../core/host/metrics/metrics.ts';

const HEAL_SECONDS = [0.025, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** How often and how fast legs are fixed. */
export class LegMetrics {
  readonly #heals: Counter;
  readonly #tries: Counter;
  readonly #latency: Histogram;

  constructor(metrics: Metrics) {
    this.#heals = metrics.counter('reconciler_heals_total', {
      help: 'Legs that had lost their static address and have it again.',
      labels: ['intf'],
    });
    this.#tries = metrics.counter('reconciler_tries_total', {
      help: 'Writes for a leg, by how the router answered.',
      labels: ['intf', 'answer'],
    });
    this.#latency = metrics.histogram('reconciler_heal_seconds', {
      help: "From the router's event to the reading that shows the address again.",
      buckets: HEAL_SECONDS,
    });
  }

  tried(intf: string, answer: SetAnswer['kind']): void {
    this.#tries.inc({ intf, answer });
  }

  /** @param latencyMs undefined when no event began the story, or it did not say when it was published */
  healed(intf: string, latencyMs: number | undefined): void {
    this.#heals.inc({ intf });
    if (latencyMs !== undefined) this.#latency.observe(latencyMs / 1_000);
  }
}
