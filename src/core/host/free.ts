/**
 * Gives the memory of bytes back at once: garbage collection would take its time, for what it collects is small,
 * and under load that time is a hundred megabytes. Of bytes that share their buffer with others nothing happens.
 *
 * @param bytes that nobody uses any more
 */
export function free({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength && byteLength > 0) buffer.transfer(0);
}
