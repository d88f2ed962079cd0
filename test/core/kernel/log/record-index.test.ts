import { execFileSync } from 'node:child_process';
import { DatabaseSync } from 'node:sqlite';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { reconcilerRecord } from '../../../../bench/records.ts';
import type { ReadRange } from '../../../../src/core/kernel/log/event-log.ts';
import { INDEX_EVERY } from '../../../../src/core/kernel/log/record-index.ts';
import { logFile, PAGE_BYTES } from '../../../../src/core/kernel/log/schema.ts';
import { SqliteLog } from '../../../../src/core/kernel/log/sqlite-log.ts';
import { SqliteReader } from '../../../../src/core/kernel/log/sqlite-reader.ts';
import { call } from '../../../support/cli.ts';
import { diskDir, tempDir } from '../../../support/temp.ts';

const child = new URL('../../../support/commit-bytes.ts', import.meta.url).pathname;

/** As many as two rounds of the index, and some that it does not have yet. */
const COUNT = 2 * INDEX_EVERY + 500;

async function written(t: ExecutionContext, count = COUNT): Promise<string> {
  const dir = tempDir(t);
  const log = new SqliteLog({ dataDir: dir });
  for (let seq = 1; seq <= count; seq += 1) {
    log.append(reconcilerRecord(seq), { durability: 'sync' });
    if (seq % 500 === 0) await log.whenDurable(seq);
  }
  await log.close();
  return dir;
}

function seqsOf(dir: string, range: ReadRange): number[] {
  const reader = new SqliteReader(dir);
  try {
    return [...reader.pages(range)].flat().map(({ seq }) => seq);
  } finally {
    reader.close();
  }
}

/** Every hundredth record is of the same actor. */
const ofActor = (from: number, to: number) =>
  Array.from({ length: to }, (_, index) => index + 1).filter((seq) => seq >= from && seq % 100 === 7);
const actor = reconcilerRecord(7).actor;

/** What the index must answer, whatever it holds. */
function answersWhole(t: ExecutionContext, dir: string, last = COUNT): void {
  t.deepEqual(seqsOf(dir, { actor }), ofActor(1, last));
  t.deepEqual(seqsOf(dir, { actor, reverse: true }), ofActor(1, last).toReversed());
  const [from, to] = [INDEX_EVERY - 150, INDEX_EVERY + 350];
  t.deepEqual(seqsOf(dir, { actor, from, to }), ofActor(from, to));
  t.deepEqual(seqsOf(dir, { actor, from: last - 300 }), ofActor(last - 300, last));
  for (const seq of [1, INDEX_EVERY, last]) {
    const { correlation } = reconcilerRecord(seq);
    t.deepEqual(seqsOf(dir, { correlation }), [seq]);
    t.deepEqual(seqsOf(dir, { correlation, actor: reconcilerRecord(seq).actor }), [seq]);
    t.deepEqual(seqsOf(dir, { correlation, actor: 'nobody/here' }), []);
  }
}

test('[C10] a commit of one record gives the disk at most 7 KiB, checkpoints, index and signatures included', (t) => {
  t.timeout(180_000, 'it waits for the disk some thousand times');
  const output = execFileSync(process.execPath, [child, diskDir(t), String(INDEX_EVERY / 2)], {
    encoding: 'utf8',
  });
  const bytes = Number(output);
  t.log(`${(bytes / 1024).toFixed(2)} KiB a commit`);
  t.true(bytes > 500, 'the folder for temporary files lies on a disk, whose writes are counted');
  t.true(bytes <= 7 * 1024, `${(bytes / 1024).toFixed(2)} KiB a commit`);
});

test('[C10] records are found by actor and by correlation, indexed or too new for it, in both directions', async (t) => {
  const dir = await written(t);
  const db = new DatabaseSync(logFile(dir));
  t.teardown(() => db.close());
  const indexed = Number(db.prepare("SELECT value FROM meta WHERE key = 'indexed'").get()?.value);
  t.true(indexed >= 2 * INDEX_EVERY && indexed < COUNT, `${indexed} of ${COUNT}`);
  for (const table of ['records_by_actor', 'records_by_correlation'])
    t.is(db.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.n, indexed);
  answersWhole(t, dir);
});

