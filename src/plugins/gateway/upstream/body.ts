import type { UpstreamAnswer } from './client.ts';

export type Body = UpstreamAnswer['body'];

/** What nobody needs is read up to here, bytes and milliseconds. */
const DROPPED = 64 * 1024;
const DROPPED_MS = 2_000;

/** An upstream that begins an answer and does not go on. */
export class Stalled extends Error {}

/** A body that must keep coming. @param idleMs longest wait for its next part; a slow reader's time does not count */
export async function* steady(body: Body, idleMs: number): AsyncGenerator<Buffer> {
  let waiting = true;
  const timer = setTimeout(() => {
    if (waiting) body.destroy(new Stalled());
    else timer.refresh();
  }, idleMs);
  try {
    for await (const chunk of body) {
      waiting = false;
      yield chunk as Buffer;
      waiting = true;
      timer.refresh();
    }
  } finally {
    clearTimeout(timer);
  }
}

/** A body of known, small size, whole. @param withinMs longest wait for all of it */
export async function small(body: Body, withinMs: number): Promise<Buffer> {
  const timer = setTimeout(() => body.destroy(new Stalled()), withinMs);
  try {
    return Buffer.from(await body.arrayBuffer());
  } finally {
    clearTimeout(timer);
  }
}

/** Bytes that come in parts. A body that comes byte by byte must not become millions of objects. */
export class Gathered {
  #bytes: Buffer = Buffer.alloc(0);
  size = 0;

  push(chunk: Buffer): void {
    const size = this.size + chunk.length;
    if (this.size === 0) {
      this.#bytes = chunk; // mostly the only one
    } else {
      if (size > this.#bytes.length) {
        const larger = Buffer.allocUnsafe(Math.max(size, this.size * 2));
        this.#bytes.copy(larger, 0, 0, this.size);
        this.#bytes = larger;
      }
      chunk.copy(this.#bytes, this.size);
    }
    this.size = size;
  }

  /** All of them; good until the next push. */
  bytes(): Buffer {
    return this.#bytes.subarray(0, this.size);
  }
}

/** @throws RangeError it is larger than the limit, bytes */
export async function whole(chunks: AsyncIterable<Buffer>, limit: number): Promise<Buffer> {
  const gathered = new Gathered();
  for await (const chunk of chunks) {
    if (gathered.size + chunk.length > limit) throw new RangeError('too large');
    gathered.push(chunk);
  }
  return gathered.bytes();
}

/** Reads what nobody needs, so that its connection can be used again; one that is long or slow ends with it. */
export function drop(body: Body): void {
  body.dump({ limit: DROPPED, signal: AbortSignal.timeout(DROPPED_MS) }).catch(() => body.destroy());
}
