import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';

/** A folder of its own for one test, gone when the test ends. */
export function tempDir(t: ExecutionContext<unknown>): string {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}
