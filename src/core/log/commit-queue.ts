import type { Blobs, Snapshot } from './event-log.ts';
import type { CommitRequest } from './protocol.ts';
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
  /** Tells whoever waits for the snapshots in it. */
  readonly saved: (() => void) | undefined;
}

interface QueuedRow {
  readonly actor: string;
  readonly correlation: string;
  readonly body: string;
  readonly blobs: Blobs | undefined;
}

interface QueuedSnapshots {
  /** They go after this record. */
  readonly seq: number;
  readonly rows: readonly Snapshot[];
  readonly keep: readonly string[];
  readonly saved: () => void;
}

/** What waits for a commit, in order, with its size. Records are JSON from here on: they cannot change any more. */
export class CommitQueue {
  #rows: QueuedRow[] = [];
  #snapshots: QueuedSnapshots[] = [];
  #nextId = 1;
  #nextSeq: number;
  /** Bytes that are queued or on their way. */
  bytes = 0;

  constructor(nextSeq: number) {
    this.#nextSeq = nextSeq;
  }

  get waiting(): boolean {
    return this.#rows.length > 0 || this.#snapshots.length > 0;
  }

  get full(): boolean {
    return this.bytes >= QUEUE_BYTES;
  }

  push({ seq, actor, correlation, ...rest }: LogRecord, blobs?: Blobs): void {
    const row = {
      seq,
      actor,
      correlation,
      body: JSON.stringify({ seq, actor, correlation, ...rest }),
      blobs,
    };
    this.#rows.push(row);
    this.bytes += size(row);
  }

  /** @returns resolves when they are durable */
  pushSnapshots(seq: number, rows: readonly Snapshot[], keep: ReadonlySet<string>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#snapshots.push({ seq, rows, keep: [...keep], saved: resolve });
    return promise;
  }

  blob(key: string): Uint8Array | undefined {
    return this.#rows.findLast(({ blobs }) => blobs?.has(key))?.blobs?.get(key);
  }

  /** The next transaction, or undefined when nothing waits. Snapshots end the transaction that they join. */
  take(): Batch | undefined {
    if (!this.waiting) return undefined;
    const due = this.#snapshots[0];
    const room = due ? Math.min(due.seq - this.#nextSeq + 1, BATCH_RECORDS) : BATCH_RECORDS;
    const rows = this.#rows.splice(0, room);
    const firstSeq = this.#nextSeq;
    this.#nextSeq += rows.length;
    const snapshots = due && due.seq < this.#nextSeq ? this.#snapshots.shift() : undefined;
    return {
      request: {
        id: this.#nextId++,
        firstSeq,
        rows: rows.flatMap(({ actor, correlation, body }) => [actor, correlation, body]),
        blobs: rows.flatMap(({ blobs }) => [...(blobs ?? [])]),
        ...(snapshots && {
          snapshots: {
            rows: snapshots.rows.map(({ actor, seq, body }) => [actor, seq, body] as const),
            keep: snapshots.keep,
          },
        }),
      },
      lastSeq: this.#nextSeq - 1,
      bytes: rows.reduce((total, row) => total + size(row), 0),
      saved: snapshots?.saved,
    };
  }
}

function size({ body, blobs }: QueuedRow): number {
  let bytes = body.length;
  for (const blob of blobs?.values() ?? []) bytes += blob.length;
  return bytes;
}
