/** A body that was read under a limit. */
export interface BoundedBody {
  readonly bytes: Buffer;
  /** It was longer than the limit, and `bytes` is its beginning. */
  readonly truncated: boolean;
}

/** A body is larger than its reader allows. */
export class BodyTooLarge extends RangeError {
  override readonly name = 'BodyTooLarge';
  /** Bytes. */
  readonly limit: number;

  constructor(limit: number) {
    super(`it is larger than ${limit} bytes`);
    this.limit = limit;
  }
}

/**
 * Reads a whole body into memory.
 *
 * @param body of a request or of an answer; it is left, and so destroyed, as soon as it exceeds the limit
 * @param limit bytes
 * @param excess what happens to a longer one: it is refused unless told to cut it
 * @throws BodyTooLarge, and whatever breaks the body off
 */
export async function readBody(
  body: AsyncIterable<Uint8Array>,
  limit: number,
  excess: 'refuse' | 'cut' = 'refuse',
): Promise<BoundedBody> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > limit && excess === 'refuse') throw new BodyTooLarge(limit);
    chunks.push(chunk);
    if (size > limit) break;
  }
  const truncated = size > limit;
  const bytes = Buffer.concat(chunks, size);
  return { bytes: truncated ? bytes.subarray(0, limit) : bytes, truncated };
}

/**
 * Gives the memory of bytes back at once: garbage collection would take its time, for what it collects is small,
 * and under load that time is a hundred megabytes. Of bytes that share their buffer with others nothing happens.
 *
 * @param bytes that nobody uses any more
 */
export function free({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength && byteLength > 0) buffer.transfer(0);
}