/** Makes a log what the development versions before 0.2.0 wrote: large pages, and indices of SQLite's own. */
function asWrittenEarlier(dir: string): void {
  const db = new DatabaseSync(logFile(dir));
  db.exec(`
    PRAGMA journal_mode = DELETE; PRAGMA page_size = 4096; VACUUM; PRAGMA journal_mode = WAL;
    DROP TABLE records_by_actor; DROP TABLE records_by_correlation; DELETE FROM meta WHERE key = 'indexed';
    CREATE INDEX records_actor ON records (actor, seq); CREATE INDEX records_correlation ON records (correlation, seq);
  `);
  db.close();
}

test('[C10,C5] a log with indices of SQLite’s own is read as it is, and goes on without them', async (t) => {
  const dir = await written(t);
  asWrittenEarlier(dir);
  answersWhole(t, dir);
  const log = new SqliteLog({ dataDir: dir });
  log.append(reconcilerRecord(COUNT + 1), { durability: 'sync' });
  await log.close();
  const db = new DatabaseSync(logFile(dir));
  const names = db.prepare("SELECT name FROM sqlite_schema WHERE name LIKE 'records_%' ORDER BY name").all();
  t.deepEqual(
    names.map(({ name }) => name),
    ['records_by_actor', 'records_by_correlation'],
  );
  db.close();
  answersWhole(t, dir, COUNT + 1);
  t.is((await call(['log', 'verify', dir], { cwd: dir })).code, 0);
});

test('[C10] a prune of a stopped folder gives an earlier log the pages of a new one, and forgets what went', async (t) => {
  const dir = await written(t);
  asWrittenEarlier(dir);
  const { code, err } = await call(['log', 'prune', '--keep-size', '500KB', '--data-dir', dir], { cwd: dir });
  t.is(code, 0, err);
  const db = new DatabaseSync(logFile(dir));
  t.teardown(() => db.close());
  t.is(db.prepare('PRAGMA page_size').get()?.page_size, PAGE_BYTES);
  t.is(db.prepare('PRAGMA journal_mode').get()?.journal_mode, 'wal');
  const first = Number(db.prepare('SELECT min(seq) AS seq FROM records').get()?.seq);
  t.true(first > 1_000, String(first));
  for (const table of ['records_by_actor', 'records_by_correlation'])
    t.is(db.prepare(`SELECT min(seq) AS seq FROM ${table}`).get()?.seq, first);
  t.deepEqual(seqsOf(dir, { actor }), ofActor(first, COUNT));
});

test('[C9] a record that the index lacks is found by log verify, and named', async (t) => {
  const dir = await written(t, INDEX_EVERY + 100);
  const db = new DatabaseSync(logFile(dir));
  db.exec('DELETE FROM records_by_correlation WHERE seq = 1234');
  db.close();
  const reader = new SqliteReader(dir);
  t.deepEqual(reader.damages(5), ['record 1234 is missing in the index by correlation']);
  reader.close();
  const { code, err } = await call(['log', 'verify', dir], { cwd: dir });
  t.is(code, 1);
  t.regex(err, /^HF_LOG_DAMAGED\n.*record 1234 is missing in the index by correlation/);
});

test('[C9] an entry of the index that names a wrong record finds nothing that was not asked for', async (t) => {
  const dir = await written(t, INDEX_EVERY + 100);
  const db = new DatabaseSync(logFile(dir));
  db.prepare('INSERT INTO records_by_actor (actor, seq) VALUES (?, 8)').run(actor);
  db.close();
  t.deepEqual(seqsOf(dir, { actor }), ofActor(1, INDEX_EVERY + 100));
});
