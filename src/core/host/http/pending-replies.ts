import type { Json } from '../../kernel/json.ts';
import { HostError } from '../errors/host-error.ts';

/** An HTTP answer as a machine asks for it (effect `http.reply`). @public */
export interface Reply {
  readonly status: number;
  readonly body?: Json;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The effect by which a machine answers the HTTP request that its story began with. */
export const HTTP_REPLY = 'http.reply';

interface Waiter {
  readonly resolve?: (reply: Reply) => void;
  readonly reject: (error: unknown) => void;
}

interface Open {
  /**
   * Cleared when it is taken: a Map that grows and shrinks all the time leaves old tables behind, which keep alive what
   * was in them until a full garbage collection, and through a waiter that would be the whole request.
   */
  waiter: Waiter | undefined;
  readonly timeoutMs: number;
  /** By the monotonic clock, milliseconds. */
  readonly deadline: number;
}

/**
 * The replies that HTTP requests wait for, by correlation id. A reply is an effect like any other: after a restart,
 * with nobody left to hear it, it completes as gone.
 */
export class PendingReplies {
  readonly #open = new Map<string, Open>();
  /** One timer for the earliest deadline: a timer of its own for each of thousands of requests a second costs more. */
  #timer: NodeJS.Timeout | undefined;
  #wakeAt = Number.POSITIVE_INFINITY;

  get size(): number {
    return this.#open.size;
  }

  /**
   * Waits for the reply of a story.
   *
   * @param timeoutMs after which the request ends with HF_HTTP_TIMEOUT: the result is then unknown to the caller
   */
  open(correlation: string, timeoutMs: number): Promise<Reply> {
    return new Promise<Reply>((resolve, reject) => this.#wait(correlation, { resolve, reject }, timeoutMs));
  }

  /**
   * Watches over a story whose request is answered elsewhere, until `release`.
   *
   * @param timeoutMs after which `failed` gets HF_HTTP_TIMEOUT
   * @param failed called when the decision will not be made, or can't be known
   */
  watch(correlation: string, timeoutMs: number, failed: (error: unknown) => void): void {
    this.#wait(correlation, { reject: failed }, timeoutMs);
  }

  /** The decision of a watched story was made. */
  release(correlation: string): void {
    this.#take(correlation);
  }

  /** Whether a request waits for the reply of this story. */
  has(correlation: string): boolean {
    return this.#open.has(correlation);
  }

  /** @returns whether anybody was still waiting */
  settle(correlation: string, reply: Reply): boolean {
    const waiter = this.#take(correlation);
    waiter?.resolve?.(reply);
    return waiter !== undefined;
  }

  /** Ends every wait: none of the decisions can be known now. */
  failAll(error: unknown): void {
    for (const correlation of [...this.#open.keys()]) this.fail(correlation, error);
  }

  /** Ends a wait with an error: the decision will not be made. */
  fail(correlation: string, error: unknown): void {
    this.#take(correlation)?.reject(error);
  }

  #wait(correlation: string, waiter: Waiter, timeoutMs: number): void {
    const deadline = performance.now() + timeoutMs;
    this.#open.set(correlation, { waiter, timeoutMs, deadline });
    if (deadline < this.#wakeAt) this.#wake(deadline);
    else this.#timer?.ref();
  }

  #take(correlation: string): Waiter | undefined {
    const open = this.#open.get(correlation);
    if (!open) return undefined;
    this.#open.delete(correlation);
    if (this.#open.size === 0) this.#timer?.unref(); // with nobody waiting it must not keep the process alive
    const { waiter } = open;
    open.waiter = undefined;
    return waiter;
  }

  #wake(at: number): void {
    clearTimeout(this.#timer);
    this.#wakeAt = at;
    this.#timer = setTimeout(() => this.#expire(), Math.max(0, Math.ceil(at - performance.now())));
  }

  #expire(): void {
    const now = performance.now();
    let next = Number.POSITIVE_INFINITY;
    for (const [correlation, { deadline, timeoutMs }] of this.#open) {
      if (deadline > now) next = Math.min(next, deadline);
      else this.fail(correlation, new HostError('HF_HTTP_TIMEOUT', { ms: timeoutMs }));
    }
    this.#wakeAt = Number.POSITIVE_INFINITY;
    if (next < Number.POSITIVE_INFINITY) this.#wake(next);
  }
}
