import { randomFillSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';
import { v7 } from 'uuid';
import { JUMP_MS } from './clock-jumps.ts';
import { asEpochMs, type EpochMs } from './ids.ts';

/** Time as the runtime sees it. Tests hand in `VirtualClock` and move it by hand. */
export interface Clock {
  /** The wall clock, which can be set: for what is shown, and for terms that name a date. */
  now(): EpochMs;
  /** Milliseconds since some moment of this process; nothing but time passing changes it: for durations. */
  monotonic(): number;
  /** How long the machine has been up, and which start of it that was; absent where no system says so reliably. */
  sinceBoot?(): { readonly boot: string; readonly ms: number } | undefined;
  /** Calls back once after `delayMs`; the returned function cancels. Never keeps the process alive. */
  after(delayMs: number, callback: () => void): () => void;
}

/** Resolves after a time. @param ms milliseconds */
export function passed(clock: Pick<Clock, 'after'>, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.after(ms, resolve);
  });
}

/**
 * A time as answers and texts give it: ISO 8601 in UTC, to the millisecond.
 *
 * @param at epoch milliseconds
 * @throws RangeError it is no time that a calendar has
 */
export function isoTime(at: number): string {
  return new Date(at).toISOString();
}

/** Node fires a timer with a longer delay at once, so a longer wait is made in steps. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

/** Linux counts the time since its start apart from the wall clock, also while it is suspended. */
const BOOT = bootId();

function bootId(): string | undefined {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim() || undefined;
  } catch {
    return undefined;
  }
}

export const systemClock: Clock = {
  now: () => asEpochMs(Date.now()),
  monotonic: () => performance.now(),
  sinceBoot: () => (BOOT === undefined ? undefined : { boot: BOOT, ms: Math.round(uptime() * 1_000) }),
  after(delayMs, callback) {
    let timer: NodeJS.Timeout;
    const arm = (remainingMs: number) => {
      const step = Math.min(Math.max(remainingMs, 0), LONGEST_TIMEOUT_MS);
      timer = setTimeout(() => (remainingMs > step ? arm(remainingMs - step) : callback()), step);
      timer.unref();
    };
    arm(delayMs);
    return () => clearTimeout(timer);
  },
};

/** A look so often makes small steps the new measure; milliseconds. */
const FOLLOW_MS = 5_000;

/** Compares the wall clock with the time that passes, as long as a process runs. */
export class ClockWatch {
  readonly #clock: Clock;
  #wall: number;
  #passed: number;
  #sinceBoot: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#wall = clock.now();
    this.#passed = clock.monotonic();
    this.#sinceBoot = clock.sinceBoot?.()?.ms;
  }

  /** @returns by how much the clock was set since the last look, milliseconds; 0 unless that is more than `JUMP_MS` */
  look(): number {
    const byMs = this.sinceLook();
    const passed = this.#clock.monotonic();
    if (byMs === 0 && passed - this.#passed < FOLLOW_MS) return 0;
    this.#wall = this.#clock.now();
    this.#passed = passed;
    this.#sinceBoot = this.#clock.sinceBoot?.()?.ms;
    return byMs;
  }

  /** The same, without making it the new measure: for who computes a duration before the jump is recorded. */
  sinceLook(): number {
    const wall = this.#clock.now() - this.#wall;
    const byMs = wall - (this.#clock.monotonic() - this.#passed);
    if (Math.abs(byMs) <= JUMP_MS) return 0;
    // A machine that was suspended had its monotonic clock stand still; the time since its boot went on.
    const before = this.#sinceBoot;
    const sinceBoot = this.#clock.sinceBoot?.()?.ms;
    const isSleep =
      before !== undefined && sinceBoot !== undefined && Math.abs(wall - (sinceBoot - before)) <= JUMP_MS;
    return isSleep ? 0 : Math.round(byMs);
  }
}

/** The time that records carry: the wall clock, which they see go back only by a jump that a record names. */
export class RecordClock {
  readonly #clock: Clock;
  readonly #watch: ClockWatch;
  #newest: number;

  /** @param newest time of the newest record, epoch milliseconds */
  constructor(clock: Clock, newest: number) {
    this.#clock = clock;
    this.#watch = new ClockWatch(clock);
    this.#newest = newest;
  }

  /** @returns the time of the next record, epoch milliseconds: never before that of the last */
  next(): number {
    this.#newest = Math.max(this.#newest, this.#clock.now());
    return this.#newest;
  }

  /** @returns by how much the clock was set since the last look, milliseconds; 0 when that needs no record */
  look(): number {
    const jumpedMs = this.#watch.look();
    if (jumpedMs !== 0) return jumpedMs;
    const behindMs = this.#newest - this.#clock.now(); // many small steps
    return behindMs > JUMP_MS ? -behindMs : 0;
  }

  /** The wall clock as it would be without what no record names yet, epoch milliseconds: for durations. */
  recorded(): number {
    return this.#clock.now() - this.#watch.sinceLook();
  }

  /** Lets the next record have the time as it is set now: call it for the record of a jump. */
  jump(): void {
    this.#newest = this.#clock.now();
  }
}

/** A draw from the system's generator costs ten times the rest of an id, so this many ids share one. */
const IDS_PER_DRAW = 256;
const ID_BYTES = 16;
const pool = new Uint8Array(ID_BYTES * IDS_PER_DRAW);
let drawn = pool.length;
let lastMs = 0;
let withinMs = 0;

/**
 * A time-ordered correlation id (UUID version 7), larger than every one before of this process. Random ids would
 * scatter the correlation index and cost five times as much per insert.
 */
export function newCorrelation(): string {
  if (drawn === pool.length) {
    randomFillSync(pool);
    drawn = 0;
  }
  const random = pool.subarray(drawn, drawn + ID_BYTES);
  drawn += ID_BYTES;
  const now = Date.now();
  if (now > lastMs) {
    lastMs = now;
    withinMs = new DataView(random.buffer, random.byteOffset).getUint32(0) >>> 1;
  } else {
    withinMs += 1;
  }
  return v7({ random, msecs: lastMs, seq: withinMs });
}
