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

export interface BoundedBodyOptions {
  /** What happens to a body over the limit: it is refused unless this says that it is cut. */
  readonly excess?: 'refuse' | 'cut' | undefined;
  /**
   * Length that the sender has announced, bytes; a longer body is too large. It is read into one buffer of that size, and
   * the memory of each chunk is given back, because chunks that are joined at the end need the memory twice.
   */
  readonly announced?: number | undefined;
  /** Called with the bytes read so far, before more are read; what it throws ends the reading. */
  readonly onGrowth?: ((bytes: number) => void) | undefined;
}

/**
 * Reads a whole body into memory.
 *
 * @param body of a request or of an answer; it is left, and so destroyed, as soon as it exceeds the limit
 * @param limit bytes
 * @throws BodyTooLarge, what `onGrowth` throws, and whatever breaks the body off
 */
export async function readBody(
  body: AsyncIterable<Uint8Array>,
  limit: number,
  { excess = 'refuse', announced = 0, onGrowth }: BoundedBodyOptions = {},
): Promise<BoundedBody> {
  if (announced > limit) throw new BodyTooLarge(limit);
  const whole = announced > 0 ? Buffer.allocUnsafeSlow(announced) : undefined;
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    const start = size;
    size += chunk.length;
    if (size > limit && excess === 'refuse') throw new BodyTooLarge(limit);
    if (whole && size > announced) throw new BodyTooLarge(announced);
    onGrowth?.(size);
    if (whole) {
      whole.set(chunk, start);
      free(chunk);
    } else chunks.push(chunk);
    if (size > limit) break;
  }
  const truncated = size > limit;
  const bytes = whole?.subarray(0, size) ?? Buffer.concat(chunks, size);
  return { bytes: truncated ? bytes.subarray(0, limit) : bytes, truncated };
}

/**
 * Gives the memory of bytes back at once. Garbage collection does so later, because it counts only the small object that
 * holds them; under load that costs a hundred megabytes. Bytes that share their buffer with others are left alone.
 *
 * It stays for the bench row "1 MB results, 8 clients, calls/s"; its figures stand at `ByteBuffer.free`.
 *
 * @param bytes that nobody uses any more
 */
export function free({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength && byteLength > 0) buffer.transfer(0);
}
