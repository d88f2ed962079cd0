/**
 * The worker thread that owns the log's writing connection. An fsync blocks its thread, on a slow disk for hundreds of
 * milliseconds; this thread has nothing else to do.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { collectGarbageOfStart } from '../worker.ts';
import type { CommitReply, CommitRequest } from './commit-request.ts';
import { LogWriter, type LogWriterOptions } from './log-writer.ts';

/** How long after a commit the newest signature is noted, so that many commits share one note. */
const NOTE_MS = 1_000;
/** After the first commits, which the start of the process waits for. */
const COLLECT_AFTER_MS = 2_000;

const writer = new LogWriter(workerData as LogWriterOptions);
let noting: NodeJS.Timeout | undefined;
setTimeout(collectGarbageOfStart, COLLECT_AFTER_MS).unref();

parentPort?.on('message', (request: CommitRequest | 'close') => {
  if (request === 'close') {
    clearTimeout(noting);
    close();
    return;
  }
  parentPort?.postMessage(answer(request));
  noting ??= setTimeout(note, NOTE_MS);
});

function answer(request: CommitRequest): CommitReply {
  const started = performance.now();
  try {
    const done = writer.commit(request);
    return { id: request.id, ok: true, ms: performance.now() - started, done };
  } catch (error) {
    return { id: request.id, ok: false, reason: error instanceof Error ? error.message : String(error) };
  }
}

function note(): void {
  noting = undefined;
  try {
    writer.noteHead();
  } catch {
    // The disk takes nothing: the next commit reports it, and the signature is noted later.
  }
}

function close(): void {
  try {
    writer.close();
  } catch {
    // Every record is durable or was reported as lost; only the last signature is missing.
  } finally {
    parentPort?.close();
  }
}
