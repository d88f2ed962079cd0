import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from '../../src/core/kernel/clock.ts';
import { asEpochMs, type EpochMs } from '../../src/core/kernel/ids.ts';
import { PATIENCE_MS } from './until.ts';

interface Timer {
  readonly due: number;
  readonly callback: () => void;
}

/** More timers than this in one move is a timer that arms itself anew without a delay. */
const MAX_TIMERS = 100_000;

/** 2026-01-01T00:00:00Z: no test depends on the day it runs. */
const START = 1_767_225_600_000;

/** Time that moves only when a test says so. Timers fire in order of their due time, then of their arming. */
export class VirtualClock implements Clock {
  #now: number;
  readonly #began: number;
  #ahead = 0;
  readonly #timers = new Set<Timer>();

  constructor(now: number = START) {
    this.#now = now;
    this.#began = now;
  }

  now(): EpochMs {
    return asEpochMs(this.#now + this.#ahead);
  }

  monotonic(): number {
    return this.#now - this.#began;
  }

  /** The machine's start, when a test names it: it lasts as long as this clock, over restarts of a runtime. */
  boot: string | undefined;

  sinceBoot(): { readonly boot: string; readonly ms: number } | undefined {
    return this.boot === undefined ? undefined : { boot: this.boot, ms: this.monotonic() };
  }

  /** Sets the wall clock, while time goes on as it did. @param ms ahead of where it is; negative for back */
  set(ms: number): void {
    this.#ahead += ms;
  }

  after(delayMs: number, callback: () => void): () => void {
    const timer = { due: this.#now + Math.max(0, delayMs), callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** How many timers are armed; 0 at the end of a test shows that nothing was left behind. */
  get armed(): number {
    return this.#timers.size;
  }

  /** How long until the next timer comes due, milliseconds; undefined while none is armed. */
  get untilNext(): number | undefined {
    if (this.#timers.size === 0) return undefined;
    return Math.min(...[...this.#timers].map(({ due }) => due)) - this.#now;
  }

  /**
   * Moves time, firing each timer that comes due at its own time. Before the first and after each one, promises
   * and immediates that are ready run, so that a chain of awaits and timers unfolds as it would in real time.
   *
   * @param ms 0 only runs what is ready now
   */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await turn();
    for (let fired = 0; this.#fireNext(end, fired); fired += 1) await turn();
    this.#now = end;
  }

  /**
   * Lets time pass until a promise settles: for work outside of this clock, such as a request or a commit, that at some
   * point waits for this clock too. Awaiting it alone would never end.
   *
   * @param stepMs how far time moves at once; between two steps the world outside has a moment of real time
   * @returns what the promise resolves to
   * @throws what it rejects with, and an error when it does not settle within the patience of a test
   */
  async passUntil<T>(work: Promise<T>, stepMs = 100): Promise<T> {
    let isPending = true;
    const settle = () => {
      isPending = false;
    };
    work.then(settle, settle);
    await this.advance(0);
    for (const end = performance.now() + PATIENCE_MS; isPending; ) {
      if (performance.now() > end)
        throw new Error(
          `after ${PATIENCE_MS} ms, in which ${this.monotonic()} ms of virtual time passed, it has not ended`,
        );
      await this.advance(stepMs);
      await delay(2);
    }
    return work;
  }

  /** Like `advance`, in one synchronous go: promises settle only after it. For code that awaits nothing. */
  jump(ms: number): void {
    const end = this.#now + ms;
    for (let fired = 0; this.#fireNext(end, fired); fired += 1);
    this.#now = end;
  }

  #fireNext(end: number, fired: number): boolean {
    let next: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.due <= end && (next === undefined || timer.due < next.due)) next = timer;
    }
    if (next === undefined) return false;
    if (fired >= MAX_TIMERS) throw new Error(`more than ${MAX_TIMERS} timers fired in one move of the clock`);
    this.#timers.delete(next);
    this.#now = Math.max(this.#now, next.due);
    next.callback();
    return true;
  }
}

/** One turn of the event loop: microtasks and immediates that are ready have run when it resolves. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
