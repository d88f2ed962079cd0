import { readFileSync, writeFileSync } from 'node:fs';

/** Numbers from 0 to 1 that are the same in every run (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Flips one bit of each of some bytes of a file. @returns their offsets */
export function flipBytes(file: string, count: number, random: () => number): number[] {
  const bytes = readFileSync(file);
  const offsets = Array.from({ length: count }, () => Math.floor(random() * bytes.length));
  for (const offset of offsets) bytes[offset] = (bytes[offset] ?? 0) ^ (1 << Math.floor(random() * 8));
  writeFileSync(file, bytes);
  return offsets;
}
