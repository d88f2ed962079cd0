import type { MetricObjectWithValues, MetricValue, MetricValueWithName } from 'prom-client';
import { Distribution } from './distribution.ts';

/** Values of labels by their names. */
export type Labels = Readonly<Record<string, string | number>>;

type Told = MetricObjectWithValues<MetricValue<string>>;

interface About {
  /** With its prefix. */
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
}

/**
 * A metric that prom-client's registry tells, and that keeps its numbers itself. A value is found by those of its labels;
 * prom-client takes each set of them apart, checks it, and puts it together again whenever it counts.
 */
abstract class Tallied<Value> {
  readonly name: string;
  readonly #about: About;
  readonly #found = new Map<string, { readonly labels: Labels; value: Value }>();

  constructor(about: About) {
    this.name = about.name;
    this.#about = about;
  }

  protected abstract readonly type: 'counter' | 'histogram';
  protected abstract none(): Value;
  protected abstract tell(labels: Labels, value: Value): MetricValueWithName<string>[];

  /**
   * @param labels no value has a line break; one that is left out is empty
   * @throws TypeError a label that the metric does not have
   */
  protected at(labels: Labels): { value: Value } {
    const { labelNames } = this.#about;
    let name = '';
    for (const label of labelNames) name += `${labels[label] ?? ''}\n`;
    return this.#found.get(name) ?? this.#add(name, labels);
  }

  /** What the registry asks for at a scrape. */
  async get(): Promise<Told> {
    const { name, help } = this.#about;
    const values = [...this.#found.values()].flatMap(({ labels, value }) => this.tell(labels, value));
    return { name, help, type: this.type, values, aggregator: 'sum' } as unknown as Told;
  }

  #add(name: string, labels: Labels): { value: Value } {
    const unknown = Object.keys(labels).find((label) => !this.#about.labelNames.includes(label));
    if (unknown !== undefined) throw new TypeError(`${this.name} has no label ${unknown}`);
    const added = { labels: { ...labels }, value: this.none() };
    this.#found.set(name, added);
    return added;
  }
}

/** A number that only grows. */
export class Counter extends Tallied<number> {
  protected readonly type = 'counter';

  constructor(about: About) {
    super(about);
    if (about.labelNames.length === 0) this.inc(0); // a counter without labels is told before it has counted
  }

  /**
   * @param by 1 unless given
   * @throws TypeError a label that the metric does not have
   */
  inc(by?: number): void;
  inc(labels: Labels, by?: number): void;
  inc(labels: Labels | number = 1, by = 1): void {
    if (typeof labels === 'number') this.at({}).value += labels;
    else this.at(labels).value += by;
  }

  protected none(): number {
    return 0;
  }

  protected tell(labels: Labels, value: number): MetricValueWithName<string>[] {
    return [{ metricName: this.name, labels, value }];
  }
}

/** Values by buckets. */
export class Histogram extends Tallied<Distribution> {
  protected readonly type = 'histogram';
  readonly #bounds: readonly number[];

  /** @param buckets upper bounds, ascending */
  constructor(about: About & { readonly buckets: readonly number[] }) {
    super(about);
    this.#bounds = about.buckets;
    if (about.labelNames.length === 0) this.at({});
  }

  /**
   * @param value in the unit that the metric's name ends with
   * @throws TypeError a label that the metric does not have
   */
  observe(value: number): void;
  observe(labels: Labels, value: number): void;
  observe(labels: Labels | number, value = 0): void {
    if (typeof labels === 'number') this.at({}).value.record(labels);
    else this.at(labels).value.record(value);
  }

  protected none(): Distribution {
    return new Distribution(this.#bounds);
  }

  protected tell(
    labels: Labels,
    { bounds, counts, sum, count }: Distribution,
  ): MetricValueWithName<string>[] {
    let upTo = 0;
    const buckets = counts.map((inBucket, index) => {
      upTo += inBucket;
      const le = bounds[index] ?? '+Inf';
      return { metricName: `${this.name}_bucket`, labels: { le, ...labels }, value: upTo };
    });
    return [
      ...buckets,
      { metricName: `${this.name}_sum`, labels, value: sum },
      { metricName: `${this.name}_count`, labels, value: count },
    ];
  }
}
