import { closeSync, fdatasyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { LogRecord } from '../src/core/kernel/log/record.ts';
import { INDEX_EVERY, indexSome } from '../src/core/kernel/log/record-index.ts';
import { INSERT_RECORD, openForWriting } from '../src/core/kernel/log/schema.ts';
import { SqliteLog } from '../src/core/kernel/log/sqlite-log.ts';
import { type Benchmark, fastest, perSecond, quantile, type Result, withFolder } from './measure.ts';
import { reconcilerRecord } from './records.ts';

const WAITING = [1, 10, 100, 1_000];
/** As many as the log itself puts into one transaction. */
const BATCH = 512;
const ROUNDS = 4;
/** Appended before the clock starts: the writer's thread has compiled its code by then, as the baseline's has. */
const WARM = 512;

/** So many records always wait: the next are decided while the last commit runs, as in a busy runtime. */
async function append(waiting: number): Promise<number> {
  return withFolder(async (dir) => {
    const log = new SqliteLog({ dataDir: dir });
    for (let seq = 1; seq <= WARM; seq += 1) log.append(reconcilerRecord(seq), { durability: 'sync' });
    await log.whenDurable(WARM);
    const records = Array.from({ length: count(waiting) }, (_, index) => reconcilerRecord(index + 1 + WARM));
    const rate = await timed(records.length, async () => {
      for (const [index, record] of records.entries()) {
        log.append(record, { durability: 'sync' });
        if ((index + 1) % waiting === 0) await log.whenDurable(record.seq - (waiting > 1 ? waiting : 0));
      }
      await log.whenDurable(log.lastSeq());
    });
    await log.close();
    return rate;
  });
}

/** The same rows into the same tables, one transaction for as many as wait; nothing but `node:sqlite`. */
async function rawInserts(waiting: number): Promise<number> {
  return withFolder(async (dir) => {
    const db = openForWriting(dir);
    const insert = db.prepare(INSERT_RECORD);
    const rows = Array.from({ length: count(waiting) }, (_, index) => row(reconcilerRecord(index + 1)));
    let indexed = 0;
    const rate = await timed(rows.length, async () => {
      for (const batch of batches(rows, waiting)) {
        db.exec('BEGIN IMMEDIATE');
        for (const values of batch) insert.run(...values);
        if ((batch.at(-1)?.[0] ?? 0) - indexed >= INDEX_EVERY) indexed = indexSome(db, indexed);
        db.exec('COMMIT');
      }
    });
    db.close();
    return rate;
  });
}

/** The same bytes to the end of a bare file, one `fdatasync` for as many as wait: the least that durable can mean. */
async function bareFile(waiting: number): Promise<number> {
  return withFolder(async (dir) => {
    const file = openSync(join(dir, 'bare'), 'w');
    const lines = Array.from(
      { length: count(waiting) },
      (_, index) => `${JSON.stringify(reconcilerRecord(index + 1))}\n`,
    );
    const rate = await timed(lines.length, async () => {
      for (const batch of batches(lines, waiting)) {
        writeSync(file, batch.join(''));
        fdatasyncSync(file);
      }
    });
    closeSync(file);
    return rate;
  });
}

/** What the kernel was given to write to the disk, write-ahead log and checkpoints, for each record of a commit. */
async function bytesARecord(commits: number, records: number): Promise<number> {
  return withFolder(async (dir) => {
    const log = new SqliteLog({ dataDir: dir });
    const append = async () => {
      for (let n = 0; n < records; n += 1) {
        log.append(reconcilerRecord(log.lastSeq() + 1), { durability: 'sync' });
      }
      await log.whenDurable(log.lastSeq());
    };
    // Until the first checkpoint the write-ahead log grows; from then on it is written over, as in a long life.
    for (let n = 0; n < commits; n += 1) await append();
    const before = bytesWritten();
    for (let n = 0; n < commits; n += 1) await append();
    const bytes = bytesWritten() - before;
    await log.close();
    return bytes / (commits * records);
  });
}

function bytesWritten(): number {
  return Number(/^write_bytes: (\d+)/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1]);
}

const count = (waiting: number) => ({ 1: 1_500, 10: 12_000 })[waiting] ?? 40_000;

