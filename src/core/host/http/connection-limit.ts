import { readFileSync } from 'node:fs';

/** What the log, the stores, the engine and connections to others may open. */
const OWN_FILES = 128;
/** Each open connection costs memory, whatever the limit of the process. */
const MOST = 4_096;
const FEWEST = 8;
/** Where the limit of this process cannot be read. */
const USUAL_OPEN_FILES = 1_024;

/** @returns how many files and connections this process may have open */
export function openFilesLimit(): number {
  try {
    const soft = /^Max open files\s+(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
    if (soft === 'unlimited') return Number.POSITIVE_INFINITY;
    return soft === undefined ? USUAL_OPEN_FILES : Number(soft);
  } catch {
    return USUAL_OPEN_FILES;
  }
}

/**
 * The connections that one listener may have open. Each has an equal share, and one share stays for connections to others, so
 * that whoever fills one listener takes nothing from the rest, least of all from the console.
 *
 * @param openFiles limit of the process
 * @param listeners how many there are
 */
export function connectionShare(openFiles: number, listeners: number): number {
  const share = Math.floor((openFiles - OWN_FILES) / (listeners + 1));
  return Math.max(FEWEST, Math.min(MOST, share));
}
