/** The process that reads the whole data folder, a little at a time, so that nothing else waits for the disk. */
import { setTimeout as delay } from 'node:timers/promises';
import { type CheckRequest, checkFolder } from './check.ts';
import type { DataCheckResult } from './findings.ts';
import { saveLedger } from './ledger.ts';

/** What the process says: how far it is, now and then, and at last what it found, or why it could not go on. */
export type CheckerMessage =
  | { readonly kind: 'progress'; readonly part: number }
  | { readonly kind: 'checked'; readonly result: Omit<DataCheckResult, 'at' | 'tookMs'> }
  | { readonly kind: 'failed'; readonly reason: string };

/** It works for so long, and then rests three times as long. Milliseconds. */
const SLICE_MS = 10;
const REST = 3;
const PROGRESS_MS = 500;

const say = (message: CheckerMessage) => process.send?.(message);

/** The parent sends one request, and `recorded` when what was found is in the log. When the parent ends, so does this. */
process.once('disconnect', () => process.exit(1));
process.once('message', (request: CheckRequest) => {
  check(request).catch((error: unknown) => {
    say({ kind: 'failed', reason: error instanceof Error ? error.message : String(error) });
    process.exitCode = 1;
    process.disconnect();
  });
});

async function check(request: CheckRequest): Promise<void> {
  const steps = checkFolder(request);
  let began = performance.now();
  let reportedAt = began;
  for (;;) {
    const { done, value } = await steps.next();
    if (done) {
      // What changed is noted only when it has been recorded: a kill before that must not hide it.
      process.once('message', () => {
        saveLedger(request.dataDir, value.ledger);
        process.exit(0);
      });
      say({ kind: 'checked', result: value.result });
      return;
    }
    const now = performance.now();
    if (now - reportedAt > PROGRESS_MS) {
      reportedAt = now;
      say({ kind: 'progress', part: value });
    }
    if (now - began < SLICE_MS) continue;
    await delay((now - began) * REST);
    began = performance.now();
  }
}
