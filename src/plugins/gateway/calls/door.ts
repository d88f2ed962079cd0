import { LRUCache } from 'lru-cache';
import type { Services } from '../../../core/plugin/index.ts';
import type { AnswerParams, CallEnded } from '../../../machines/mcp-access.ts';
import type { LiveCalls } from './live-call.ts';
import { type TurnedAway, turnedAway } from './topics.ts';

/** How long a decision may take: it waits for its record only. */
const DECISION_MS = 10_000;
/** Refusals of one caller that are records of their own, before they are gathered. */
const BURST = 50;
/** How often one more of them is a record of its own, and for how long others are gathered. */
const EVERY_MS = 1_000;
const CALLERS_KEPT = 10_000;

/** A caller that is turned away by one rule. */
interface Caller {
  left: number;
  at: number;
  gathered?: { count: number; readonly decided: Promise<AnswerParams['rule']> };
}

type Refusal = Omit<TurnedAway, 'at' | 'count'>;

/**
 * Turns callers without a key away, none of them unrecorded. A stranger must not fill the disk: whoever goes on and on
 * waits for up to a second, and is one record with all that came from the same source by the same rule meanwhile.
 */
export class Door {
  readonly #services: Services;
  readonly #calls: LiveCalls;
  readonly #callers = new LRUCache<string, Caller>({ max: CALLERS_KEPT });

  constructor(services: Services, calls: LiveCalls) {
    this.#services = services;
    this.#calls = calls;
  }

  /**
   * @param correlation of the request
   * @returns the rule that decided, once it is durable
   * @throws HF_LOG_WRITE, HF_HTTP_TIMEOUT it can't be recorded
   */
  turnAway(refusal: Refusal, correlation: string): Promise<AnswerParams['rule']> {
    const caller = this.#caller(refusal);
    if (caller.left >= 1) {
      caller.left -= 1;
      return this.#record(refusal, correlation);
    }
    caller.gathered ??= { count: 0, decided: this.#gather(caller, refusal, correlation) };
    caller.gathered.count += 1;
    return caller.gathered.decided;
  }

  #caller({ source, rule, misplaced }: Refusal): Caller {
    const name = `${source}\n${rule}\n${misplaced ?? ''}`;
    const now = performance.now();
    const caller: Caller = this.#callers.get(name) ?? { left: BURST, at: now };
    caller.left = Math.min(BURST, caller.left + (now - caller.at) / EVERY_MS);
    caller.at = now;
    this.#callers.set(name, caller);
    return caller;
  }

  async #gather(caller: Caller, refusal: Refusal, correlation: string): Promise<AnswerParams['rule']> {
    await new Promise<void>((resolve) => this.#services.clock.after(EVERY_MS, resolve));
    const count = caller.gathered?.count ?? 1;
    delete caller.gathered;
    return this.#record({ ...refusal, count }, correlation);
  }

  async #record(refusal: Refusal & { count?: number }, correlation: string): Promise<AnswerParams['rule']> {
    const { bus, exchanges, clock } = this.#services;
    let decided: AnswerParams['rule'] = refusal.rule;
    this.#calls.set(correlation, {
      forward: async () => ({ type: 'CALL_ENDED', outcome: 'gone', ms: 0 }),
      answer({ rule }): CallEnded {
        decided = rule;
        return {
          type: 'CALL_ENDED',
          outcome: 'answered',
          status: rule === 'key_in_query' ? 400 : 401,
          ms: 0,
        };
      },
    });
    const answered = exchanges.open(correlation, DECISION_MS);
    try {
      bus.publish(turnedAway, { at: clock.now(), ...refusal }, { correlation });
      await answered;
      return decided;
    } finally {
      this.#calls.delete(correlation);
    }
  }
}
