import { type LogRecord, SqliteLog } from '../src/core/log/index.ts';
import { INSERT_RECORD, openForWriting } from '../src/core/log/schema.ts';
import { type Benchmark, interleaved, perSecond, type Result, withFolder } from './measure.ts';
import { reconcilerRecord } from './records.ts';

const RECORDS = 30_000;

/** So many records always wait: the next are decided while the last commit runs, as in a busy runtime. */
async function append(waiting: number): Promise<number> {
  return withFolder(async (dir) => {
    const log = new SqliteLog({ dataDir: dir });
    log.append(reconcilerRecord(1), { durability: 'sync' });
    await log.whenDurable(1);
    const records = Array.from({ length: count(waiting) }, (_, index) => reconcilerRecord(index + 2));
    const started = performance.now();
    for (const [index, record] of records.entries()) {
      log.append(record, { durability: 'sync' });
      if ((index + 1) % waiting === 0) await log.whenDurable(record.seq - (waiting > 1 ? waiting : 0));
    }
    await log.whenDurable(records.length + 1);
    const rate = records.length / ((performance.now() - started) / 1_000);
    await log.close();
    return rate;
  });
}

/** The same rows into the same table and indices, one transaction for as many as wait; nothing but `node:sqlite`. */
async function rawInserts(waiting: number): Promise<number> {
  return withFolder(async (dir) => {
    const db = openForWriting(dir);
    const insert = db.prepare(INSERT_RECORD);
    const rows = Array.from({ length: count(waiting) }, (_, index) => row(reconcilerRecord(index + 1)));
    const batch = Math.min(waiting, 512);
    const started = performance.now();
    for (let from = 0; from < rows.length; from += batch) {
      db.exec('BEGIN IMMEDIATE');
      for (const values of rows.slice(from, from + batch)) insert.run(...values);
      db.exec('COMMIT');
    }
    const rate = rows.length / ((performance.now() - started) / 1_000);
    db.close();
    return rate;
  });
}

const count = (waiting: number) => (waiting === 1 ? RECORDS / 20 : RECORDS);

function row(record: LogRecord) {
  return [record.seq, record.actor, record.correlation, JSON.stringify(record), '7'.repeat(64)] as const;
}

export const appendBenchmark: Benchmark = {
  name: 'append',
  summary: 'durable appends against raw inserts of the same rows, with as many records waiting',
  async run() {
    const results: Result[] = [];
    for (const waiting of [1, 10, 100, 1_000]) {
      const { ours, baseline, ratio } = await interleaved(
        5,
        () => append(waiting),
        () => rawInserts(waiting),
      );
      results.push({
        what: `durable append, ${waiting} waiting`,
        ours: perSecond(ours),
        baseline: `${perSecond(baseline)} raw inserts`,
        ratio,
        ...(waiting >= 100 && { target: '≥ 0.8', met: ratio >= 0.8 }),
      });
    }
    return results;
  },
};
