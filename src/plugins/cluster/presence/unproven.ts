/** A run that does not answer so often is not counted; it is asked again with each beat. */
const MOST_FAILURES = 3;
/** Unheard for longer: how often it did not answer is forgotten. */
const FORGOTTEN_MS = 3_600_000;

interface Unproven {
  readonly host: string;
  heardMs: number;
  failures: number;
}

/**
 * Runs of other hosts of which a beat was heard, and that have not answered whether they live. Such a beat may be of the past, sent again by somebody who
 * recorded it: a run counts as one that may live until it was asked several times in vain.
 */
export class UnprovenRuns {
  readonly #runs = new Map<string, Unproven>();

  /** @param now monotonic, milliseconds */
  heard(host: string, run: string, now: number): void {
    for (const [key, { heardMs }] of this.#runs) if (now - heardMs > FORGOTTEN_MS) this.#runs.delete(key);
    const known = this.#runs.get(run);
    if (known) known.heardMs = now;
    else this.#runs.set(run, { host, heardMs: now, failures: 0 });
  }

  /** It was asked, and gave no answer. */
  failed(run: string): void {
    const known = this.#runs.get(run);
    if (known) known.failures += 1;
  }

  /** It lives. */
  proven(run: string): void {
    this.#runs.delete(run);
  }

  /** @returns the hosts of those that were heard since then and may live */
  since(heardMs: number): string[] {
    return [...this.#runs.values()]
      .filter((one) => one.heardMs >= heardMs && one.failures < MOST_FAILURES)
      .map(({ host }) => host);
  }
}
