import { type BigIntStats, statSync } from 'node:fs';
import { join } from 'node:path';
import type { GeneratedFiles } from '../config/generated-files.ts';

const NS_OF_MS = 1_000_000n;

/**
 * How long ago a file must have changed, because a change within that time of the reading may leave its times as they were: ten
 * ticks of the clock that stamps files, or the two seconds of file systems that keep whole milliseconds or less.
 *
 * @param ctimeNs the time of its last change, epoch nanoseconds
 * @returns milliseconds
 */
export function settleMs(ctimeNs: bigint): number {
  return ctimeNs % NS_OF_MS === 0n ? 2_000 : 100;
}

interface Standing {
  readonly files: ReadonlyMap<string, { readonly text: string; readonly stamp: string }>;
  readonly directories: ReadonlyMap<string, string>;
}

/**
 * Remembers generated files that were read and found right, by what the file system says of them: inode, size and times.
 * While all of that is the same, nobody has touched them, and they need not be read again for each save.
 *
 * It asks synchronously, because some dozen calls of microseconds are faster than as many turns of the thread pool: of the
 * 16 ms of a save that changes nothing in the files, 6 ms went into reading them (bench row "/set, 8 racing writers").
 */
export class FolderStamp {
  readonly #root: string;
  readonly #directories: readonly string[];
  readonly #settleMs: (ctimeNs: bigint) => number;
  #standing: Standing | undefined;

  /**
   * @param directories below the root, whose entries count, too
   * @param settles how long ago a file must have changed to be remembered, milliseconds
   */
  constructor(root: string, directories: readonly string[], settles = settleMs) {
    this.#settleMs = settles;
    this.#root = root;
    this.#directories = directories;
  }

  /** Whether exactly these files stand, untouched since they were remembered. */
  stands(wanted: GeneratedFiles): boolean {
    const standing = this.#standing;
    if (!standing || standing.files.size !== wanted.size) return false;
    for (const [path, text] of wanted) {
      const file = standing.files.get(path);
      if (file?.text !== text || this.#stamp(path) !== file.stamp) return false;
    }
    return [...standing.directories].every(([path, stamp]) => this.#stamp(path) === stamp);
  }

  /**
   * To be called before the files are read.
   *
   * @returns remembers them as they were at the call, when they have turned out to be right; does nothing for what was
   * changed a moment before
   */
  take(wanted: GeneratedFiles): () => void {
    const now = BigInt(Date.now()) * NS_OF_MS;
    let settled = true;
    const taken = (path: string): string => {
      const found = this.#stat(path);
      if (!found || now - found.ctimeNs < BigInt(this.#settleMs(found.ctimeNs)) * NS_OF_MS) settled = false;
      return stampOf(found);
    };
    const files = new Map([...wanted].map(([path, text]) => [path, { text, stamp: taken(path) }]));
    const directories = new Map(this.#directories.map((path) => [path, taken(path)]));
    return () => {
      this.#standing = settled ? { files, directories } : undefined;
    };
  }

  #stamp(path: string): string {
    return stampOf(this.#stat(path));
  }

  #stat(path: string): BigIntStats | undefined {
    return statSync(join(this.#root, path), { bigint: true, throwIfNoEntry: false });
  }
}

function stampOf(found: BigIntStats | undefined): string {
  return found ? `${found.ino} ${found.size} ${found.mtimeNs} ${found.ctimeNs}` : 'absent';
}
