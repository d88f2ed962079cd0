import type { Clock } from '../../../core/kernel/clock.ts';
import type { CallEnded, ForwardParams } from '../../../machines/gateway/call-shapes.ts';
import type { ConfineParams } from '../../../machines/gateway/key-shapes.ts';
import { HOST_ISOLATED, KEY_ENDED } from '../upstream/failures.ts';
import type { GatewayCall } from './call.ts';
import type { HostStanding } from './host-standing.ts';

/** The surface waits 5 s for what is open when it stops: a call that takes longer is answered before its connection ends. */
const DRAIN_MS = 4_000;
/** Timers do not follow a wall clock that is set, so it is read again this often, milliseconds. */
const CHECK_EVERY_MS = 60_000;
/** How often a host of a cluster looks whether it is cut off, milliseconds. */
const LOOK_EVERY_MS = 500;

interface OpenCall {
  readonly call: GatewayCall;
  /** Its place among the open calls of its key. */
  place: number;
  readonly routes: readonly string[];
  /** When its key stops being good, epoch milliseconds. */
  until: number;
  disarm?: () => void;
}

/**
 * The admitted calls that go on, by the actor of their key. A revoked key, a smaller scope or an expiry ends a stream
 * that would otherwise go on for hours; so does a stop of the gateway, and on a host of a cluster that it is cut off, because it
 * would not hear of any of these.
 */
export class OpenCalls {
  readonly #clock: Clock;
  /**
   * Arrays, which stay when they are empty: sets that come and go with each call leave old tables behind, which keep
   * calls alive until a full garbage collection.
   */
  readonly #byActor = new Map<string, OpenCall[]>();
  readonly #stops = new Set<AbortSignal>();
  #endDraining: () => void = () => {};
  #endLooking: () => void = () => {};

  /** @param standing to the other hosts of a cluster; undefined without one */
  constructor(clock: Clock, standing?: Pick<HostStanding, 'ending'>) {
    this.#clock = clock;
    if (standing) this.#look(standing);
  }

  /** Ends all calls, and each that comes later, when a signal is aborted. */
  endWith(signal: AbortSignal): void {
    if (this.#stops.has(signal)) return;
    this.#stops.add(signal);
    signal.addEventListener('abort', () => {
      for (const { call } of this.#all()) call.abort(signal.reason);
    });
  }

  /**
   * Lets calls come to their end when a signal is aborted, within 4 s. What would not end by itself does at once: streams, and calls
   * that wait for a person.
   */
  drainWith(signal: AbortSignal): void {
    signal.addEventListener('abort', () => {
      const drained = new AbortController();
      this.endWith(drained.signal);
      for (const { call } of this.#all()) if (call.isLasting) call.abort(signal.reason);
      this.#endDraining = this.#clock.after(DRAIN_MS, () => drained.abort(signal.reason));
    });
  }

  /** Nothing is open any more. */
  stop(): void {
    this.#endDraining();
    this.#endLooking();
  }

  /** Carries a call out for as long as its key admits it. @param actor of the key */
  async run(actor: string, call: GatewayCall, params: ForwardParams): Promise<CallEnded> {
    const calls = this.#ofActor(actor);
    const { routes } = params;
    const open: OpenCall = { call, place: calls.length, routes, until: Number.POSITIVE_INFINITY };
    calls.push(open);
    this.#endAt(open, params.until);
    for (const { aborted, reason } of this.#stops) if (aborted) call.abort(reason);
    try {
      return await call.forward(params);
    } finally {
      open.disarm?.();
      const last = calls.pop();
      if (last !== undefined && last !== open) {
        calls[open.place] = last;
        last.place = open.place;
      }
    }
  }

  /** Ends what a changed key admits no longer. */
  confine(actor: string, { servers, until }: ConfineParams): void {
    for (const open of [...this.#ofActor(actor)]) {
      if (open.routes.every((route) => servers.includes(route))) this.#endAt(open, until);
      else open.call.abort(KEY_ENDED);
    }
  }

  #look(standing: Pick<HostStanding, 'ending'>): void {
    const mustEnd = standing.ending();
    if (mustEnd) for (const { call } of this.#all()) if (mustEnd(call)) call.abort(HOST_ISOLATED);
    this.#endLooking = this.#clock.after(LOOK_EVERY_MS, () => this.#look(standing));
  }

  #all(): OpenCall[] {
    return [...this.#byActor.values()].flat();
  }

  #ofActor(actor: string): OpenCall[] {
    const calls = this.#byActor.get(actor) ?? [];
    if (calls.length === 0) this.#byActor.set(actor, calls);
    return calls;
  }

  #endAt(open: OpenCall, until = Number.POSITIVE_INFINITY): void {
    if (until >= open.until) return;
    open.until = until;
    this.#arm(open);
  }

  #arm(open: OpenCall): void {
    open.disarm?.();
    if (open.until === Number.POSITIVE_INFINITY) return;
    const left = open.until - this.#clock.now();
    if (left <= 0) open.call.abort(KEY_ENDED);
    else open.disarm = this.#clock.after(Math.min(left, CHECK_EVERY_MS), () => this.#arm(open));
  }
}
