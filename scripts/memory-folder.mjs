// A folder in memory for the tests of one run. Each runtime that a test starts syncs many times, and processes that sync to one disk
// wait for each other.
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { freemem } from 'node:os';
import { join } from 'node:path';

const IN_MEMORY = '/dev/shm';
/** More than these tests have at any time, and what is left to the programs: bytes. */
const ENOUGH = 8 * 2 ** 30;

/** Tests write programs there and run them; in a container this file system often permits none. */
function runsPrograms(folder) {
  const program = join(folder, 'program');
  writeFileSync(program, '#!/bin/sh\n', { mode: 0o700 });
  const { status } = spawnSync(program);
  rmSync(program);
  return status === 0;
}

/** Of a failure nothing depends: what is left is memory that somebody can free. */
function remove(folder) {
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  } catch (error) {
    console.error(`${folder} is left, in memory: ${error.message}`);
  }
}

/** @returns its path, and how to remove it with what tests left in it; undefined where there is none that serves, or too little memory */
export function folderInMemory() {
  try {
    const { bavail, bsize } = statfsSync(IN_MEMORY);
    const free = process.availableMemory?.() ?? freemem();
    if (bavail * bsize < ENOUGH || free < ENOUGH) return undefined;
    const path = mkdtempSync(join(IN_MEMORY, 'hf-')); // short: sockets lie in it, whose paths are
    chmodSync(path, 0o1777); // as the system's own: some tests become another user
    if (runsPrograms(path)) return { path, remove: () => remove(path) };
    remove(path);
  } catch {
    // There is none.
  }
  return undefined;
}
