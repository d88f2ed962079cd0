/**
 * A main thread that decides 1,000 times a second for four seconds; prints how long its turns were late. What it waited for a processor that another process had is taken off: that says nothing of the log.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { LogRecord } from '../src/core/kernel/log/record.ts';
import { INSERT_RECORD, openForWriting } from '../src/core/kernel/log/schema.ts';
import { SqliteLog } from '../src/core/kernel/log/sqlite-log.ts';
import { quantile, schedulerWaitMs } from './measure.ts';
import { reconcilerRecord } from './records.ts';

const [dir = '', how] = process.argv.slice(2);
const RUN_MS = 4_000;
const BURST = 10;

let commits = 0;
const { append, close } = sink();
append(Array.from({ length: 500 }, (_, index) => reconcilerRecord(index + 1)));
await sleep(1_000); // what is compiled and collected in the first second says nothing of the disk
commits = 0;
const late: number[] = [];
let turn = now();
const turns = setInterval(() => {
  const next = now();
  late.push(Math.max(0, next.at - turn.at - 1 - (next.waited - turn.waited)));
  turn = next;
}, 1);
const end = performance.now() + RUN_MS;
for (let seq = 501; performance.now() < end; seq += BURST) {
  append(Array.from({ length: BURST }, (_, index) => reconcilerRecord(seq + index)));
  await sleep(BURST);
}
clearInterval(turns);
await close();
console.log(JSON.stringify({ max: Math.max(...late), p99: quantile(late, 0.99), commits }));

/** Milliseconds: the time, and how long this thread has stood in the line for a processor. */
function now(): { at: number; waited: number } {
  return { at: performance.now(), waited: schedulerWaitMs() };
}

function sink(): { append: (records: readonly LogRecord[]) => void; close: () => Promise<void> } {
  if (how === 'idle') return { append: (records) => void JSON.stringify(records), close: async () => {} };
  if (how === 'inline') {
    const db = openForWriting(dir);
    const insert = db.prepare(INSERT_RECORD);
    return {
      append(records) {
        db.exec('BEGIN IMMEDIATE');
        for (const record of records) {
          const { seq, actor, correlation } = record;
          insert.run(seq, actor, correlation, JSON.stringify(record), '7'.repeat(64));
        }
        db.exec('COMMIT');
        commits += 1;
      },
      close: async () => db.close(),
    };
  }
  const log = new SqliteLog({ dataDir: dir });
  log.onDurable(() => {
    commits += 1;
  });
  return {
    append(records) {
      for (const record of records) log.append(record, { durability: 'sync' });
    },
    close: () => log.close(),
  };
}
