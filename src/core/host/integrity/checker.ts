/** The thread that reads the whole data folder: at low priority, a little at a time, so that nothing else waits for it. */
import { setPriority } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { type CheckRequest, checkFolder } from './check.ts';
import type { CheckResult } from './findings.ts';
import { saveLedger } from './ledger.ts';

/** What the thread says: how far it is, now and then, and at last what it found. */
export type CheckerMessage =
  | { readonly kind: 'progress'; readonly part: number }
  | { readonly kind: 'checked'; readonly result: Omit<CheckResult, 'at' | 'tookMs'> };

/** It works for so long, and then rests three times as long. Milliseconds. */
const SLICE_MS = 10;
const REST = 3;
const PROGRESS_MS = 500;

const say = (message: CheckerMessage) => parentPort?.postMessage(message);

try {
  setPriority(0, 19); // on Linux the 0 is this thread alone
} catch {
  // The rests are all that keeps it slow.
}
const request = workerData as CheckRequest;
const steps = checkFolder(request);
let began = performance.now();
let told = began;
for (;;) {
  const { done, value } = await steps.next();
  if (done) {
    // What changed is noted only when it has been recorded: a kill before that must not hide it.
    parentPort?.once('message', () => {
      saveLedger(request.dataDir, value.ledger);
      parentPort?.close();
    });
    say({ kind: 'checked', result: value.result });
    break;
  }
  const now = performance.now();
  if (now - told > PROGRESS_MS) {
    told = now;
    say({ kind: 'progress', part: value });
  }
  if (now - began < SLICE_MS) continue;
  await delay((now - began) * REST);
  began = performance.now();
}
