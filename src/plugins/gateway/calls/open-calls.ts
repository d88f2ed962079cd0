import type { Clock } from '../../../core/kernel/clock.ts';
import { Slab } from '../../../core/kernel/slab.ts';
import type { CallEnded, ConfineParams } from '../../../machines/gateway/key.ts';
import { type Ending, KEY_ENDED, type Stop, stopWith } from '../stop.ts';

const LOOK_EVERY_MS = 60_000;

interface OpenCall {
  readonly routes: readonly string[];
  readonly stop: Stop;
  /** Epoch milliseconds. */
  until: number;
  disarm?: () => void;
}

/**
 * The calls that go on, by the actor of their key: a revoked key, a smaller scope or an expiry ends a stream that would
 * otherwise go on for hours.
 */
export class OpenCalls {
  readonly #clock: Clock;
  readonly #byActor = new Map<string, Slab<OpenCall>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Carries a call out for as long as its key admits it.
   *
   * @param actor of the key
   * @param until when the key stops being good, epoch milliseconds
   */
  async run(
    actor: string,
    { routes, until }: { readonly routes: readonly string[]; readonly until?: number },
    signal: Ending,
    carryOut: (stop: Stop) => Promise<CallEnded>,
  ): Promise<CallEnded> {
    const stop = stopWith(signal);
    const call: OpenCall = { routes, stop, until: Number.POSITIVE_INFINITY };
    const calls = this.#of(actor);
    const place = calls.add(call);
    this.#endAt(call, until);
    try {
      return await carryOut(stop);
    } finally {
      stop.release();
      call.disarm?.();
      calls.remove(place, call);
      if (calls.size === 0 && this.#byActor.get(actor) === calls) this.#byActor.delete(actor);
    }
  }

  /** Ends what a changed key admits no longer. */
  confine(actor: string, { servers, until }: ConfineParams): void {
    for (const call of this.#byActor.get(actor) ?? []) {
      if (call.routes.every((route) => servers.includes(route))) this.#endAt(call, until);
      else call.stop.abort(KEY_ENDED);
    }
  }

  #of(actor: string): Slab<OpenCall> {
    const known = this.#byActor.get(actor);
    if (known) return known;
    const calls = new Slab<OpenCall>();
    this.#byActor.set(actor, calls);
    return calls;
  }

  #endAt(call: OpenCall, until = Number.POSITIVE_INFINITY): void {
    if (until >= call.until) return;
    call.until = until;
    this.#arm(call);
  }

  /** Timers know nothing of a clock that is set: time is looked at again, and at least once a minute. */
  #arm(call: OpenCall): void {
    call.disarm?.();
    if (call.until === Number.POSITIVE_INFINITY) return;
    const left = call.until - this.#clock.now();
    if (left <= 0) call.stop.abort(KEY_ENDED);
    else call.disarm = this.#clock.after(Math.min(left, LOOK_EVERY_MS), () => this.#arm(call));
  }
}
