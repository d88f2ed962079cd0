import { DatabaseSync } from 'node:sqlite';
import { openVault } from '../../src/core/host/secrets/vault.ts';
import { type ActorState, applyRecord } from '../../src/core/kernel/actors/transition.ts';
import { LogWriter } from '../../src/core/kernel/log/log-writer.ts';
import type { LogRecord } from '../../src/core/kernel/log/record.ts';
import { INDEX_EVERY } from '../../src/core/kernel/log/record-index.ts';
import { logFile } from '../../src/core/kernel/log/schema.ts';

/** States are saved as often as a runtime does it. */
const SAVE_EVERY = 10_000;
const CLOSING = 'xstate.after.closing.door.open';
/** Records of one visit. */
const VISIT = 4;
/** Milliseconds between two visits. */
const PAUSE_MS = 340;
/** Doors of the long story. */
const LONG_DOORS = 40;

export interface LargeLog {
  readonly records: number;
  readonly doors: number;
  /** When the newest visit began, epoch milliseconds. */
  readonly end: number;
  /** One in so many visits fails. */
  readonly failEvery: number;
  /** The story in the middle has so many records, of visits that led to one another. */
  readonly longest?: number;
  /** A file of larger pages than a runtime's is written in half the time. */
  readonly pageBytes?: number;
}

/** The id of the story in the middle. */
export const LONG_STORY = '01a205ff-0000-7000-8000-000000000001';

/**
 * Writes a log of doors (`door.ts`) by the log's own writer, many records to a transaction: a million in some ten seconds.
 * Each visit is a story: a door is opened, its lamp goes on, somebody knocks, it is closed.
 */
export function writeLargeLog(
  dataDir: string,
  { records, doors, end, failEvery, longest = 0, pageBytes }: LargeLog,
): void {
  openVault(dataDir); // a runtime that finds a log without its keys refuses to start
  if (pageBytes !== undefined) {
    const db = new DatabaseSync(logFile(dataDir));
    db.exec(`PRAGMA page_size = ${pageBytes}; PRAGMA journal_mode = WAL`);
    db.close();
  }
  const visits = Math.ceil(records / VISIT);
  const [inLong, begin] = [longest / VISIT, end - visits * PAUSE_MS];
  const longFrom = Math.floor((visits - inLong) / 2);
  const log = new DoorsLog(dataDir, records);
  let before: number | undefined;
  for (let visit = 0; log.seq < records; visit += 1) {
    const isLong = visit >= longFrom && visit < longFrom + inLong;
    const at = begin + visit * PAUSE_MS;
    const closed = log.visit(`door-${visit % (isLong ? LONG_DOORS : doors)}`, {
      at,
      by: `guest-${visit}`,
      correlation: isLong ? LONG_STORY : storyId(visit),
      fails: visit % failEvery === failEvery - 1,
      cause: isLong ? before : undefined,
    });
    before = isLong ? closed : undefined;
  }
  log.close();
}

/** As the runtime makes them: later ids sort later. */
function storyId(visit: number): string {
  const digits = visit.toString(16).padStart(12, '0');
  return `01a205fe-${digits.slice(0, 4)}-7000-8000-0000${digits.slice(4)}`;
}

interface Visit {
  readonly at: number;
  readonly by: string;
  readonly correlation: string;
  readonly fails: boolean;
  /** The record that led to it. */
  readonly cause: number | undefined;
}

class DoorsLog {
  seq = 0;
  readonly #writer: LogWriter;
  readonly #most: number;
  readonly #states = new Map<string, ActorState>();
  readonly #changed = new Set<string>();
  #rows: string[] = [];

  constructor(dataDir: string, most: number) {
    this.#writer = new LogWriter({ dataDir, signEvery: most });
    this.#most = most;
  }

  /** @returns the seq of its last record */
  visit(key: string, { at, by, correlation, fails, cause }: Visit): number {
    const base = { actor: `test.door/${key}`, machine: 'door', version: 1, correlation };
    const caused = cause === undefined ? {} : { cause };
    const known = this.#states.get(base.actor);
    if (!known) {
      const input = { closeAfterMs: 1_000 };
      const to = { value: 'closed', context: { opened: 0, ...input } };
      this.#add({ ...base, at, event: { type: 'init', input }, to, effects: [], ...caused });
    }
    const { opened } = (known?.context ?? { opened: 0 }) as { opened: number };
    const opening = this.#add({
      ...base,
      ...{ at, event: { type: 'OPEN', by }, from: 'closed' },
      to: { value: 'open', context: { opened: opened + 1, by } },
      effects: [
        { type: 'lamp.on', params: { by } },
        { type: 'timer.start', params: { timer: CLOSING, at: at + 1_000 } },
      ],
      ...caused,
    });
    const inside = { ...base, from: 'open', to: { value: 'open' }, effects: [], cause: opening };
    this.#add({
      ...inside,
      at: at + 3,
      event: fails
        ? { type: 'effect.failed', effect: 'lamp.on', code: 'ERROR', message: 'the lamp is broken' }
        : { type: 'effect.done', effect: 'lamp.on' },
      ignored: true,
      outcome: `${opening}.0`,
    });
    this.#add({ ...inside, at: at + 40, event: { type: 'KNOCK' }, ignored: true });
    return this.#add({
      ...inside,
      ...{ at: at + 200, event: { type: 'CLOSE' }, to: { value: 'closed' } },
      effects: [{ type: 'timer.cancel', params: { timer: CLOSING } }],
    });
  }

  #add(facts: Omit<LogRecord, 'seq'>): number {
    if (this.seq === this.#most) return this.seq;
    this.seq += 1;
    const record = { seq: this.seq, ...facts };
    const { actor } = record;
    this.#rows.push(actor, record.correlation, JSON.stringify(record));
    this.#states.set(actor, applyRecord(this.#states.get(actor), record));
    this.#changed.add(actor);
    if (this.seq % INDEX_EVERY === 0 || this.seq === this.#most) this.#commit();
    if (this.seq % SAVE_EVERY === 0) this.#save();
    return this.seq;
  }

  #commit(): void {
    const firstSeq = this.seq - this.#rows.length / 3 + 1;
    this.#writer.commit({ id: this.seq, firstSeq, rows: this.#rows, blobs: [] });
    this.#rows = [];
  }

  #save(): void {
    const rows = [...this.#changed].flatMap((ref) => [ref, JSON.stringify(this.#states.get(ref))]);
    this.#writer.save({ seq: this.seq, rows, finish: { full: false } });
    this.#changed.clear();
  }

  close(): void {
    this.#writer.close();
  }
}
