import { readFileSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { Clock } from '../../../core/kernel/clock.ts';

const FILE = 'cluster-position.json';
/** A change is written so long after it was made, together with others; milliseconds. */
const WRITE_AFTER_MS = 1_000;

const begin = z
  .object({
    /** The first message of the newest `begin`. */
    streamSeq: z.int().min(1),
    /** What the stream held before it, about. */
    bytesBefore: z.int().min(0),
    /** Until the stream has come to this record, an earlier one may hold more. */
    filledAt: z.int().min(0),
  })
  .readonly();

/** A place in a stream from which on it can be read. */
export type StreamBegin = z.output<typeof begin>;

const position = z.object({
  /** The host's own stream: the newest record that NATS acknowledged, and the message that holds it, 0 before the first. */
  mirror: z
    .object({
      incarnation: z.int().min(1),
      streamSeq: z.int().min(0),
      seq: z.int().min(0),
      hash: z.string(),
      /** From where on the stream can be read when what stands before is removed. */
      begin: begin.optional(),
    })
    .readonly()
    .optional(),
  /** The stream of messages to every host: the newest that was delivered here. */
  shared: z
    .object({
      incarnation: z.string(),
      seq: z.int().min(0),
      epoch: z.int().min(0),
      trail: z.array(z.string()).readonly(),
      /** Messages were missed, and the others' states had not come yet. */
      isIncomplete: z.boolean().optional(),
      /** The others may lack what this host has. */
      isUnshared: z.boolean().optional(),
    })
    .readonly()
    .optional(),
});

/** What a host remembers of the streams. */
export type Position = z.output<typeof position>;

/**
 * How far a host has come in the streams: `<dataDir>/cluster-position.json`. What the file says is never ahead of what was
 * done, and up to a second behind it: what it forgets is done again.
 */
export class ClusterPosition {
  readonly #file: string;
  readonly #clock: Clock;
  readonly #onError: (error: unknown) => void;
  #position: Position;
  #timer: (() => void) | undefined;
  #writing: Promise<void> = Promise.resolve();

  private constructor(file: string, position: Position, clock: Clock, onError: (error: unknown) => void) {
    this.#file = file;
    this.#position = position;
    this.#clock = clock;
    this.#onError = onError;
  }

  /**
   * @param dataDir folder of the host's data
   * @param onError hears of a file that cannot be read, which counts as none, or not be written, which is tried again
   */
  static open(dataDir: string, clock: Clock, onError: (error: unknown) => void): ClusterPosition {
    const file = join(dataDir, FILE);
    return new ClusterPosition(file, readPosition(file, onError), clock, onError);
  }

  /** As it is in memory now. */
  get current(): Position {
    return this.#position;
  }

  /** Changes a part; it is on the disk within about a second. */
  set(part: Position): void {
    this.#position = { ...this.#position, ...part };
    this.#timer ??= this.#clock.after(WRITE_AFTER_MS, () => this.#flush());
  }

  /** Resolves when the file says what was set last. */
  async close(): Promise<void> {
    if (this.#timer) this.#flush();
    await this.#writing;
  }

  #flush(): void {
    this.#timer?.();
    this.#timer = undefined;
    const text = JSON.stringify(this.#position);
    this.#writing = this.#writing.then(() => this.#write(text)).catch((error) => this.#onError(error));
  }

  /** A reader finds the old file or the new one. No fsync: an older position, or none, only means work done twice. */
  async #write(text: string): Promise<void> {
    await writeFile(`${this.#file}.new`, text, { mode: 0o600 });
    await rename(`${this.#file}.new`, this.#file);
  }
}

function readPosition(file: string, onError: (error: unknown) => void): Position {
  try {
    return position.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') onError(error);
    return {};
  }
}
