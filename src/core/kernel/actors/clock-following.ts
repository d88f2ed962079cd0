import type { RecordClock } from '../clock.ts';
import { type ClockJump, JUMP_MS, jumpsOf, timeLeft } from '../clock-jumps.ts';
import { CLOCK, CLOCK_SET, type LogEvent, type LogRecord } from '../log/record.ts';
import type { SendMeta } from './mailbox.ts';
import type { ActorState, OpenTimer } from './transition.ts';
import type { Registered } from './versions.ts';

/** An actor that acts here. */
export interface Follower {
  readonly definition: Registered;
  readonly state: ActorState;
}

/** What following the clock needs of a system of actors. */
export interface Followers {
  /** By address, as they are now. */
  readonly live: ReadonlyMap<string, Follower>;
  /** Whether some type of actor records jumps in this run. */
  isRecording(): boolean;
  /** The seq of the newest record. */
  newestSeq(): number;
  transition(actor: string, event: LogEvent, meta: SendMeta): LogRecord;
}

/**
 * Has the actors of one runtime follow the wall clock: that it was set is recorded, and then every actor that compares times
 * takes those that it remembers by the clock as it is set now.
 */
export class ClockFollowing {
  readonly #time: RecordClock;
  readonly #followers: Followers;
  readonly #listeners: ((jump: ClockJump) => void)[] = [];

  constructor(time: RecordClock, followers: Followers) {
    this.#time = time;
    this.#followers = followers;
  }

  /** Calls back each time that the clock was set, once it is recorded and the actors know it. */
  onJump(listener: (jump: ClockJump) => void): void {
    this.#listeners.push(listener);
  }

  /** Records that the clock was set since the last look, if it was, and tells the actors. */
  look(): void {
    if (!this.#followers.isRecording()) return;
    const jumpedMs = this.#time.look();
    if (jumpedMs !== 0) this.#tellAll(this.#record(jumpedMs, false));
  }

  /**
   * Records that the clock was set while nothing ran here.
   *
   * @param byMs by how much, milliseconds; 0 for not at all
   * @returns tells the actors: call it when all of them take the events of their machine's present version
   */
  setWhileStopped(byMs: number): () => void {
    if (byMs === 0) return () => {};
    const record = this.#record(byMs, true);
    return () => this.#tellAll(record);
  }

  /** Tells an actor how the clock was set while it took no events, and how far it is from that of the host before. */
  catchUp(actor: Follower): void {
    const { seq, adopted } = actor.state;
    const aheadMs = adopted?.record === seq ? adopted.clockAheadMs : 0;
    if (Math.abs(aheadMs) > JUMP_MS) this.#tell(actor, aheadMs, { cause: seq });
    const clock = this.#clockActor();
    for (const { after, byMs } of jumpsOf(clock)) {
      if (after >= seq) this.#tell(actor, byMs, { cause: clock?.seq });
    }
  }

  /** How long an armed timer still has, milliseconds; however the clock was set since. */
  timeLeft(timer: OpenTimer): number {
    return timeLeft(timer, this.#time.recorded(), jumpsOf(this.#clockActor()));
  }

  #clockActor(): ActorState | undefined {
    return this.#followers.live.get(CLOCK.actor)?.state;
  }

  #record(byMs: number, whileStopped: boolean): LogRecord {
    this.#time.jump();
    const event = { type: CLOCK.event, byMs, after: this.#followers.newestSeq(), whileStopped };
    return this.#followers.transition(CLOCK.actor, event, {});
  }

  #tellAll({ seq, at, event, correlation }: LogRecord): void {
    const jump: ClockJump = { byMs: Number(event.byMs), after: Number(event.after) };
    for (const actor of this.#followers.live.values())
      this.#tell(actor, jump.byMs, { correlation, cause: seq }, at);
    for (const listener of this.#listeners) listener(jump);
  }

  #tell({ definition, state }: Follower, byMs: number, meta: SendMeta, at = this.#time.next()): void {
    if (state.done || !definition.machine.events.includes(CLOCK_SET)) return;
    this.#followers.transition(state.ref, { type: CLOCK_SET, at, byMs }, meta);
  }
}
