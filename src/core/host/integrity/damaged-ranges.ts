import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import type { DamagedRange } from '../../kernel/log/damage.ts';
import { QUARANTINE } from './files.ts';

const rangesSchema = z.array(z.strictObject({ from: z.number(), to: z.number(), reason: z.string() }));

/** Marks the damaged ranges of the live log, as the newest check found them, so that nobody relies on them. */
export function markRanges(dataDir: string, ranges: readonly DamagedRange[]): void {
  const file = rangesFile(dataDir);
  rmSync(file, { force: true });
  if (ranges.length === 0) return;
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  writeFileSync(file, `${JSON.stringify(ranges, null, 2)}\n`, { mode: 0o600 });
}

/** The ranges that the newest check marked; none where there is no data folder, or no mark that can be read. */
export function markedRanges(dataDir: string): readonly DamagedRange[] {
  try {
    return rangesSchema.parse(JSON.parse(readFileSync(rangesFile(dataDir), 'utf8')));
  } catch {
    return [];
  }
}

function rangesFile(dataDir: string): string {
  return join(dataDir, QUARANTINE, 'log-ranges.json');
}
