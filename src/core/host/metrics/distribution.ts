/** Values of one unit by the buckets that they fall into: what a histogram has to tell of them, in any format. */
export class Distribution {
  /** Upper bounds of the buckets, ascending; what is above the last has a bucket of its own. */
  readonly bounds: readonly number[];
  /** Of each bucket alone. */
  readonly counts: number[];
  count = 0;
  sum = 0;
  min = Number.POSITIVE_INFINITY;
  max = Number.NEGATIVE_INFINITY;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Array(bounds.length + 1).fill(0);
  }

  /** @param value what is no number is not counted */
  record(value: number): void {
    if (Number.isNaN(value)) return;
    this.count += 1;
    this.sum += value;
    if (value < this.min) this.min = value;
    if (value > this.max) this.max = value;
    let bucket = 0;
    while (bucket < this.bounds.length && value > (this.bounds[bucket] as number)) bucket += 1;
    (this.counts[bucket] as number) += 1;
  }
}