async function timed(things: number, work: () => Promise<void>): Promise<number> {
  const started = performance.now();
  await work();
  return things / ((performance.now() - started) / 1_000);
}

function* batches<T>(things: readonly T[], waiting: number): Iterable<T[]> {
  const size = Math.min(waiting, BATCH);
  for (let from = 0; from < things.length; from += size) yield things.slice(from, from + size);
}

function row(record: LogRecord) {
  return [record.seq, record.actor, record.correlation, JSON.stringify(record), '7'.repeat(64)] as const;
}

async function rates(waiting: number): Promise<Result[]> {
  const { ours, raw, bare } = await fastest(ROUNDS, {
    ours: () => append(waiting),
    raw: () => rawInserts(waiting),
    bare: () => bareFile(waiting),
  });
  const what = `durable append, ${waiting.toLocaleString('en')} waiting`;
  const ratio = ours / raw;
  const target = waiting >= 100 && { target: '≥ 0.8', met: ratio >= 0.8 };
  return [
    { what, ours: perSecond(ours), baseline: `${perSecond(raw)} raw inserts`, ratio, ...target },
    { what, ours: perSecond(ours), baseline: `${perSecond(bare)} fdatasync of a file`, ratio: ours / bare },
  ];
}

/** Twenty records a second, as many commits or fewer: what a flash card must take. */
async function wear(): Promise<Result[]> {
  const body = JSON.stringify(reconcilerRecord(1_000_000)).length;
  const results: Result[] = [];
  for (const { how, commits, records, most } of [
    { how: '20 commits a second', commits: 3_000, records: 1, most: 7 * 1024 },
    { how: '1 commit a second (linger 1 s)', commits: 400, records: 20, most: undefined },
  ]) {
    const bytes = await bytesARecord(commits, records);
    const aDay = (bytes * 20 * 86_400) / 1024 ** 3;
    results.push({
      what: `20 records a second, ${how}`,
      ours: `${(bytes / 1024).toFixed(1)} KiB a record, ${aDay.toFixed(1)} GiB a day`,
      baseline: `${(body / 1024).toFixed(1)} KiB a record's JSON`,
      ratio: bytes / body,
      ...(most !== undefined && { target: `≤ ${most / 1024} KiB`, met: bytes <= most }),
    });
  }
  return results;
}

/** How long the record of an admitted call takes to be durable, once its effect has begun (C2): alone, at odd moments. */
async function batched(): Promise<Result> {
  const waits = { batched: [] as number[], sync: [] as number[] };
  await withFolder(async (dir) => {
    const log = new SqliteLog({ dataDir: dir });
    const alive = setInterval(() => {}, 1_000); // a record that waits for others keeps no process alive
    let committed = () => {};
    log.onDurable(() => committed());
    const measure = async (durability: 'batched' | 'sync') => {
      const seq = log.lastSeq() + 1;
      const began = performance.now();
      // Not `whenDurable`: a record that somebody waits for does not linger.
      const durable = new Promise<void>((resolve) => (committed = resolve));
      log.append(reconcilerRecord(seq), { durability });
      await durable;
      waits[durability].push(performance.now() - began);
      await delay(seq % 17);
    };
    for (let n = 0; n < 100; n += 1) {
      await measure('batched');
      await measure('sync');
    }
    clearInterval(alive);
    await log.close();
  });
  const ours = quantile(waits.batched, 0.95);
  const sync = quantile(waits.sync, 0.95);
  return {
    what: 'a batched record until it is durable, alone, 95th percentile',
    ours: `${ours.toFixed(1)} ms`,
    baseline: `${sync.toFixed(1)} ms for one that does not wait`,
    ratio: ours / sync,
    target: '≤ 50 ms',
    met: ours <= 50,
  };
}

export const appendBenchmark: Benchmark = {
  name: 'append',
  summary:
    'durable appends, with as many records waiting, against raw inserts of the same rows and against `fdatasync` of a bare file; bytes that reach the disk',
  async run() {
    const results: Result[] = [];
    for (const waiting of WAITING) results.push(...(await rates(waiting)));
    return [...results, await batched(), ...(await wear())];
  },
};
