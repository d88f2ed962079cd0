import type { Clock } from '../../../core/kernel/clock.ts';
import type { Exchange } from '../exchange.ts';
import { Gathering } from './burst-limiter.ts';
import type { LiveCall } from './live-call.ts';

/** Calls that wait together hold their messages, so there are not many of them. */
const MOST_WAITING = 256;

/** A call on its way to its decision. */
export interface Asked {
  /** The same for identical calls. */
  readonly name: string;
  readonly exchange: Pick<Exchange, 'gone'>;
  readonly call: LiveCall;
}

/** Has one call decided. @param count of identical calls that get the same answer, if it is a refusal */
export type Decide<T extends Asked> = (asked: T, call: LiveCall, count?: number) => Promise<void>;

/**
 * Calls that a key makes again and again though they are refused: a client in a loop must not fill the disk. Beyond a
 * burst identical ones wait for up to a second and are one decision, and the first that is admitted ends that.
 */
export class Repeats<T extends Asked> {
  readonly #gathering: Gathering<T>;
  readonly #decide: Decide<T>;
  readonly #failed: (asked: T, error: unknown) => void;

  /** @param failed answers a call that could not be decided */
  constructor(clock: Clock, decide: Decide<T>, failed: (asked: T, error: unknown) => void) {
    this.#gathering = new Gathering(clock, MOST_WAITING);
    this.#decide = decide;
    this.#failed = failed;
  }

  async judge(asked: T): Promise<void> {
    const { name } = asked;
    try {
      const known = this.#gathering.knows(name);
      if (!known || this.#gathering.spend(name)) return await this.#alone(asked, known);
      await this.#gathering.join(name, asked, (all) => this.#together(name, all));
    } catch (error) {
      this.#failed(asked, error);
    }
  }

  /** @param spent its record is one of the burst already */
  #alone(asked: T, spent: boolean): Promise<void> {
    const { name, call } = asked;
    return this.#decide(asked, {
      forward: (params, stop) => {
        this.#gathering.forget(name);
        return call.forward(params, stop);
      },
      answer: (params) => {
        if (!spent) this.#gathering.spend(name);
        return call.answer(params);
      },
    });
  }

  /** A refusal is for all of them. When the first is admitted, each of the others is decided for itself. */
  #together(name: string, all: readonly T[]): Promise<void> {
    const first = all.find(({ exchange }) => !exchange.gone.aborted) ?? all[0];
    if (!first) return Promise.resolve();
    const others = all.filter((one) => one !== first);
    const call: LiveCall = {
      forward: (params, stop) => {
        this.#gathering.forget(name);
        for (const other of others) {
          this.#alone(other, false).catch((error) => this.#failed(other, error));
        }
        return first.call.forward(params, stop);
      },
      answer: (params) => {
        for (const other of others) other.call.answer(params);
        return first.call.answer(params);
      },
    };
    return this.#decide(first, call, all.length > 1 ? all.length : undefined);
  }
}
