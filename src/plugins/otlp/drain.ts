import type { ColumnarDatabase, SignalRow, SignalTable } from '../../core/adapters/columnar-database.ts';
import type { Clock } from '../../core/clock.ts';
import { isCoded } from '../../core/errors/index.ts';
import { maskText } from '../../core/logging/index.ts';
import type { Frame } from './spool/index.ts';

/** Between two tries of a frame that the database did not take, ms: the first, doubled up to the last. */
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;
const INSERT_SECONDS = 60;
/** At a stop an insert may take so much longer, ms; what it carries is on disk. */
const STOP_MS = 3_000;
const REASON_LENGTH = 300;

export interface DrainParts {
  readonly clock: Clock;
  /** Undefined while nobody provides one. */
  readonly database: () => ColumnarDatabase | undefined;
  /** The rows of a frame, JSON, one a line; undefined when they are lost. Rejects while there is no spool to read. */
  readonly read: (frame: Frame) => Promise<string | undefined>;
  /** A frame is in the database, or lost. */
  readonly done: (frame: Frame, inserted: boolean) => void;
  /** Called at each change: why nothing gets into the database, or undefined when something does. */
  readonly changed: (place: string, reason: string | undefined) => void;
}

/** The frames of one table, inserted one after another, the oldest first. */
interface Lane {
  readonly frames: Frame[];
  /** What is being inserted. */
  busy: Frame | undefined;
  waitMs: number;
}

/** Takes frames from the spool into the database, each table for itself: one that is broken holds up no other. */
export class Drain {
  readonly #parts: DrainParts;
  readonly #lanes = new Map<SignalTable, Lane>();
  readonly #away = new Map<SignalTable, string>();
  readonly #timers = new Set<() => void>();
  readonly #running = new Set<Promise<void>>();
  #reason: string | undefined;
  #known = false;
  #stopped = false;
  readonly #stop = new AbortController();

  constructor(parts: DrainParts) {
    this.#parts = parts;
  }

  /** Why nothing, or not all, gets into the database; undefined while it does. */
  get reason(): string | undefined {
    return this.#reason;
  }

  /** Frames that wait or are being inserted. */
  get waiting(): readonly Frame[] {
    return [...this.#lanes.values()].flatMap(({ frames, busy }) => (busy ? [busy, ...frames] : frames));
  }

  add(frames: readonly Frame[]): void {
    for (const frame of frames) {
      let lane = this.#lanes.get(frame.table);
      if (!lane) {
        lane = { frames: [], busy: undefined, waitMs: FIRST_WAIT_MS };
        this.#lanes.set(frame.table, lane);
      }
      if (lane.busy?.id !== frame.id) lane.frames.push(frame);
      this.#start(lane);
    }
  }

  /** Forgets what waits: the spool is opened anew and tells again. */
  reset(): void {
    for (const lane of this.#lanes.values()) lane.frames.length = 0;
  }

  /** Ends after the inserts that are under way, or without them when they take too long. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
    const cancel = this.#parts.clock.after(STOP_MS, () => this.#stop.abort());
    await Promise.all(this.#running);
    cancel();
  }

  #start(lane: Lane): void {
    if (lane.busy || this.#stopped) return;
    const run = this.#run(lane).finally(() => this.#running.delete(run));
    this.#running.add(run);
  }

  async #run(lane: Lane): Promise<void> {
    for (let frame = lane.frames.shift(); frame; frame = lane.frames.shift()) {
      lane.busy = frame;
      const read = await this.#parts.read(frame).then(
        (text) => ({ text }),
        () => undefined,
      );
      // The spool is opened anew, and will tell of this frame again.
      if (!read) {
        lane.busy = undefined;
        return;
      }
      let reason: string | undefined;
      if (read.text === undefined) this.#parts.done(frame, false);
      else reason = await this.#insert(frame, read.text);
      lane.busy = undefined;
      if (reason !== undefined) {
        lane.frames.unshift(frame);
        this.#note(frame.table, reason);
        return this.#later(lane);
      }
      lane.waitMs = FIRST_WAIT_MS;
      this.#note(frame.table, undefined);
      if (this.#stopped) return;
    }
  }

  /** @returns why it is not in the database */
  async #insert(frame: Frame, text: string): Promise<string | undefined> {
    const database = this.#parts.database();
    if (!database) return 'no columnar database is there';
    try {
      const rows = text.split('\n').map((line) => JSON.parse(line) as SignalRow);
      await database.insert(frame.table, rows, {
        token: frame.id,
        maxSeconds: INSERT_SECONDS,
        signal: this.#stop.signal,
      });
      return void this.#parts.done(frame, true);
    } catch (error) {
      const reason = isCoded(error) ? error.what : error instanceof Error ? error.message : String(error);
      return maskText(reason, REASON_LENGTH);
    }
  }

  #later(lane: Lane): void {
    if (this.#stopped) return;
    const cancel = this.#parts.clock.after(lane.waitMs, () => {
      this.#timers.delete(cancel);
      this.#start(lane);
    });
    this.#timers.add(cancel);
    lane.waitMs = Math.min(lane.waitMs * 2, LONGEST_WAIT_MS);
  }

  #note(table: SignalTable, reason: string | undefined): void {
    if (reason === undefined) this.#away.delete(table);
    else this.#away.set(table, reason);
    const [first] = this.#away.values();
    const changed = !this.#known || (first === undefined) !== (this.#reason === undefined);
    this.#reason = first;
    this.#known = true;
    if (changed) this.#parts.changed(this.#parts.database()?.place ?? '(none)', first);
  }
}
