import type { Blobs } from './event-log.ts';
import type { Chore, CommitRequest, Done } from './protocol.ts';
import type { LogRecord } from './record.ts';

/** One transaction takes at most so many records: a commit stays short. */
const BATCH_RECORDS = 512;
/** Beyond so much text the log takes no more until some of it is durable. */
const QUEUE_BYTES = 8 * 1024 * 1024;

/** One transaction's worth, on its way. */
export interface Batch {
  readonly request: CommitRequest;
  readonly lastSeq: number;
  readonly bytes: number;
  /** Tells whoever waits for what goes with it. */
  readonly chore: QueuedChore | undefined;
}

interface QueuedRow {
  readonly actor: string;
  readonly correlation: string;
  readonly body: string;
  readonly blobs: Blobs | undefined;
}

interface QueuedChore extends PromiseWithResolvers<Done> {
  readonly chore: Chore;
  /** The newest record when it was queued: what is kept and what is dropped was told then. */
  readonly after: number;
}

/** What waits for a commit, in order, with its size. Records are JSON from here on: they cannot change any more. */
export class CommitQueue {
  #rows: QueuedRow[] = [];
  #chores: QueuedChore[] = [];
  #nextId = 1;
  #nextSeq: number;
  /** Bytes that are queued or on their way. */
  bytes = 0;

  constructor(nextSeq: number) {
    this.#nextSeq = nextSeq;
  }

  get waiting(): boolean {
    return this.#rows.length > 0 || this.#chores.length > 0;
  }

  get full(): boolean {
    return this.bytes >= QUEUE_BYTES;
  }

  push(record: LogRecord, blobs?: Blobs): void {
    const { actor, correlation } = record;
    const row = { actor, correlation, body: JSON.stringify(record), blobs };
    this.#rows.push(row);
    this.bytes += size(row);
  }

  /**
   * @param after the newest record queued
   * @returns resolves when it is durable
   */
  pushChore(chore: Chore, after: number): Promise<Done> {
    const waiting = { chore, after, ...Promise.withResolvers<Done>() };
    this.#chores.push(waiting);
    return waiting.promise;
  }

  /** Gives up what is no record; records are never given up. */
  rejectChores(error: unknown): void {
    for (const { reject } of this.#chores.splice(0)) reject(error);
  }

  blob(key: string): Uint8Array | undefined {
    return this.#rows.findLast(({ blobs }) => blobs?.has(key))?.blobs?.get(key);
  }

  /** The next transaction, or undefined when nothing waits. A chore ends the transaction that it joins. */
  take(): Batch | undefined {
    if (!this.waiting) return undefined;
    const due = this.#chores[0];
    const room = due ? Math.min(due.after - this.#nextSeq + 1, BATCH_RECORDS) : BATCH_RECORDS;
    const rows = this.#rows.splice(0, room);
    const firstSeq = this.#nextSeq;
    this.#nextSeq += rows.length;
    const chore = due && due.after < this.#nextSeq ? this.#chores.shift() : undefined;
    return {
      request: {
        id: this.#nextId++,
        firstSeq,
        rows: rows.flatMap(({ actor, correlation, body }) => [actor, correlation, body]),
        blobs: rows.flatMap(({ blobs }) => [...(blobs ?? [])]),
        ...chore?.chore,
      },
      lastSeq: this.#nextSeq - 1,
      bytes: rows.reduce((total, row) => total + size(row), 0),
      chore,
    };
  }
}

function size({ body, blobs }: QueuedRow): number {
  let bytes = body.length;
  for (const blob of blobs?.values() ?? []) bytes += blob.length;
  return bytes;
}
