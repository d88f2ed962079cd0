import type { Services } from '../../../core/host/plugin/definition.ts';
import type { AnswerParams, CallEnded } from '../../../machines/gateway/key.ts';
import { DECISION_MS } from '../decision.ts';
import { Gathering } from './burst-limiter.ts';
import type { LiveCalls } from './live-call.ts';
import { type TurnedAway, turnedAway } from './topics.ts';

/** A caller that waits with others, and what it is told. */
interface Waiting {
  rule: AnswerParams['rule'];
}

type Refusal = Omit<TurnedAway, 'at' | 'count'>;

/**
 * Turns callers without a key away, none of them unrecorded. A stranger must not fill the disk: whoever goes on and on
 * waits for up to a second, and is one record with all that came from the same source by the same rule meanwhile.
 */
export class Door {
  readonly #services: Services;
  readonly #calls: LiveCalls;
  readonly #gathering: Gathering<Waiting>;

  constructor(services: Services, calls: LiveCalls) {
    this.#services = services;
    this.#calls = calls;
    this.#gathering = new Gathering(services.clock);
  }

  /**
   * @param correlation of the request
   * @param status that it is sent, or was already; undefined when its client left before
   * @returns the rule that decided, once it is durable
   * @throws HF_LOG_WRITE, HF_HTTP_TIMEOUT it can't be recorded
   */
  async turnAway(
    refusal: Refusal,
    correlation: string,
    status: number | undefined,
  ): Promise<AnswerParams['rule']> {
    const { source, rule, misplaced } = refusal;
    const name = [source, rule, misplaced?.key ?? '', misplaced?.where ?? ''].join('\n');
    if (this.#gathering.spend(name)) return this.#record(refusal, correlation, status);
    const waiting: Waiting = { rule };
    await this.#gathering.join(name, waiting, async (all) => {
      const decided = await this.#record({ ...refusal, count: all.length }, correlation, status);
      for (const one of all) one.rule = decided;
    });
    return waiting.rule;
  }

  async #record(
    refusal: Refusal & { count?: number },
    correlation: string,
    status: number | undefined,
  ): Promise<AnswerParams['rule']> {
    const { bus, exchanges, clock } = this.#services;
    let decided: AnswerParams['rule'] = refusal.rule;
    this.#calls.set(correlation, {
      forward: async () => ({ type: 'CALL_ENDED', outcome: 'gone', ms: 0 }),
      answer({ rule }): CallEnded {
        decided = rule;
        return { type: 'CALL_ENDED', outcome: 'answered', ...(status !== undefined && { status }), ms: 0 };
      },
    });
    const answered = exchanges.open(correlation, DECISION_MS);
    try {
      bus.publish(turnedAway, { at: clock.now(), ...refusal }, { correlation });
      await answered;
      return decided;
    } finally {
      this.#calls.take(correlation);
    }
  }
}
