import { randomFillSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';
import { v7 } from 'uuid';
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
