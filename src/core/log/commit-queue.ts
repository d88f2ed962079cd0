import type { Blobs, Snapshot } from './event-log.ts';
import type { CommitRequest, Row } from './protocol.ts';
import type { LogRecord } from './record.ts';

/** One transaction takes at most so many records: a commit stays short. */
const BATCH_RECORDS = 512;
/** Beyond so much text the log takes no more until some of it is durable. */
const QUEUE_BYTES = 8 * 1024 * 1024;

type Batch = Omit<CommitRequest, 'id' | 'firstSeq'>;

interface QueuedSnapshots {
  /** How many queued records go before them. */
  after: number;
  readonly rows: readonly (readonly [string, number, string])[];
  readonly keep: readonly string[];
  readonly done: () => void;
}

/** What waits for a commit, in order, with its size. Records are JSON from here on: they cannot change any more. */
export class CommitQueue {
  #rows: Row[] = [];
  #blobs: { after: number; key: string; body: Uint8Array }[] = [];
  #snapshots: QueuedSnapshots[] = [];
  #takenBytes = 0;
  #takenSnapshots: QueuedSnapshots | undefined;
  bytes = 0;

  get waiting(): boolean {
    return this.#rows.length > 0 || this.#snapshots.length > 0;
  }

  get full(): boolean {
    return this.bytes >= QUEUE_BYTES;
  }

  push(record: LogRecord, blobs?: Blobs): void {
    const body = JSON.stringify(record);
    this.#rows.push([record.actor, record.correlation, body]);
    this.bytes += body.length;
    for (const [key, blob] of blobs ?? []) {
      this.#blobs.push({ after: this.#rows.length, key, body: blob });
      this.bytes += blob.length;
    }
  }

  /** @returns resolves when they are durable */
  pushSnapshots(snapshots: readonly Snapshot[], keep: ReadonlySet<string>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const rows = snapshots.map(({ actor, seq, body }) => [actor, seq, body] as const);
    this.#snapshots.push({ after: this.#rows.length, rows, keep: [...keep], done: resolve });
    return promise;
  }

  blob(key: string): Uint8Array | undefined {
    return this.#blobs.findLast((blob) => blob.key === key)?.body;
  }

  /** The next transaction, or undefined when nothing waits. Snapshots end the transaction that they join. */
  take(): Batch | undefined {
    if (!this.waiting) return undefined;
    const snapshots = this.#snapshots[0];
    const count = Math.min(this.#rows.length, BATCH_RECORDS, snapshots?.after ?? BATCH_RECORDS);
    const rows = this.#rows.splice(0, count);
    const blobs = this.#blobs.filter(({ after }) => after <= count);
    this.#blobs = this.#blobs.filter(({ after }) => after > count);
    for (const blob of this.#blobs) blob.after -= count;
    const joins = snapshots !== undefined && snapshots.after <= count;
    if (joins) this.#snapshots.shift();
    for (const waiting of this.#snapshots) waiting.after -= count;
    this.#takenSnapshots = joins ? snapshots : undefined;
    this.#takenBytes = sum(rows, ([, , body]) => body.length) + sum(blobs, ({ body }) => body.length);
    return {
      rows,
      blobs: blobs.map(({ key, body }) => [key, body] as const),
      ...(joins && { snapshots: { rows: snapshots.rows, keep: snapshots.keep } }),
    };
  }

  /** What was taken last is durable. @returns its size in bytes */
  done(): number {
    this.bytes -= this.#takenBytes;
    this.#takenSnapshots?.done();
    this.#takenSnapshots = undefined;
    return this.#takenBytes;
  }
}

function sum<T>(items: readonly T[], size: (item: T) => number): number {
  return items.reduce((total, item) => total + size(item), 0);
}
