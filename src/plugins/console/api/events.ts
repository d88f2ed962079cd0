import { PassThrough } from 'node:stream';
import type { LogSource, OpenedLog } from '../../../core/host/history/log-source.ts';
import { Pace } from '../../../core/host/history/pace.ts';
import { recordRows } from '../../../core/host/history/record-rows.ts';
import type { PluginWords } from '../../../core/host/history/words.ts';
import type { Services } from '../../../core/host/plugin/definition.ts';
import { ConsoleError } from '../errors.ts';

/** Windows that follow the log at a time. */
const MOST_STREAMS = 32;
/** Records that one window gets in a second, and at once. */
const PER_SECOND = 1_000;
/** What waits for a window that does not read; more is left out. Bytes. */
const MOST_WAITING = 1024 * 1024;
/** A window that read nothing for so long is gone, milliseconds. */
const SILENT_MS = 60_000;
const HEARTBEAT_MS = 15_000;
/** New records are sent together so often, milliseconds. */
const PAUSE_MS = 100;
/** Records that are made into rows before the event loop gets its turn. */
const SLICE = 25;

interface Stream {
  readonly out: PassThrough;
  /** The next record that it gets. */
  next: number;
  /** Records that it may get now. */
  left: number;
  refilledAt: number;
  /** When something was last taken from it; by `performance.now`. */
  readAt: number;
}

/** Sends what becomes durable to all windows that follow the log. Without a window it does nothing. */
export class LiveRecords {
  readonly #source: LogSource;
  readonly #words: PluginWords;
  readonly #sweep: () => void;
  readonly #streams = new Set<Stream>();
  readonly #seq: () => number;
  #log: OpenedLog | undefined;
  #heartbeat: NodeJS.Timeout | undefined;
  #due: NodeJS.Timeout | undefined;
  #isSending = false;

  /** @param sweep called now and then while somebody follows, to end sessions */
  constructor(source: LogSource, { log }: Pick<Services, 'log'>, words: PluginWords, sweep: () => void) {
    this.#source = source;
    this.#words = words;
    this.#sweep = sweep;
    this.#seq = () => log.status().durableSeq;
    log.onDurable(() => this.#arm());
  }

  /**
   * @param after the last record that the window has; only new ones unless given
   * @param ends each ends the stream
   * @throws HF_CONSOLE_STREAMS
   */
  async open(after: number | undefined, ends: readonly AbortSignal[]): Promise<PassThrough> {
    if (this.#streams.size >= MOST_STREAMS)
      throw new ConsoleError('HF_CONSOLE_STREAMS', { most: MOST_STREAMS });
    const last = this.#seq();
    const out = new PassThrough({ highWaterMark: 64 * 1024 });
    const now = performance.now();
    const next = Math.min(after ?? last, last) + 1;
    const stream: Stream = { out, next, left: PER_SECOND, refilledAt: now, readAt: now };
    this.#streams.add(stream);
    const end = () => out.end();
    for (const signal of ends) signal.addEventListener('abort', end, { once: true });
    out.on('data', () => {
      stream.readAt = performance.now();
    });
    out.pause(); // who sends it takes what there is
    out.once('close', () => {
      for (const signal of ends) signal.removeEventListener('abort', end);
      this.#leave(stream);
    });
    out.write(`retry: 2000\n: from record ${next}\n\n`);
    if (ends.some(({ aborted }) => aborted)) end();
    this.#heartbeat ??= setInterval(() => this.#beat(), HEARTBEAT_MS).unref();
    this.#arm();
    return out;
  }

  #leave(stream: Stream): void {
    this.#streams.delete(stream);
    if (this.#streams.size > 0) return;
    clearInterval(this.#heartbeat);
    clearTimeout(this.#due);
    [this.#heartbeat, this.#due] = [undefined, undefined];
    if (!this.#isSending) this.#close();
  }

  #close(): void {
    this.#log?.close();
    this.#log = undefined;
  }

  #beat(): void {
    this.#sweep();
    const now = performance.now();
    for (const { out, readAt } of this.#streams) {
      if (out.readableLength + out.writableLength > 0 && now - readAt > SILENT_MS) out.destroy();
      else if (!isFull(out)) out.write(': still here\n\n');
    }
  }

  #arm(): void {
    if (this.#streams.size === 0 || this.#isSending) return;
    this.#due ??= setTimeout(() => void this.#send(), PAUSE_MS).unref();
  }

  async #send(): Promise<void> {
    this.#due = undefined;
    this.#isSending = true;
    try {
      const last = this.#seq();
      const starts = [...this.#streams].flatMap((stream) => begin(stream, last));
      if (starts.length > 0) await this.#sendFrom(Math.min(...starts), last);
    } catch {
      // A log that cannot be read now can be later: the windows keep their places.
    } finally {
      this.#isSending = false;
      if (this.#streams.size === 0) this.#close();
      else if ([...this.#streams].some(({ next }) => next <= this.#seq())) this.#arm();
    }
  }

  async #sendFrom(first: number, last: number): Promise<void> {
    this.#log ??= await this.#source.open();
    const pace = new Pace();
    /** Those that can take no more now: what they miss comes next time, or is named as a gap. */
    const held = new Set<Stream>();
    for (let from = first; from <= last; from += SLICE) {
      const to = Math.min(last, from + SLICE - 1);
      const records = await Array.fromAsync(this.#log.log.read({ from, to }));
      for (const row of await recordRows(records, this.#words)) {
        const text = `id: ${row.seq}\nevent: record\ndata: ${JSON.stringify(row)}\n\n`;
        for (const stream of this.#streams) {
          if (row.seq < stream.next || held.has(stream)) continue;
          if (stream.left < 1 || isFull(stream.out)) {
            held.add(stream);
            continue;
          }
          stream.out.write(text);
          stream.next = row.seq + 1;
          stream.left -= 1;
        }
      }
      await pace.next();
    }
  }
}

const isFull = (out: PassThrough): boolean =>
  out.destroyed || out.writableEnded || out.readableLength + out.writableLength > MOST_WAITING;

/** Leaves out what a window cannot get in time, and says so. @returns the first record that it gets now, if any */
function begin(stream: Stream, last: number): number[] {
  const now = performance.now();
  stream.left = Math.min(PER_SECOND, stream.left + ((now - stream.refilledAt) / 1_000) * PER_SECOND);
  stream.refilledAt = now;
  const left = Math.floor(stream.left);
  if (stream.next > last || left < 1 || isFull(stream.out)) return [];
  const first = Math.max(stream.next, last - left + 1);
  if (first > stream.next) {
    const gap = { from: stream.next, to: first - 1 };
    stream.out.write(`id: ${gap.to}\nevent: gap\ndata: ${JSON.stringify(gap)}\n\n`);
    stream.next = first;
  }
  return [first];
}
