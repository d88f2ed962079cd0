/**
 * The worker thread that owns the log's writing connection. An fsync blocks the thread that asks for it, on a slow
 * disk for hundreds of milliseconds; here it blocks nobody who has something else to do.
 */
import type { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { CHAIN_START, chainHash } from './chain.ts';
import type { CommitReply, CommitRequest } from './protocol.ts';
import { INSERT_RECORD, openForWriting } from './schema.ts';

const { dataDir } = workerData as { dataDir: string };
const db: DatabaseSync = openForWriting(dataDir);
const insertRecord = db.prepare(INSERT_RECORD);
const insertBlob = db.prepare('INSERT OR REPLACE INTO blobs (key, body) VALUES (?, ?)');
const insertSnapshot = db.prepare('INSERT OR REPLACE INTO snapshots (actor, seq, body) VALUES (?, ?, ?)');
const dropBlobs = db.prepare('DELETE FROM blobs WHERE key NOT IN (SELECT value FROM json_each(?))');

let { seq: head, hash } = newest();

function newest(): { seq: number; hash: string } {
  const row = db.prepare('SELECT seq, hash FROM records ORDER BY seq DESC LIMIT 1').get();
  return row ? { seq: row.seq as number, hash: row.hash as string } : { seq: 0, hash: CHAIN_START };
}

function commit(request: CommitRequest): void {
  db.exec('BEGIN IMMEDIATE');
  try {
    let seq = request.firstSeq;
    let previous = hash;
    if (seq > head + 1) throw new Error(`record ${seq} does not follow record ${head}`);
    for (let column = 0; column < request.rows.length; column += 3) {
      const body = request.rows[column + 2] as string;
      // A batch is sent again when its answer got lost: what is there already is not written twice.
      if (seq > head) {
        previous = chainHash(previous, body);
        insertRecord.run(
          seq,
          request.rows[column] as string,
          request.rows[column + 1] as string,
          body,
          previous,
        );
      }
      seq += 1;
    }
    for (const [key, body] of request.blobs) insertBlob.run(key, body);
    for (const row of request.snapshots?.rows ?? []) insertSnapshot.run(...row);
    if (request.snapshots) dropBlobs.run(JSON.stringify(request.snapshots.keep));
    db.exec('COMMIT');
    if (seq - 1 > head) {
      head = seq - 1;
      hash = previous;
    }
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

parentPort?.on('message', (request: CommitRequest | 'close') => {
  if (request === 'close') {
    db.close();
    parentPort?.close();
    return;
  }
  const started = performance.now();
  let reply: CommitReply;
  try {
    commit(request);
    reply = { id: request.id, ok: true, ms: performance.now() - started };
  } catch (error) {
    reply = { id: request.id, ok: false, reason: error instanceof Error ? error.message : String(error) };
  }
  parentPort?.postMessage(reply);
});
