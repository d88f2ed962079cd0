import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

const FILE = 'adopted.json';

const adoptedNote = z.object({
  /** Epoch milliseconds. */
  at: z.number(),
  /** The operator, and why, where that was given. */
  by: z.string(),
  reason: z.string().optional(),
  /** How many records were taken over. */
  records: z.number(),
});

/** What `start --adopt` leaves in the data folder for the start that follows, which records it. */
export type AdoptedNote = z.output<typeof adoptedNote>;

export function leaveAdoptedNote(dataDir: string, note: AdoptedNote): void {
  writeFileSync(join(dataDir, FILE), JSON.stringify(note), { mode: 0o600 });
}

/** @returns the note, once: it is gone then; undefined when there is none that can be read */
export function takeAdoptedNote(dataDir: string): AdoptedNote | undefined {
  const file = join(dataDir, FILE);
  try {
    return adoptedNote.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return undefined;
  } finally {
    rmSync(file, { force: true });
  }
}
