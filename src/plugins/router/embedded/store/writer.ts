/**
 * The worker thread that owns the writing connection of `router.db`: its fsyncs do not block the main thread, however
 * slow the disk is.
 */
import { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { type SaveReply, type SaveRequest, SELECT_ACTIVE, STORE_FORMAT, TABLES } from './schema.ts';

const { file, historyLimit } = workerData as { file: string; historyLimit: number };

function open(): DatabaseSync {
  const db = new DatabaseSync(file);
  db.exec(`
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA journal_size_limit = 16777216;
    PRAGMA busy_timeout = 5000;
  `);
  const format = db.prepare('PRAGMA user_version').get()?.user_version;
  if (format !== 0 && format !== STORE_FORMAT) {
    throw new Error(`it has format ${format}, this release knows ${STORE_FORMAT}`);
  }
  db.exec(`BEGIN IMMEDIATE; ${TABLES} PRAGMA user_version = ${STORE_FORMAT}; COMMIT`);
  return db;
}

const db = open();
const active = db.prepare(SELECT_ACTIVE);
const insert = db.prepare('INSERT INTO configs (ncid, at, op, who, changed, body) VALUES (?, ?, ?, ?, ?, ?)');
const point = db.prepare(
  'INSERT INTO active (one, config) VALUES (1, ?) ON CONFLICT (one) DO UPDATE SET config = excluded.config',
);
const trim = db.prepare(`
  DELETE FROM configs WHERE id <> (SELECT config FROM active)
    AND id <= (SELECT id FROM configs ORDER BY id DESC LIMIT 1 OFFSET ?)
`);

/** The check and the change are one transaction, so that of two writers one is refused (R3). */
function save({ expected, ncid, at, op, who, changed, body }: SaveRequest): boolean {
  db.exec('BEGIN IMMEDIATE');
  try {
    const found = active.get()?.ncid as string | undefined;
    const free = found === expected;
    if (free) {
      point.run(insert.run(ncid, at, op, who, changed, body).lastInsertRowid);
      trim.run(historyLimit);
    }
    db.exec(free ? 'COMMIT' : 'ROLLBACK');
    return free;
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

parentPort?.on('message', (request: SaveRequest | 'close') => {
  if (request === 'close') {
    db.close();
    parentPort?.close();
    return;
  }
  let reply: SaveReply;
  try {
    reply = { id: request.id, ok: true, saved: save(request) };
  } catch (error) {
    reply = { id: request.id, ok: false, reason: error instanceof Error ? error.message : String(error) };
  }
  parentPort?.postMessage(reply);
});
parentPort?.postMessage({ id: 0, ok: true, saved: true } satisfies SaveReply);
