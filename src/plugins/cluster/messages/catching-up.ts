import type { Logger } from '../../../core/host/logging/logger.ts';
import { type Clock, passed } from '../../../core/kernel/clock.ts';

/** Until the next attempt, milliseconds. */
const AGAIN_MS = 200;
/** Within so long after its return a host has heard each of the others, also one that it has to ask first whether it lives. */
const HEARD_MS = 1_500;

export interface CatchingUpOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Sends a message to every host. Resolves when this host has read it, and so all that was stored before it. */
  readonly mark: () => Promise<void>;
}

/**
 * A host that reaches NATS again, or for the first time, does not know yet what the others said meanwhile, e.g. that a key was revoked,
 * nor which of them are there and what they have open.
 * It has caught up when it has read a message of its own, sent after it came back: that a quorum stored it proves that it was put
 * behind everything that was said before, which no question to a server does. And when it has listened for as long as their beats take.
 */
export class CatchingUp {
  readonly #options: CatchingUpOptions;
  /** How often the host came back. */
  #returns = 0;
  #returnedAt = 0;
  /** Until when this host knew all, by `Clock.monotonic`; absent while it does. */
  #knewUntil: number | undefined;
  #hasCaughtUp = false;
  #isStopped = false;

  constructor(options: CatchingUpOptions) {
    this.#options = options;
  }

  /** The host reaches NATS again. @param awayMs for how long it did not */
  returned(awayMs: number): void {
    const now = this.#options.clock.monotonic();
    this.#returns += 1;
    this.#returnedAt = now;
    if (this.#knewUntil !== undefined) return; // it is under way, and begins anew
    this.#knewUntil = now - awayMs;
    void this.#catchUp();
  }

  /** For how long it may lack what others said, milliseconds; undefined when it has read and heard everything. */
  get behindMs(): number | undefined {
    return this.#knewUntil === undefined ? undefined : this.#options.clock.monotonic() - this.#knewUntil;
  }

  /** Whether it ever knew all since it was started: before, it does not know for how long it was off. */
  get hasCaughtUp(): boolean {
    return this.#hasCaughtUp;
  }

  stop(): void {
    this.#isStopped = true;
  }

  /** Never rejects. */
  async #catchUp(): Promise<void> {
    const { clock, logger, mark } = this.#options;
    while (!this.#isStopped) {
      const returns = this.#returns;
      try {
        await mark();
        const listensMs = this.#returnedAt + HEARD_MS - clock.monotonic();
        if (returns === this.#returns && listensMs > 0) await passed(clock, listensMs);
        if (returns !== this.#returns) continue;
        logger.info({ behindMs: Math.round(this.behindMs ?? 0) }, 'cluster.caught_up');
        this.#knewUntil = undefined;
        this.#hasCaughtUp = true;
        return;
      } catch (error) {
        logger.debug({ err: error }, 'cluster.catching_up');
        await passed(clock, AGAIN_MS);
      }
    }
  }
}
