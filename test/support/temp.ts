import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Scope } from './scope.ts';

/** A folder of its own for one test, gone when the test ends; in memory where `npm test` runs a fast test and can make it there. */
export function tempDir(t: Scope, base: string = tmpdir()): string {
  const dir = mkdtempSync(join(base, 'holdfast-'));
  // What a test closes may still write its last file, e.g. a process that was killed: the removal begins anew then.
  t.teardown(() => rm(dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }));
  return dir;
}

/** The same on a disk, for a test of what a disk is given. */
export function diskDir(t: Scope): string {
  return tempDir(t, process.env.TESTS_DISK || tmpdir());
}
