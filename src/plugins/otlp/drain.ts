import type { ColumnarDatabase, TableSchema } from '../../core/contracts/columnar-database.ts';
import type { SignalTable } from '../../core/contracts/columnar-tables.ts';
import { maskText } from '../../core/host/logging/mask-text.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { writerOf } from './decode/row-writer.ts';
import type { Frame } from './spool/protocol.ts';

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
  /** The rows of a frame, written for its table as it is; undefined when they are lost. Rejects while there is no spool to read. */
  readonly read: (frame: Frame, schema: TableSchema) => Promise<Uint8Array | undefined>;
  /** An insert begins, or has ended. */
  readonly inserting: (change: 1 | -1) => void;
  /** A frame is in the database, or lost. */
  readonly done: (frame: Frame, inserted: boolean) => void;
  /** Called at each change: why nothing gets into the database, or undefined when something does. */
  readonly changed: (place: string, reason: string | undefined) => void;
}

/** Inserts of one table that are under way at once: while the engine works on one, the next is made ready. */
const AT_ONCE = 2;

/** A frame with its place in the order of writing. */
interface Placed {
  readonly frame: Frame;
  readonly place: number;
}

/** The frames of one table, the oldest first. */
interface Lane {
  readonly waiting: Placed[];
  readonly busy: Set<Placed>;
  /** After a frame was not taken: until the next try. */
  paused: boolean;
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
  #next = 0;
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
    return [...this.#lanes.values()].flatMap(({ waiting, busy }) =>
      [...busy, ...waiting].map(({ frame }) => frame),
    );
  }

  add(frames: readonly Frame[]): void {
    for (const frame of frames) {
      let lane = this.#lanes.get(frame.table);
      if (!lane) {
        lane = { waiting: [], busy: new Set(), paused: false, waitMs: FIRST_WAIT_MS };
        this.#lanes.set(frame.table, lane);
      }
      this.#next += 1;
      const isBusy = [...lane.busy].some((placed) => placed.frame.id === frame.id);
      if (!isBusy) lane.waiting.push({ frame, place: this.#next });
      this.#start(lane);
    }
  }

  /** Forgets what waits: the spool is opened anew and tells again. */
  reset(): void {
    for (const lane of this.#lanes.values()) lane.waiting.length = 0;
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
    // Only one tries whether a database that was away is there again.
    const atOnce = this.#away.size > 0 ? 1 : AT_ONCE;
    while (!this.#stopped && !lane.paused && lane.busy.size < atOnce) {
      const placed = lane.waiting.shift();
      if (!placed) return;
      lane.busy.add(placed);
      const run = this.#run(lane, placed).finally(() => this.#running.delete(run));
      this.#running.add(run);
    }
  }

  async #run(lane: Lane, placed: Placed): Promise<void> {
    const { table } = placed.frame;
    const carried = await this.#carry(placed.frame);
    lane.busy.delete(placed);
    // The spool is opened anew, and will tell of this frame again.
    if (carried === 'unread') return;
    if (typeof carried === 'string') {
      this.#parts.done(placed.frame, carried === 'inserted');
      lane.waitMs = FIRST_WAIT_MS;
      this.#note(table, undefined);
      this.#start(lane);
      return;
    }
    lane.waiting.push(placed);
    lane.waiting.sort((one, other) => one.place - other.place);
    this.#note(table, carried.reason);
    this.#later(lane);
  }

  async #carry(frame: Frame): Promise<'inserted' | 'lost' | 'unread' | { readonly reason: string }> {
    try {
      const database = this.#parts.database();
      if (!database) return { reason: 'no columnar database is there' };
      const schema = await database.schema(frame.table);
      const read = this.#parts.read(frame, schema).then((bytes) => ({ bytes }));
      const text = await read.catch(() => undefined);
      if (!text) return 'unread';
      if (!text.bytes) return 'lost';
      const { columns } = writerOf(schema);
      const rows = { rows: frame.rows, schema, columns, bytes: text.bytes };
      const options = { token: frame.id, maxSeconds: INSERT_SECONDS, signal: this.#stop.signal };
      this.#parts.inserting(1);
      await database.insert(frame.table, rows, options).finally(() => this.#parts.inserting(-1));
      return 'inserted';
    } catch (error) {
      const reason = isCoded(error) ? error.what : error instanceof Error ? error.message : String(error);
      return { reason: maskText(reason, REASON_LENGTH) };
    }
  }

  #later(lane: Lane): void {
    if (this.#stopped || lane.paused) return;
    lane.paused = true;
    const cancel = this.#parts.clock.after(lane.waitMs, () => {
      this.#timers.delete(cancel);
      lane.paused = false;
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
