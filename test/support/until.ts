/**
 * How long a test waits for what has to come about: a busy machine is slow, not broken. Shorter than the time after which
 * the run of all tests ends, so that the failure names what was waited for. Milliseconds.
 */
export const PATIENCE_MS = 120_000;

/**
 * Waits, in real time, until something holds.
 *
 * @param what for the error, e.g. `the new key is stored`
 * @param everyMs the pause between two looks
 */
export async function until(what: string, holds: () => unknown, everyMs = 10): Promise<void> {
  await read(what, holds, Boolean, everyMs);
}

/**
 * Reads again and again, in real time, until what is read is as wanted.
 *
 * @returns what was read last
 */
export async function read<T>(
  what: string,
  look: () => T | Promise<T>,
  isSo: (value: T) => unknown,
  everyMs = 10,
): Promise<T> {
  for (const end = performance.now() + PATIENCE_MS; ; ) {
    const value = await look();
    if (isSo(value)) return value;
    if (performance.now() > end)
      throw new Error(`after ${PATIENCE_MS} ms still not: ${what}; it is ${JSON.stringify(value)}`);
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
