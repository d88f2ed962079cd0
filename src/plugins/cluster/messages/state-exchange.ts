import type { Logger } from '../../../core/host/logging/logger.ts';
import { type Clock, newCorrelation } from '../../../core/kernel/clock.ts';
import type { SharedActors } from './shared-actors.ts';

/** Several hosts may have missed messages at the same moment: one pass serves them all. */
const GATHER_MS = 200;
/** Between two looks whether all others have sent what they have. */
const LOOK_MS = 200;
/** A host that has not is asked again after so long, then after twice as long, and so on. */
const WANT_AGAIN_MS = 5_000;
const WANT_AGAIN_AT_MOST_MS = 60_000;
/** Until what could not be sent is sent again. */
const AGAIN_MS = 1_000;

export interface StateExchangeOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly host: string;
  readonly actors: Pick<SharedActors, 'send'>;
  /** Has every host send what it has. Resolves when this host has read all that was sent before. @param round what the answers name */
  readonly want: (round: string) => Promise<void>;
  /** Tells every host that this one has sent all that it had after it read these wishes. Rejects when what it sent may be lost. */
  readonly sent: (rounds: readonly string[]) => Promise<void>;
  /** The names of the other hosts that live; undefined while that is not known. */
  readonly others: () => ReadonlySet<string> | undefined;
  /** `isIncomplete` or `isUnshared` has changed. */
  readonly onChange: () => void;
}

/** What a host waits for after it has missed messages. */
interface Round {
  readonly id: string;
  /** The hosts that have sent what they have; what they sent has been read. */
  readonly answered: Set<string>;
  /** Those that have sent something since their last answer that this host does not understand. */
  readonly foreign: Set<string>;
}

/**
 * Brings hosts together that may know different things: who has missed messages says so on the stream of messages to every host, each host sends
 * there what it has, and says behind it that this was all. Whoever reads that has read the states, too, however long it took to send them.
 */
export class StateExchange {
  readonly #options: StateExchangeOptions;
  /** The newest wish of each host that is not under way yet, and those that are. */
  readonly #wanted = new Map<string, string>();
  #underWay: readonly string[] = [];
  #isDue = false;
  #isSending = false;
  #isUnshared = false;
  #round: Round | undefined;
  /** How often messages were missed, and when last. */
  #missed = 0;
  #missedAt: number | undefined;
  #isStopped = false;

  constructor(options: StateExchangeOptions) {
    this.#options = options;
  }

  /** Messages were missed, and not every host that lives has sent yet what it has: a key may have been revoked meanwhile. */
  get isIncomplete(): boolean {
    return this.#round !== undefined;
  }

  /** The others may lack what this host has. */
  get isUnshared(): boolean {
    return this.#isUnshared;
  }

  /** How long ago messages were missed, milliseconds; undefined when none were. */
  get missedMs(): number | undefined {
    return this.#missedAt === undefined ? undefined : this.#options.clock.monotonic() - this.#missedAt;
  }

  stop(): void {
    this.#isStopped = true;
  }

  /** The others cannot know what this host has: it has just joined, or messages were missed. It is sent until all of it was. */
  share(): void {
    this.#isUnshared = true;
    this.#options.onChange();
    this.#send();
  }

  /** Messages were missed: exchanges states with the others, until each of them has sent what it has. */
  complete(): void {
    this.#missed += 1;
    this.#missedAt = this.#options.clock.monotonic();
    const round = { id: newCorrelation(), answered: new Set<string>(), foreign: new Set<string>() };
    this.#round = round;
    this.share();
    void this.#complete(round);
  }

  /** A host has missed messages. @param round of its wish, which may come more than once */
  wanted(round: string, from: string): void {
    const isKnown = this.#underWay.includes(round) || this.#wanted.get(from) === round;
    if (from === this.#options.host || isKnown) return;
    this.#wanted.set(from, round);
    this.#send();
  }

  /** A host has sent all that it had, and this one has read it. */
  answered(rounds: readonly string[], from: string): void {
    if (!this.#round?.foreign.delete(from) && this.#round && rounds.includes(this.#round.id))
      this.#round.answered.add(from);
  }

  /** A host has sent a state that this one does not understand: what it answers is not all that this one needs. */
  notUnderstood(from: string): void {
    this.#round?.foreign.add(from);
    this.#round?.answered.delete(from);
  }

  /** One pass at a time; all that is wanted meanwhile is served by one more. */
  #send(): void {
    this.#isDue = true;
    if (this.#isSending) return;
    this.#isSending = true;
    void this.#sendWhileDue();
  }

  /** Never rejects. */
  async #sendWhileDue(): Promise<void> {
    while (this.#isDue && !this.#isStopped) {
      await this.#passed(GATHER_MS);
      this.#isDue = false;
      this.#underWay = [...this.#wanted.values()];
      this.#wanted.clear();
      // What was sent before more messages were missed may be lost: it is due again.
      const missed = this.#missed;
      const isOver = () => this.#isStopped || missed !== this.#missed;
      const isWhole = (await this.#options.actors.send(isOver)) && (await this.#tell(this.#underWay, isOver));
      this.#underWay = [];
      if (!isWhole || this.#isDue) continue;
      this.#isUnshared = false;
      this.#options.onChange();
    }
    this.#isSending = false;
  }

  /** @returns whether those who asked were told that they have all */
  async #tell(rounds: readonly string[], isOver: () => boolean): Promise<boolean> {
    const { sent, logger } = this.#options;
    while (!isOver()) {
      try {
        if (rounds.length > 0) await sent(rounds);
        return !isOver();
      } catch (error) {
        logger.debug({ err: error }, 'cluster.states_sent');
        await this.#passed(AGAIN_MS);
      }
    }
    return false;
  }

  /** Never rejects. Ends when all have answered, or another round has begun. */
  async #complete(round: Round): Promise<void> {
    const { clock, logger, want, onChange } = this.#options;
    let againMs = WANT_AGAIN_MS;
    let wantAt = clock.monotonic();
    let isAsked = false;
    while (this.#round === round && !this.#isStopped) {
      try {
        if (clock.monotonic() >= wantAt) {
          await want(round.id);
          isAsked = true;
          wantAt = clock.monotonic() + againMs;
          againMs = Math.min(2 * againMs, WANT_AGAIN_AT_MOST_MS);
        }
      } catch (error) {
        logger.debug({ err: error }, 'cluster.states_wanted');
      }
      if (this.#round !== round) return;
      if (isAsked && this.#isAnswered(round)) {
        this.#round = undefined;
        onChange();
        return;
      }
      await this.#passed(LOOK_MS);
    }
  }

  #isAnswered({ answered }: Round): boolean {
    const others = this.#options.others();
    return others !== undefined && [...others].every((other) => answered.has(other));
  }

  #passed(ms: number): Promise<void> {
    return new Promise((resolve) => this.#options.clock.after(ms, resolve));
  }
}
