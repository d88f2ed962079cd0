import { isObject, nestsDeeper } from '../../../../core/kernel/json.ts';
import { isRequestId, parseExact } from '../../mcp/message.ts';

/** A JSON-RPC message of a program, with every number as it was written. */
export type StdioMessage = Readonly<Record<string, unknown>>;

/** Deeper than any message; deep nesting serves only to exhaust a stack. */
const DEEPEST = 512;

const LINE_FEED = 0x0a;

/** Cuts a stream of bytes into lines, none of them longer than it may be. */
export class LineReader {
  readonly #longest: number;
  readonly #onLine: (line: string) => void;
  readonly #onTooLong: (() => void) | undefined;
  #parts: Buffer[] = [];
  #size = 0;
  #isDropping = false;

  /**
   * @param longest bytes
   * @param onLine gets each line without its line break
   * @param onTooLong called once for a line that is longer; unless set, such a line is cut at that length
   */
  constructor(longest: number, onLine: (line: string) => void, onTooLong?: () => void) {
    this.#longest = longest;
    this.#onLine = onLine;
    this.#onTooLong = onTooLong;
  }

  push(chunk: Buffer): void {
    let from = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, from)) {
      this.#add(chunk.subarray(from, end));
      this.flush();
      from = end + 1;
    }
    this.#add(chunk.subarray(from));
  }

  /** Gives away what came behind the last line break. */
  flush(): void {
    const line = this.#parts.length === 1 ? this.#parts[0] : Buffer.concat(this.#parts);
    const isDropped = this.#isDropping && this.#onTooLong !== undefined;
    this.#parts = [];
    this.#size = 0;
    this.#isDropping = false;
    if (line?.length && !isDropped) this.#onLine(line.toString('utf8'));
  }

  #add(part: Buffer): void {
    if (this.#isDropping || part.length === 0) return;
    const room = this.#longest - this.#size;
    this.#parts.push(part.subarray(0, room));
    this.#size += Math.min(part.length, room);
    if (part.length <= room) return;
    this.#isDropping = true;
    this.#onTooLong?.();
  }
}

/** @returns the messages in a line, a batch's one by one; undefined when it is no JSON-RPC */
export function messagesIn(line: string): readonly StdioMessage[] | undefined {
  if (nestsDeeper(line, DEEPEST)) return undefined;
  let value: unknown;
  try {
    value = parseExact(line);
  } catch {
    return undefined;
  }
  const messages: readonly unknown[] = Array.isArray(value) ? value : [value];
  return messages.every(isMessage) ? messages : undefined;
}

function isMessage(value: unknown): value is StdioMessage {
  if (!isObject(value) || value.jsonrpc !== '2.0') return false;
  const { method, id } = value;
  if (typeof method === 'string') return id === undefined || isRequestId(id);
  return ('result' in value || 'error' in value) && (id === null || isRequestId(id));
}

/** One id, however its number was written: a program may write 1.0 as 1. */
export function idKey(id: unknown): string {
  return typeof id === 'string' ? JSON.stringify(id) : String(Number(JSON.stringify(id)));
}
