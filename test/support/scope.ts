/** What a part of the tests' support needs of whoever uses it: a test (`t`), or a benchmark. */
export interface Scope {
  /** Runs when the test or the benchmark is over; the last that was asked for first. */
  teardown(end: () => unknown): void;
  log(...lines: unknown[]): void;
}
