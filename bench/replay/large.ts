import { execFile } from 'node:child_process';
import { createReadStream, createWriteStream, statSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import zlib from 'node:zlib';
import { runSteps } from '../../src/core/host/history/pace.ts';
import { momentSteps } from '../../src/core/kernel/actors/recover.ts';
import { type ActorState, applyRecord } from '../../src/core/kernel/actors/transition.ts';
import { portableHeader, portableLines } from '../../src/core/kernel/log/portable/export.ts';
import { writePortable } from '../../src/core/kernel/log/portable/file.ts';
import { importLog } from '../../src/core/kernel/log/portable/import.ts';
import { logFile } from '../../src/core/kernel/log/schema.ts';
import { SqliteReader } from '../../src/core/kernel/log/sqlite-reader.ts';
import { median, perSecond, type Result, withFolder } from '../measure.ts';
import { writeLog } from './log.ts';

/** A million takes several minutes, and is what a run with HOLDFAST_BENCH_LONG=1 takes. */
const EVENTS = process.env.HOLDFAST_BENCH_LONG === '1' ? 1_000_000 : 100_000;
/** By then a process holds as much as it ever will. */
const SMALL = Math.max(EVENTS / 10, 50_000);
const CHECKPOINT = 10_000;
const MIB = 2 ** 20;
const child = new URL('./child.ts', import.meta.url).pathname;

interface Verified {
  readonly records: number;
  readonly rate: number;
  readonly maxRssMb: number;
}

async function verifyApart(dir: string): Promise<Verified> {
  const { stdout } = await promisify(execFile)(process.execPath, [child, dir]);
  return JSON.parse(stdout);
}

async function seconds(work: () => unknown): Promise<number> {
  const started = performance.now();
  await work();
  return (performance.now() - started) / 1_000;
}

/**
 * A log larger than what a process holds: its verification, its middle, its way into a file and back.
 *
 * @param bare events a second of the bare loop over the public transition, by processor time
 */
export async function largeLog(bare: () => Promise<number>): Promise<Result[]> {
  return withFolder(async (dir) => {
    const [small, large] = [join(dir, 'small'), join(dir, 'large')];
    await writeLog(small, SMALL, CHECKPOINT);
    await writeLog(large, EVENTS, CHECKPOINT);
    const before = await bare();
    const few = await verifyApart(small);
    const all = await verifyApart(large);
    const loop = Math.max(before, await bare());
    const size = `${all.records.toLocaleString('en')} records`;
    return [
      {
        what: `replay verify, ${size} (${Math.round(statSync(logFile(large)).size / MIB)} MiB)`,
        ours: `${perSecond(all.rate)} of processor time`,
        baseline: `${perSecond(loop)} bare transition`,
        ratio: all.rate / loop,
        target: '≥ 0.85',
        met: all.rate / loop >= 0.85,
      },
      {
        what: 'most memory held while verifying it',
        ours: `${all.maxRssMb.toFixed(0)} MB`,
        baseline: `${few.maxRssMb.toFixed(0)} MB for ${few.records.toLocaleString('en')} records`,
        ratio: all.maxRssMb / few.maxRssMb,
        target: 'flat',
        met: all.maxRssMb / few.maxRssMb < 1.25,
      },
      await middle(large),
      ...(await files(dir, large)),
    ];
  });
}

/** Every actor as it was in the middle, against folding all records up to there. */
async function middle(dir: string): Promise<Result> {
  const reader = new SqliteReader(dir);
  const seq = Math.floor(reader.lastSeq() / 2) + CHECKPOINT / 2;
  const took: number[] = [];
  for (let round = 0; round < 5; round += 1)
    took.push(await seconds(() => runSteps(momentSteps(reader, seq), undefined)));
  const folded = await seconds(async () => {
    const states = new Map<string, ActorState>();
    for await (const record of reader.read({ to: seq })) {
      states.set(record.actor, applyRecord(states.get(record.actor), record));
    }
  });
  reader.close();
  return {
    what: 'replay at the middle, 5,000 records behind a checkpoint',
    ours: `${(median(took) * 1_000).toFixed(0)} ms`,
    baseline: `${(folded * 1_000).toFixed(0)} ms folding from the first record`,
    ratio: median(took) / folded,
  };
}

/** Export and import, against a bare stream of the same bytes through the same compression. */
async function files(dir: string, data: string): Promise<Result[]> {
  const reader = new SqliteReader(data);
  const part = { from: 1, to: Math.min(reader.lastSeq(), 200_000) };
  const results: Result[] = [];
  const plain = join(dir, 'log.jsonl');
  for (const [ending, pack, unpack] of [
    ['', [], []],
    ['.gz', [zlib.createGzip()], [zlib.createGunzip()]],
    ['.zst', [zlib.createZstdCompress()], [zlib.createZstdDecompress()]],
  ] as const) {
    const file = plain + ending;
    const bare = join(dir, `bare${ending}`);
    let bytes = 0;
    const exported = await seconds(async () => {
      bytes = await writePortable(file, portableLines(reader, part, portableHeader(reader, part, 0), []));
    });
    const packed = await seconds(() => pipeline([createReadStream(plain), ...pack, createWriteStream(bare)]));
    const imported = await seconds(() => importLog(file, join(dir, `imported${ending}`)));
    const unpacked = await seconds(() =>
      pipeline([createReadStream(file), ...unpack, createWriteStream(join(dir, 'out'))]),
    );
    const rate = (took: number) => `${(bytes / MIB / took).toFixed(0)} MiB/s`;
    const what = `log.jsonl${ending}, ${(statSync(file).size / MIB).toFixed(0)} of ${(bytes / MIB).toFixed(0)} MiB`;
    const words = 'bare stream';
    results.push(
      {
        what: `export ${what}`,
        ours: rate(exported),
        baseline: `${rate(packed)} ${words}`,
        ratio: packed / exported,
      },
      {
        what: `import ${what}`,
        ours: rate(imported),
        baseline: `${rate(unpacked)} ${words}`,
        ratio: unpacked / imported,
      },
    );
  }
  reader.close();
  return results;
}
