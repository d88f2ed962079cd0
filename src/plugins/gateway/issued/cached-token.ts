import { unlessAborted } from '../../../core/host/deadline.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import type { IssuedToken } from './token-endpoint.ts';
import { TokenFault } from './token-fault.ts';

/** The life of a token whose server does not say how long it is, milliseconds. */
const UNSAID_LIFE_MS = 5 * 60_000;
/** A token is renewed when a quarter of its life is left, and at most this long before its end, milliseconds. */
const LONGEST_MARGIN_MS = 5 * 60_000;
/** A token that has less left than this may end on its way, milliseconds; a tenth of a shorter life. */
const TRAVEL_MS = 5_000;
/** Wait after a request that failed; each further one doubles it. */
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 30_000;
/** A token that its upstream refuses is replaced at most this often, milliseconds. */
const REPLACED_EVERY_MS = 30_000;

interface Held {
  readonly value: string;
  /** Monotonic, milliseconds. */
  readonly renewAt: number;
  readonly endsAt: number;
}

export interface CachedTokenOptions {
  readonly clock: Pick<Clock, 'monotonic' | 'after'>;
  /** @throws TokenFault */
  readonly request: () => Promise<IssuedToken>;
  /** Hears how each request ended. @param fault undefined when there is a new token */
  readonly ended: (fault: TokenFault | undefined) => void;
  /** Renews what is in use by a timer, and tries again by itself after a failure; otherwise each only when it is wanted. */
  readonly isKept: boolean;
}

/**
 * One token, as long as it lives. It is renewed before it ends, while callers go on with the one that is there; of many that
 * wait for it, one asks. After a failure nobody asks again for a second, then two, up to thirty.
 */
export class CachedToken {
  readonly #options: CachedTokenOptions;
  #held: Held | undefined;
  #fault: TokenFault | undefined;
  #pending: Promise<void> | undefined;
  #failures = 0;
  #retryAt = Number.NEGATIVE_INFINITY;
  #replacedAt = Number.NEGATIVE_INFINITY;
  #isUsed = false;
  #cancel: (() => void) | undefined;
  #isClosed = false;

  constructor(options: CachedTokenOptions) {
    this.#options = options;
  }

  /** The newest token, which may have ended; undefined before there was one. */
  get value(): string | undefined {
    return this.#held?.value;
  }

  /** How long the token can be used, milliseconds; 0 for one that has ended, or before there was one. */
  get leftMs(): number {
    return Math.max(0, (this.#held?.endsAt ?? 0) - this.#options.clock.monotonic());
  }

  /** Why the newest request failed; undefined when it did not. */
  get fault(): TokenFault | undefined {
    return this.#fault;
  }

  /**
   * Makes sure that there is a token.
   *
   * @param stop gives the wait up, and not the request, for which others may wait
   * @returns why there is none
   * @throws the reason of `stop`
   */
  async prepare(stop?: AbortSignal): Promise<TokenFault | undefined> {
    this.#isUsed = true;
    const now = this.#options.clock.monotonic();
    const isDue = this.#pending === undefined && now >= this.#retryAt;
    if (this.leftMs > 0) {
      if (isDue && now >= (this.#held?.renewAt ?? 0)) void this.#ask();
      return undefined;
    }
    if (this.#pending === undefined && !isDue) return this.#fault;
    const asking = this.#ask();
    await (stop ? unlessAborted(asking, stop) : asking);
    return this.leftMs > 0 ? undefined : this.#fault;
  }

  /**
   * The upstream refuses a token that has not ended: it is replaced, once in thirty seconds.
   *
   * @param refused the token as it was sent
   * @returns whether there is another one
   */
  async replace(refused: string, stop: AbortSignal): Promise<boolean> {
    if (this.#held?.value !== refused) return this.leftMs > 0;
    const now = this.#options.clock.monotonic();
    if (this.#pending === undefined) {
      if (now - this.#replacedAt < REPLACED_EVERY_MS || now < this.#retryAt) return false;
      this.#replacedAt = now;
    }
    await unlessAborted(this.#ask(), stop);
    return this.#held.value !== refused && this.leftMs > 0;
  }

  /** Forgets the token, and asks for no other. */
  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
    this.#held = undefined;
  }

  /** Never throws. */
  #ask(): Promise<void> {
    this.#pending ??= this.#request().finally(() => {
      this.#pending = undefined;
    });
    return this.#pending;
  }

  async #request(): Promise<void> {
    const { clock, request, ended } = this.#options;
    const askedAt = clock.monotonic();
    try {
      const token = await request();
      if (this.#isClosed) return;
      this.#held = heldFrom(token, askedAt, clock.monotonic());
      this.#fault = undefined;
      this.#failures = 0;
      this.#retryAt = Number.NEGATIVE_INFINITY;
      this.#isUsed = false;
      this.#schedule(this.#held.renewAt - clock.monotonic(), () => this.#isUsed);
    } catch (error) {
      if (this.#isClosed) return;
      this.#fault = error instanceof TokenFault ? error : new TokenFault('server', 'it failed', 'failed');
      const waitMs = Math.min(FIRST_RETRY_MS * 2 ** this.#failures, LONGEST_RETRY_MS);
      this.#failures += 1;
      this.#retryAt = clock.monotonic() + waitMs;
      this.#schedule(waitMs, () => true);
    }
    ended(this.#fault);
  }

  #schedule(delayMs: number, isWanted: () => boolean): void {
    this.#cancel?.();
    if (!this.#options.isKept) return;
    this.#cancel = this.#options.clock.after(delayMs, () => {
      if (isWanted()) void this.#ask();
    });
  }
}

/** @param askedAt when it was asked for, from which on its life counts */
function heldFrom({ value, lifetimeMs }: IssuedToken, askedAt: number, now: number): Held {
  const lifeMs = Math.max(0, lifetimeMs ?? UNSAID_LIFE_MS);
  const end = askedAt + lifeMs;
  const endsAt = end - Math.min(TRAVEL_MS, lifeMs / 10);
  return {
    value,
    renewAt: end - Math.min(LONGEST_MARGIN_MS, lifeMs / 4),
    endsAt: Math.max(endsAt, now + 1), // whoever asked for it may use it
  };
}
