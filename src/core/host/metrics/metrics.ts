import { performance } from 'node:perf_hooks';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { version } from '../../kernel/version.ts';

export type { Counter, Gauge, Histogram } from 'prom-client';

/** Every metric of ours begins with it. */
const PREFIX = 'holdfast_';
/** A longer period sees fewer stalls, a shorter one costs wake-ups of an idle machine. */
const LAG_SAMPLE_MS = 500;
const LAG_SAMPLES = 120;

/** The name of a metric, and the labels that distinguish its values. */
export interface MetricOptions {
  /** One sentence for whoever reads `/metrics`. */
  readonly help: string;
  /** Label names. Their values must come from a small, fixed set: each combination is kept for ever. */
  readonly labels?: readonly string[];
}

export interface GaugeOptions extends MetricOptions {
  /** Called at each scrape instead of `set` at each change, for values that change often and are read seldom. */
  readonly collect?: (gauge: Gauge) => void;
}

export interface HistogramOptions extends MetricOptions {
  /** Upper bounds, in the unit of the metric. */
  readonly buckets: readonly number[];
}

/**
 * The metrics of one runtime (C14), with a registry of its own, so that two runtimes in one process do not mix.
 * Names are given without the prefix `holdfast_`; asking twice for one name gives the same metric.
 */
export class Metrics {
  readonly #registry = new Registry();
  readonly #lag = new LoopLag();

  /** @throws TypeError the name is taken by another kind of metric */
  counter(name: string, options: MetricOptions): Counter {
    return this.#once(name, Counter, () => new Counter(this.#configuration(name, options)));
  }

  /** @throws TypeError the name is taken by another kind of metric */
  gauge(name: string, { collect, ...options }: GaugeOptions): Gauge {
    return this.#once(name, Gauge, () => {
      const configuration = this.#configuration(name, options);
      if (!collect) return new Gauge(configuration);
      return new Gauge({
        ...configuration,
        collect() {
          collect(this);
        },
      });
    });
  }

  /** @throws TypeError the name is taken by another kind of metric */
  histogram(name: string, { buckets, ...options }: HistogramOptions): Histogram {
    return this.#once(name, Histogram, () => {
      return new Histogram({ ...this.#configuration(name, options), buckets: [...buckets] });
    });
  }

  /** Everything in Prometheus' text format. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /**
   * Begins to measure the process itself. CPU and memory are read at the scrape; only the event loop's lag is
   * sampled, twice a second. Does nothing when it runs already.
   */
  start(): void {
    const lag = this.#lag;
    lag.start();
    this.gauge('build_info', {
      help: 'Always 1; the labels say what runs.',
      labels: ['version', 'node'],
    }).set({ version, node: process.versions.node }, 1);
    this.gauge('process_start_time_seconds', { help: 'When the process began, Unix time.' }).set(
      performance.timeOrigin / 1000,
    );
    this.gauge('process_resident_memory_bytes', {
      help: 'Resident set size.',
      collect: (gauge) => gauge.set(process.memoryUsage.rss()),
    });
    this.gauge('event_loop_lag_seconds', {
      help: 'How late the event loop was: the newest sample.',
      collect: (gauge) => gauge.set(lag.newestMs / 1000),
    });
    this.gauge('event_loop_lag_max_seconds', {
      help: 'How late the event loop was at worst in the last minute.',
      collect: (gauge) => gauge.set(lag.worstMs / 1000),
    });
    this.#totals();
  }

  /** Ends sampling; the metrics can still be read. */
  stop(): void {
    this.#lag.stop();
  }

  /** Totals that the system counts already: each scrape takes them over as they are. */
  #totals(): void {
    const total = (name: string, help: string, labels: string[], read: () => [string, number][]) =>
      this.#once(name, Counter, () => {
        const collect = function (this: Counter) {
          this.reset();
          for (const [value, seconds] of read()) this.inc(labels[0] ? { [labels[0]]: value } : {}, seconds);
        };
        return new Counter({ ...this.#configuration(name, { help, labels }), collect });
      });
    total('process_cpu_seconds_total', 'CPU time used.', ['mode'], () => {
      const { user, system } = process.cpuUsage();
      return [
        ['user', user / 1e6],
        ['system', system / 1e6],
      ];
    });
    total('event_loop_active_seconds_total', 'Time the event loop was not idle.', [], () => [
      ['', performance.eventLoopUtilization().active / 1000],
    ]);
  }

  #configuration(name: string, { help, labels = [] }: MetricOptions) {
    return { name: PREFIX + name, help, labelNames: [...labels], registers: [this.#registry] };
  }

  #once<T>(name: string, kind: new (...args: never[]) => T, make: () => T): T {
    const existing: unknown = this.#registry.getSingleMetric(PREFIX + name);
    if (!existing) return make();
    if (existing instanceof kind) return existing;
    throw new TypeError(`${PREFIX}${name} is already another kind of metric`);
  }
}

/** A timer that should fire every half second: its delay is the time for which the event loop was blocked. */
class LoopLag {
  readonly #lateMs: number[] = [];
  #timer: NodeJS.Timeout | undefined;

  get newestMs(): number {
    return this.#lateMs.at(-1) ?? 0;
  }

  get worstMs(): number {
    return Math.max(0, ...this.#lateMs);
  }

  start(): void {
    let due = performance.now() + LAG_SAMPLE_MS;
    this.#timer ??= setInterval(() => {
      const now = performance.now();
      this.#lateMs.push(Math.max(0, now - due));
      if (this.#lateMs.length > LAG_SAMPLES) this.#lateMs.shift();
      due = now + LAG_SAMPLE_MS;
    }, LAG_SAMPLE_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
