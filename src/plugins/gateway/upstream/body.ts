import { free } from '../../../core/free.ts';
import { type AnswerBody, Stalled } from './answer-body.ts';

/**
 * A body that must keep coming, whole.
 *
 * @param limit bytes
 * @param idleMs longest wait for its next part
 * @throws RangeError it is larger
 */
export async function steadyWhole(body: AnswerBody, limit: number, idleMs: number): Promise<Buffer> {
  const gathered = new Gathered();
  await body.each((part) => {
    if (gathered.size + part.length > limit) throw new RangeError('too large');
    gathered.push(part);
    return undefined;
  }, idleMs);
  return gathered.bytes();
}

/** A body of known, small size, whole. @param withinMs longest wait for all of it */
export async function small(body: AnswerBody, withinMs: number): Promise<Buffer> {
  const timer = setTimeout(() => body.destroy(new Stalled()), withinMs);
  try {
    return await whole(body, Number.POSITIVE_INFINITY);
  } finally {
    clearTimeout(timer);
  }
}

/** Parts below this many bytes are copied together, so that they do not become millions of objects. */
const SMALL_PART = 4_096;

/** Bytes that come in parts. A large part is kept as it came, for copying it would cost more than all else. */
export class Gathered {
  #parts: Buffer[] = [];
  /** Small parts behind the large ones, and how much of it they fill. */
  #tail: Buffer = Buffer.alloc(0);
  #filled = 0;
  size = 0;

  push(part: Buffer): void {
    this.size += part.length;
    if (part.length >= SMALL_PART || this.size === part.length) {
      this.#close();
      this.#parts.push(part);
      return;
    }
    const filled = this.#filled + part.length;
    if (filled > this.#tail.length) {
      const larger = Buffer.allocUnsafe(Math.max(SMALL_PART, filled * 2));
      this.#tail.copy(larger, 0, 0, this.#filled);
      this.#tail = larger;
    }
    part.copy(this.#tail, this.#filled);
    this.#filled = filled;
  }

  /** All of them; good until the next push. */
  bytes(): Buffer {
    this.#close();
    if (this.#parts.length > 1) this.#parts = [Buffer.concat(this.#parts, this.size)];
    return this.#parts[0] ?? Buffer.alloc(0);
  }

  /** Gives their memory back, once nobody uses them: not even a connection that is still to send them. */
  free(): void {
    for (const part of this.#parts.splice(0)) free(part);
  }

  #close(): void {
    if (this.#filled > 0) this.#parts.push(this.#tail.subarray(0, this.#filled));
    this.#tail = Buffer.alloc(0);
    this.#filled = 0;
  }
}

/** @throws RangeError it is larger than the limit, bytes */
export async function whole(parts: AsyncIterable<Buffer>, limit: number): Promise<Buffer> {
  const gathered = new Gathered();
  for await (const part of parts) {
    if (gathered.size + part.length > limit) throw new RangeError('too large');
    gathered.push(part);
  }
  return gathered.bytes();
}
