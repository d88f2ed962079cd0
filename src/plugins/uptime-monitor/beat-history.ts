import { setImmediate } from 'node:timers/promises';
import type { EventLog } from '../../core/kernel/log/event-log.ts';
import type { LogRecord } from '../../core/kernel/log/record.ts';
import { monitorActor } from './actor.ts';

/** A beat as pages show it. */
export interface ShownBeat {
  /** Epoch milliseconds. */
  readonly at: number;
  readonly up: boolean;
  /** Milliseconds. */
  readonly ping?: number;
}

/** Beats kept for each monitor: 1.7 KB. */
const BEATS_KEPT = 100;
/** Records of a monitor that are read for them: it may have been paused, and timers have records too. */
const RECORDS_READ = 300;

/** The newest beats of one monitor. */
class BeatRing {
  readonly #at = new Float64Array(BEATS_KEPT);
  readonly #ping = new Float64Array(BEATS_KEPT);
  readonly #up = new Uint8Array(BEATS_KEPT);
  #count = 0;
  /** Whether the beats before the start of this process are in it, or are none of the newest any more. */
  isComplete = false;

  add({ at, up, ping = -1 }: ShownBeat): void {
    const index = this.#count % BEATS_KEPT;
    this.#at[index] = at;
    this.#up[index] = up ? 1 : 0;
    this.#ping[index] = ping;
    this.#count += 1;
    if (this.#count >= BEATS_KEPT) this.isComplete = true;
  }

  /** Oldest first. */
  list(): ShownBeat[] {
    const kept = Math.min(this.#count, BEATS_KEPT);
    return Array.from({ length: kept }, (_, offset) => {
      const index = (this.#count - kept + offset) % BEATS_KEPT;
      const ping = this.#ping[index] ?? -1;
      return { at: this.#at[index] ?? 0, up: this.#up[index] === 1, ...(ping >= 0 && { ping }) };
    });
  }
}

/**
 * The newest beats of each monitor, for pages. No decision depends on them. Beats of this process are kept as they come;
 * those before its start are read from the event log when a page first shows the monitor.
 */
export class BeatHistory {
  readonly #log: EventLog;
  /** The newest record of the processes before this one. */
  readonly #startSeq: number;
  readonly #rings = new Map<string, BeatRing>();

  /** To be made before the first beat is taken. */
  constructor(log: EventLog) {
    this.#log = log;
    this.#startSeq = log.lastSeq();
  }

  /** @param monitor its name */
  add(monitor: string, beat: ShownBeat): void {
    const ring = this.#rings.get(monitor) ?? new BeatRing();
    this.#rings.set(monitor, ring);
    ring.add(beat);
  }

  /** The newest beats of a monitor, at most 100, oldest first. @param monitor its name */
  async list(monitor: string): Promise<ShownBeat[]> {
    const present = this.#rings.get(monitor);
    if (present?.isComplete) return present.list();
    const before = await this.#beatsBeforeStart(monitor);
    // Beats that came while the log was read are in the ring of this moment.
    const whole = new BeatRing();
    for (const beat of [...before, ...(this.#rings.get(monitor)?.list() ?? [])]) whole.add(beat);
    whole.isComplete = true;
    this.#rings.set(monitor, whole);
    return whole.list();
  }

  /** Oldest first. */
  async #beatsBeforeStart(monitor: string): Promise<ShownBeat[]> {
    const beats: ShownBeat[] = [];
    const actor = `${monitorActor.type}/${monitor}`;
    // A page may show thousands of monitors; other work runs between two of them.
    await setImmediate();
    const range = { actor, to: this.#startSeq, reverse: true, limit: RECORDS_READ };
    for await (const record of this.#log.read(range)) {
      const beat = beatOf(record);
      if (beat) beats.push(beat);
      if (beats.length === BEATS_KEPT) break;
    }
    return beats.reverse();
  }
}

/** The beat that a record took; undefined for any other record, and for a beat that a paused monitor refused. */
function beatOf({ event, to }: LogRecord): ShownBeat | undefined {
  if (event.type !== 'BEAT' || to.value === 'paused' || to.value === 'released') return undefined;
  // The time at which the beat came; its record is made a moment later.
  const { at, ping } = event;
  if (typeof at !== 'number') return undefined;
  return { at, up: event.up === true, ...(typeof ping === 'number' && { ping }) };
}
