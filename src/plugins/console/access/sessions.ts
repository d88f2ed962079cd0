import { randomBytes } from 'node:crypto';
import { digestOf } from './one-time-codes.ts';

/** Sessions at one time; the oldest ends when another begins. */
const MOST = 100;
const BYTES = 32;

/** Somebody who is logged in. */
export interface Session {
  readonly by: string;
  /** Epoch milliseconds, for people. */
  readonly expiresAt: number;
  /** Aborted when the session ends: streams end with it. */
  readonly ended: AbortSignal;
}

interface Kept extends Session {
  readonly until: number;
  readonly end: () => void;
}

/** The browsers that are logged in. They are in memory alone: all sessions end with the instance. */
export class Sessions {
  readonly #lastsMs: number;
  readonly #kept = new Map<string, Kept>();

  /** @param lastsMs after which a session ends, milliseconds */
  constructor(lastsMs: number) {
    this.#lastsMs = lastsMs;
  }

  /**
   * @param clock `now` in epoch milliseconds, `monotonic` of a clock that nobody sets
   * @returns the session, and the secret for its cookie
   */
  begin(by: string, clock: { now(): number; monotonic(): number }): { session: Session; secret: string } {
    const secret = randomBytes(BYTES).toString('base64url');
    const gone = new AbortController();
    const session: Kept = {
      by,
      expiresAt: clock.now() + this.#lastsMs,
      until: clock.monotonic() + this.#lastsMs,
      ended: gone.signal,
      end: () => gone.abort(new Error('the session is over')),
    };
    this.#kept.set(digestOf(secret), session);
    const [oldest] = this.#kept.keys();
    if (oldest !== undefined && this.#kept.size > MOST) this.#drop(oldest);
    return { session, secret };
  }

  /** @param now monotonic milliseconds @returns undefined where there is none, or it is over */
  find(secret: string | undefined, now: number): Session | undefined {
    if (secret === undefined) return undefined;
    const digest = digestOf(secret);
    const session = this.#kept.get(digest);
    if (session === undefined || session.until > now) return session;
    this.#drop(digest);
    return undefined;
  }

  end(secret: string): void {
    this.#drop(digestOf(secret));
  }

  /** Ends those that are over, so that what follows them ends. @param now monotonic milliseconds */
  sweep(now: number): void {
    for (const [digest, { until }] of this.#kept) if (until <= now) this.#drop(digest);
  }

  #drop(digest: string): void {
    this.#kept.get(digest)?.end();
    this.#kept.delete(digest);
  }
}
