import { hash, randomBytes } from 'node:crypto';

/** A code is good for so long, milliseconds. */
export const CODE_MS = 5 * 60_000;
/** Codes that wait to be used; the oldest is forgotten. */
const MOST = 20;
/** A code has 160 bits: nobody finds one by trying. */
const BYTES = 20;

interface Waiting {
  readonly by: string;
  /** By a clock that nobody sets, milliseconds. */
  readonly until: number;
}

/** The codes by which somebody who may use the control socket lets a browser in. Each is good once; only digests are kept. */
export class OneTimeCodes {
  readonly #waiting = new Map<string, Waiting>();

  /**
   * @param by who asks for it
   * @param now monotonic milliseconds
   */
  make(by: string, now: number): string {
    this.#forget(now);
    const code = randomBytes(BYTES).toString('base64url');
    this.#waiting.set(digestOf(code), { by, until: now + CODE_MS });
    const [oldest] = this.#waiting.keys();
    if (oldest !== undefined && this.#waiting.size > MOST) this.#waiting.delete(oldest);
    return code;
  }

  /** Uses a code up. @returns who asked for it; undefined when it is none, was used or is too old */
  redeem(code: string, now: number): string | undefined {
    this.#forget(now);
    const digest = digestOf(code);
    const waiting = this.#waiting.get(digest);
    this.#waiting.delete(digest);
    return waiting?.by;
  }

  #forget(now: number): void {
    for (const [digest, { until }] of this.#waiting) if (until <= now) this.#waiting.delete(digest);
  }
}

/** A digest finds a secret without a comparison whose time would depend on it. */
export function digestOf(secret: string): string {
  return hash('sha256', secret, 'base64url');
}
