import type { Blobs } from './event-log.ts';
import type { LogRecord } from './record.ts';

/** One transaction: rows from `firstSeq` on, and what belongs to them. */
export interface CommitRequest {
  readonly id: number;
  readonly firstSeq: number;
  /** Actor, correlation and body of each record, one after another: flat, because it is cloned between threads. */
  readonly rows: readonly string[];
  readonly blobs: readonly (readonly [key: string, body: Uint8Array])[];
  readonly saving?: SavingPart;
  /** Records up to this one go, a slice at a time. */
  readonly prune?: number;
  /** Blobs that must not be read by anybody any more. */
  readonly shred?: readonly string[];
}

/** What goes with a transaction beside records. */
export type Chore = Pick<CommitRequest, 'saving' | 'prune' | 'shred'>;

/** What came of it. */
export interface Done {
  /** The checkpoint that became valid. */
  readonly saved?: Saved | undefined;
  /** Whether records are left to be deleted, or the write-ahead log still has what was shredded. */
  readonly more?: boolean | undefined;
}

/** A part of a checkpoint: the saved states of some actors; with `finish` it becomes valid. */
export interface SavingPart {
  /** The record after which the actors were so. */
  readonly seq: number;
  /** Actor and state of each, one after another. */
  readonly rows: readonly string[];
  /** Stands in the last part alone. */
  readonly finish?: {
    /** The blobs that are still needed; absent: none is dropped. */
    readonly keep?: readonly string[];
    /** Save also the actors that have not changed, so that nothing older is needed. */
    readonly full: boolean;
  };
}

/** What a finished checkpoint holds. */
export interface Saved {
  readonly count: number;
  readonly digest: string;
}

export type CommitReply =
  | { readonly id: number; readonly ok: true; readonly ms: number; readonly done: Done }
  | { readonly id: number; readonly ok: false; readonly reason: string };

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

/** Actor, correlation and body of a record. */
const COLUMNS = 3;

/** What is stored with a record. */
interface QueuedBlobs {
  readonly seq: number;
  readonly blobs: Blobs;
}

interface QueuedChore extends PromiseWithResolvers<Done> {
  readonly chore: Chore;
  /** The newest record when it was queued: what is kept and what is dropped was told then. */
  readonly after: number;
}

/** What waits for a commit, in order, with its size. Records are JSON from here on: they cannot change any more. */
export class CommitQueue {
  /** As a request has them: actor, correlation and body of each, one after another. */
  readonly #rows: string[] = [];
  readonly #blobs: QueuedBlobs[] = [];
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
    const { seq, actor, correlation } = record;
    const body = JSON.stringify(record);
    this.#rows.push(actor, correlation, body);
    this.bytes += body.length;
    if (!blobs) return;
    this.#blobs.push({ seq, blobs });
    for (const blob of blobs.values()) this.bytes += blob.length;
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
    return this.#blobs.findLast(({ blobs }) => blobs.has(key))?.blobs.get(key);
  }

  /** The next transaction, or undefined when nothing waits. A chore ends the transaction that it joins. */
  take(): Batch | undefined {
    if (!this.waiting) return undefined;
    const due = this.#chores[0];
    const room = due ? Math.min(due.after - this.#nextSeq + 1, BATCH_RECORDS) : BATCH_RECORDS;
    const rows = this.#rows.splice(0, room * COLUMNS);
    const firstSeq = this.#nextSeq;
    this.#nextSeq += rows.length / COLUMNS;
    const blobs = this.#blobsUpTo(this.#nextSeq - 1);
    const chore = due && due.after < this.#nextSeq ? this.#chores.shift() : undefined;
    return {
      request: { id: this.#nextId++, firstSeq, rows, blobs, ...chore?.chore },
      lastSeq: this.#nextSeq - 1,
      bytes: sizeOf(rows, blobs),
      chore,
    };
  }

  #blobsUpTo(seq: number): CommitRequest['blobs'] {
    const later = this.#blobs.findIndex((queued) => queued.seq > seq);
    const due = this.#blobs.splice(0, later < 0 ? this.#blobs.length : later);
    return due.flatMap(({ blobs }) => [...blobs]);
  }
}

function sizeOf(rows: readonly string[], blobs: CommitRequest['blobs']): number {
  let bytes = 0;
  for (let body = COLUMNS - 1; body < rows.length; body += COLUMNS) bytes += rows[body]?.length ?? 0;
  for (const [, blob] of blobs) bytes += blob.length;
  return bytes;
}
