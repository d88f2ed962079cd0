/**
 * The worker thread that owns the log's writing connection. An fsync blocks the thread that asks for it, on a slow
 * disk for hundreds of milliseconds; here it blocks nobody who has something else to do.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { LogWriter } from './log-writer.ts';
import type { CommitReply, CommitRequest } from './protocol.ts';

const { dataDir } = workerData as { dataDir: string };
const writer = new LogWriter(dataDir);

parentPort?.on('message', (request: CommitRequest | 'close') => {
  if (request === 'close') {
    writer.close();
    parentPort?.close();
    return;
  }
  parentPort?.postMessage(answer(request));
});

function answer(request: CommitRequest): CommitReply {
  const started = performance.now();
  try {
    const saved = writer.commit(request);
    return { id: request.id, ok: true, ms: performance.now() - started, ...(saved && { saved }) };
  } catch (error) {
    return { id: request.id, ok: false, reason: error instanceof Error ? error.message : String(error) };
  }
}
