import type { UpstreamAnswer } from './client.ts';

export type Body = UpstreamAnswer['body'];

/** What nobody needs is read up to here, bytes and milliseconds. */
const DROPPED = 64 * 1024;
const DROPPED_MS = 2_000;

/** An upstream that begins an answer and does not go on. */
export class Stalled extends Error {}

/** A body that must keep coming. @param idleMs longest wait for its next part; a slow reader's time does not count */
export async function* steady(body: Body, idleMs: number): AsyncGenerator<Buffer> {
  const stall = () => setTimeout(() => body.destroy(new Stalled()), idleMs);
  let timer = stall();
  try {
    for await (const chunk of body) {
      clearTimeout(timer);
      yield chunk as Buffer;
      timer = stall();
    }
  } finally {
    clearTimeout(timer);
  }
}

/** @throws RangeError it is larger than the limit, bytes */
export async function whole(chunks: AsyncIterable<Buffer>, limit: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    size += chunk.length;
    if (size > limit) throw new RangeError('too large');
    parts.push(chunk);
  }
  const [only] = parts;
  return parts.length === 1 && only ? only : Buffer.concat(parts, size);
}

/** Reads what nobody needs, so that its connection can be used again; one that is long or slow ends with it. */
export function drop(body: Body): void {
  body.dump({ limit: DROPPED, signal: AbortSignal.timeout(DROPPED_MS) }).catch(() => body.destroy());
}
