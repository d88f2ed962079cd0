import { HoldfastError } from '../errors/index.ts';
import type { Json } from '../json.ts';

/** An HTTP answer as a machine asks for it (effect `http.reply`). */
export interface Reply {
  readonly status: number;
  readonly body?: Json;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The effect by which a machine answers the HTTP request that its story began with. */
export const HTTP_REPLY = 'http.reply';

interface Open {
  readonly settle: (reply: Reply) => void;
  readonly fail: (error: unknown) => void;
}

/**
 * HTTP requests that wait for a decision, by correlation. An answer is an effect like any other: after a restart,
 * with nobody left to hear it, it completes as gone.
 */
export class Exchanges {
  readonly #open = new Map<string, Open>();

  get size(): number {
    return this.#open.size;
  }

  /**
   * Waits for the reply of a story.
   *
   * @param timeoutMs after which the request ends with HF_HTTP_TIMEOUT: the result is then unknown to the caller
   */
  open(correlation: string, timeoutMs: number): Promise<Reply> {
    return new Promise<Reply>((resolve, reject) => {
      const timer = setTimeout(
        () => this.fail(correlation, new HoldfastError('HF_HTTP_TIMEOUT', { ms: timeoutMs })),
        timeoutMs,
      );
      const close = () => {
        clearTimeout(timer);
        this.#open.delete(correlation);
      };
      this.#open.set(correlation, {
        settle: (reply) => {
          close();
          resolve(reply);
        },
        fail: (error) => {
          close();
          reject(error);
        },
      });
    });
  }

  /** Whether a request waits for the reply of this story. */
  has(correlation: string): boolean {
    return this.#open.has(correlation);
  }

  /** @returns whether anybody was still waiting */
  settle(correlation: string, reply: Reply): boolean {
    const open = this.#open.get(correlation);
    open?.settle(reply);
    return open !== undefined;
  }

  /** Ends every wait: none of the decisions can be known now. */
  failAll(error: unknown): void {
    for (const open of [...this.#open.values()]) open.fail(error);
  }

  /** Ends a wait with an error: the decision will not be made. */
  fail(correlation: string, error: unknown): void {
    this.#open.get(correlation)?.fail(error);
  }
}
