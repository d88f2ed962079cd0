import { closeSync, existsSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Anchor } from './trust.ts';

/** One line of always the same length: it is written over in place. */
const BYTES = 96;

/**
 * The newest record that was acknowledged, beside the key. It is written after each commit and not synced: the kernel
 * keeps it through a kill, and after a power cut it may be older, never newer than the log. So a log that is shorter
 * has lost something that somebody was told of.
 */
export class Mark {
  readonly #file: string;
  #descriptor: number | undefined;

  constructor(dataDir: string) {
    this.#file = markFile(dataDir);
  }

  /** A disk that does not take it is told by the next commit. */
  write({ seq, hash }: Anchor): void {
    try {
      this.#descriptor ??= openSync(this.#file, existsSync(this.#file) ? 'r+' : 'w', 0o600);
      writeSync(this.#descriptor, `${`${seq}:${hash}`.padEnd(BYTES - 1)}\n`, 0);
    } catch {
      // What stands there is older, and still true.
    }
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }
}

/** @returns undefined when nothing was acknowledged yet, or a power cut tore it */
export function readMark(dataDir: string): Anchor | undefined {
  try {
    const [, seq, hash] =
      /^(\d{1,15}):([0-9a-f]{64}) *\n$/.exec(readFileSync(markFile(dataDir), 'utf8')) ?? [];
    return seq !== undefined && hash !== undefined ? { seq: Number(seq), hash } : undefined;
  } catch {
    return undefined;
  }
}

function markFile(dataDir: string): string {
  return join(dataDir, 'secrets', 'log-mark');
}
