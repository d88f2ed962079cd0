import { isObject } from '../../../core/kernel/json.ts';
import { parseExact } from '../mcp/message.ts';

/** An empty line, in each of the three ways in which an event stream may end its lines. */
const BOUNDARY = /(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r(?!\n))/g;
const LONGEST_BOUNDARY = 4;
/** Characters of one event that are held at most. */
const LARGEST_EVENT = 8 * 1024 * 1024;

/** Cuts an event stream into its events, each as it was written with the empty line at its end. */
export class EventBlocks {
  readonly #decoder = new TextDecoder();
  /** What was searched of the event that is not whole yet; joined once, so that the cost grows with its size alone. */
  #searched: string[] = [];
  #held = 0;
  /** The last characters: an empty line may have begun in them. */
  #tail = '';

  /**
   * @returns the events that are whole now
   * @throws RangeError one event is larger than what may be held
   */
  push(chunk: Buffer): string[] {
    const text = this.#tail + this.#decoder.decode(chunk, { stream: true });
    const blocks: string[] = [];
    let start = 0;
    BOUNDARY.lastIndex = 0;
    while (BOUNDARY.exec(text)) {
      this.#searched.push(text.slice(start, BOUNDARY.lastIndex));
      blocks.push(this.#searched.join(''));
      this.#searched = [];
      this.#held = 0;
      start = BOUNDARY.lastIndex;
    }
    const end = Math.max(start, text.length - LONGEST_BOUNDARY);
    if (end > start) this.#searched.push(text.slice(start, end));
    this.#held += end - start;
    this.#tail = text.slice(end);
    if (this.#held > LARGEST_EVENT) throw new RangeError('an event is too large');
    return blocks;
  }
}

const LINE_END = /\r\n|\n|\r/;
const FIELD = /^(data|id)(?:: ?(.*))?$/s;

/** One event: its lines, and what they say together. */
export interface ParsedEvent {
  readonly data: string | undefined;
  /** Writes the event with other data, another id, or both. */
  write(changes: { readonly data?: string; readonly rename?: (id: string) => string }): string;
}

export function parseEvent(block: string): ParsedEvent {
  const lines = block.split(LINE_END).flatMap((text) => {
    if (text === '') return [];
    const [, field, value = ''] = FIELD.exec(text) ?? [];
    return [{ text, field, value }];
  });
  const dataLines = lines.filter(({ field }) => field === 'data').map(({ value }) => value);
  return {
    data: dataLines.length === 0 ? undefined : dataLines.join('\n'),
    write({ data, rename }) {
      let out = '';
      for (const { text, field, value } of lines) {
        if (field === 'id' && rename && value !== '') out += `id: ${rename(value)}\n`;
        else if (field !== 'data' || data === undefined) out += `${text}\n`;
      }
      return data === undefined ? `${out}\n` : `${out}data: ${data}\n\n`;
    },
  };
}

/** Changes one result on its way; returns the same one to leave it as it was written. */
export type Rewrite = (result: unknown) => unknown;

/**
 * Changes the result of an answer. Which request it answers does not matter: an upstream may write an id in another way
 * than the client did, and what a key may not see must not slip through.
 */
export function rewriteMessage(message: unknown, rewrite: Rewrite): unknown {
  if (Array.isArray(message)) return message.map((one) => rewriteMessage(one, rewrite));
  if (!isObject(message) || !('result' in message)) return message;
  const result = rewrite(message.result);
  return result === message.result ? message : { ...message, result };
}

/** What of an event stream is changed on its way. */
export interface EventChanges {
  /** Returns the same message to leave it as it was written. */
  readonly change: (message: unknown) => unknown;
  /** Changes the ids by which a client resumes a stream. */
  readonly rename?: (id: string) => string;
}

/**
 * An event stream whose messages are looked at one by one. Feed it chunks; it returns what to send on, whole events:
 * those that change, and the others byte for byte.
 */
export function eventRewriter({ change, rename }: EventChanges): { feed(chunk: Buffer): string } {
  const blocks = new EventBlocks();
  return {
    feed(chunk) {
      let out = '';
      for (const block of blocks.push(chunk)) {
        const event = parseEvent(block);
        const data = event.data ? changed(event.data, change) : undefined;
        out +=
          data === undefined && !rename
            ? block
            : event.write({ ...(data !== undefined && { data }), ...(rename && { rename }) });
      }
      return out;
    },
  };
}

/** @returns what a message becomes, or undefined when it stays as it is or is no JSON */
function changed(data: string, change: (message: unknown) => unknown): string | undefined {
  try {
    const message = parseExact(data);
    const next = change(message);
    return next === message ? undefined : JSON.stringify(next);
  } catch {
    return undefined;
  }
}
