import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Scope } from './scope.ts';

/** A folder of its own for one test, gone when the test ends. */
export function tempDir(t: Scope): string {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-'));
  // What a test closes may still write its last file, e.g. a process that was killed: the removal begins anew then.
  t.teardown(() => rm(dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }));
  return dir;
}
