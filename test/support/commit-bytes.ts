/**
 * A process that commits one record at a time and prints how many bytes the kernel was given to write to the disk for
 * each: write-ahead log, database, index and signatures. Arguments: data folder, commits.
 */
import { readFileSync } from 'node:fs';
import { reconcilerRecord } from '../../bench/records.ts';
import { SqliteLog } from '../../src/core/kernel/log/sqlite-log.ts';

const dir = process.argv[2] as string;
const commits = Number(process.argv[3]);

async function append(log: SqliteLog, commits: number, records: number): Promise<void> {
  for (let commit = 0; commit < commits; commit += 1) {
    for (let n = 0; n < records; n += 1)
      log.append(reconcilerRecord(log.lastSeq() + 1), { durability: 'sync' });
    await log.whenDurable(log.lastSeq());
  }
}

function bytesWritten(): number {
  return Number(/^write_bytes: (\d+)/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1]);
}

const earlier = new SqliteLog({ dataDir: dir });
await append(earlier, 10, commits / 10);
await earlier.close();
const before = bytesWritten();
const log = new SqliteLog({ dataDir: dir });
await append(log, commits, 1);
await log.close(); // moves all of the write-ahead log into the database
console.log((bytesWritten() - before) / commits);
