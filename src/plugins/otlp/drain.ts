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
/** How long a stop waits for inserts under way, ms; their rows are on disk. */
const STOP_MS = 3_000;
const REASON_LENGTH = 300;
/** Inserts into one table that are under way: while the engine works on one, the next is made ready. */
const INSERTS_A_TABLE = 2;

export interface DrainOptions {
  readonly clock: Clock;
  /** Undefined while nobody provides one. */
  readonly database: () => ColumnarDatabase | undefined;
  /** The rows of a frame, written for its table as it is; undefined when they are lost. Rejects while no thread can read them. */
  readonly read: (frame: Frame, schema: TableSchema) => Promise<Uint8Array | undefined>;
  /** An insert begins (1), or has ended (-1). */
  readonly countInsert: (change: 1 | -1) => void;
  readonly onDone: (frame: Frame, result: 'inserted' | 'lost') => void;
  /** Called at each change. @param reason why inserts fail; undefined when none does */
  readonly onDatabase: (place: string, reason: string | undefined) => void;
}

interface Entry {
  readonly frame: Frame;
  isBusy: boolean;
}

/** The frames of one table, the oldest first. A frame keeps its place until it is inserted, so a failed one is next again. */
interface TableQueue {
  readonly entries: Entry[];
  /** After a failed insert, until the next try. */
  isPaused: boolean;
  waitMs: number;
}

type Result = 'inserted' | 'lost' | 'unreadable' | { readonly failed: string };

/**
 * Inserts the frames of the spool into the database in their order, each table separately, so that a table whose inserts
 * fail delays no other. It is no RxJS stream, because a failed frame keeps its place in the queue.
 */
export class Drain {
  readonly #options: DrainOptions;
  readonly #queues = new Map<SignalTable, TableQueue>();
  /** Tables whose inserts fail, with the reason. */
  readonly #failing = new Map<SignalTable, string>();
  readonly #timers = new Set<() => void>();
  readonly #running = new Set<Promise<void>>();
  readonly #stop = new AbortController();
  #unavailable: string | undefined;
  #isReported = false;
  #isStopped = false;

  constructor(options: DrainOptions) {
    this.#options = options;
  }

  /** Why inserts fail, of some tables or all; undefined while none does. */
  get unavailable(): string | undefined {
    return this.#unavailable;
  }

  /** Frames that wait or are being inserted. */
  get frames(): readonly Frame[] {
    return [...this.#queues.values()].flatMap(({ entries }) => entries.map(({ frame }) => frame));
  }

  add(frames: readonly Frame[]): void {
    for (const frame of frames) {
      const queue = this.#queueOf(frame.table);
      const isBusy = firstOf(queue).some((entry) => entry.isBusy && entry.frame.id === frame.id);
      if (!isBusy) queue.entries.push({ frame, isBusy: false });
      this.#fill(queue);
    }
  }

  /** Forgets the frames that wait: the spool has been opened again and will report them. */
  forgetWaiting(): void {
    for (const { entries } of this.#queues.values()) {
      entries.splice(0, entries.length, ...entries.filter(({ isBusy }) => isBusy));
    }
  }

  /** Ends after the inserts that are under way, or without them when they take too long. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
    const cancel = this.#options.clock.after(STOP_MS, () => this.#stop.abort());
    await Promise.all(this.#running);
    cancel();
  }

  #queueOf(table: SignalTable): TableQueue {
    let queue = this.#queues.get(table);
    if (!queue) {
      queue = { entries: [], isPaused: false, waitMs: FIRST_WAIT_MS };
      this.#queues.set(table, queue);
    }
    return queue;
  }

  #fill(queue: TableQueue): void {
    // While inserts fail, one frame at a time tests whether the database works again.
    const most = this.#failing.size > 0 ? 1 : INSERTS_A_TABLE;
    while (!this.#isStopped && !queue.isPaused) {
      const first = firstOf(queue);
      const entry = first.find(({ isBusy }) => !isBusy);
      if (!entry || first.filter(({ isBusy }) => isBusy).length >= most) return;
      entry.isBusy = true;
      const run = this.#run(queue, entry).finally(() => this.#running.delete(run));
      this.#running.add(run);
    }
  }

  async #run(queue: TableQueue, entry: Entry): Promise<void> {
    const { frame } = entry;
    const result = await this.#insert(frame);
    entry.isBusy = false;
    if (typeof result !== 'string') {
      this.#note(frame.table, result.failed);
      this.#pause(queue);
      return;
    }
    const at = queue.entries.indexOf(entry);
    if (at >= 0) queue.entries.splice(at, 1);
    // The thread is being restarted, and will report this frame again.
    if (result === 'unreadable') return;
    this.#options.onDone(frame, result);
    queue.waitMs = FIRST_WAIT_MS;
    this.#note(frame.table, undefined);
    this.#fill(queue);
  }

  async #insert(frame: Frame): Promise<Result> {
    const { database: find, read, countInsert } = this.#options;
    try {
      const database = find();
      if (!database) return { failed: 'there is no columnar database' };
      const schema = await database.schema(frame.table);
      let bytes: Uint8Array | undefined;
      try {
        bytes = await read(frame, schema);
      } catch {
        return 'unreadable';
      }
      if (!bytes) return 'lost';
      const { columns } = writerOf(schema);
      const options = { token: frame.id, maxSeconds: INSERT_SECONDS, signal: this.#stop.signal };
      countInsert(1);
      await database
        .insert(frame.table, { rows: frame.rows, schema, columns, bytes }, options)
        .finally(() => countInsert(-1));
      return 'inserted';
    } catch (error) {
      const reason = isCoded(error) ? error.what : error instanceof Error ? error.message : String(error);
      return { failed: maskText(reason, REASON_LENGTH) };
    }
  }

  #pause(queue: TableQueue): void {
    if (this.#isStopped || queue.isPaused) return;
    queue.isPaused = true;
    const cancel = this.#options.clock.after(queue.waitMs, () => {
      this.#timers.delete(cancel);
      queue.isPaused = false;
      this.#fill(queue);
    });
    this.#timers.add(cancel);
    queue.waitMs = Math.min(queue.waitMs * 2, LONGEST_WAIT_MS);
  }

  #note(table: SignalTable, reason: string | undefined): void {
    if (reason === undefined) this.#failing.delete(table);
    else this.#failing.set(table, reason);
    const [first] = this.#failing.values();
    const isChange = !this.#isReported || (first === undefined) !== (this.#unavailable === undefined);
    this.#unavailable = first;
    this.#isReported = true;
    if (isChange) this.#options.onDatabase(this.#options.database()?.place ?? '(none)', first);
  }
}

/** The frames that may be busy: inserts begin in order, so these are the oldest. */
function firstOf({ entries }: TableQueue): readonly Entry[] {
  return entries.slice(0, INSERTS_A_TABLE);
}
