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
