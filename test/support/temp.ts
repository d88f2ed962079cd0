import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Scope } from './scope.ts';

/** A folder of its own for one test, gone when the test ends. */
export function tempDir(t: Scope): string {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}
