import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { archiveName } from '../../../../src/core/host/retention/archive-files.ts';
import {
  measureStorage,
  outlook,
  type Storage,
  storageFact,
} from '../../../../src/core/host/retention/growth.ts';
import { DEFAULT_LIMITS, noteSettings } from '../../../../src/core/host/retention/settings.ts';
import type { LogRecord } from '../../../../src/core/kernel/log/record.ts';
import { SqliteLog } from '../../../../src/core/kernel/log/sqlite-log.ts';
import { SqliteReader } from '../../../../src/core/kernel/log/sqlite-reader.ts';
import { call } from '../../../support/cli.ts';
import { tempDir } from '../../../support/temp.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const MB = 1_000_000;
const NOW = Date.parse('2026-06-01T12:00:00Z');

const record = (seq: number, at: number): LogRecord => ({
  seq,
  at,
  actor: 'test.door/front',
  machine: 'door',
  version: 1,
  event: { type: 'KNOCK' },
  to: { value: 'closed' },
  effects: [],
  correlation: `story-${seq}`,
});

/** A log with one record every so often, up to a time. */
async function written(t: ExecutionContext, count: number, everyMs: number, now = NOW): Promise<string> {
  const dir = tempDir(t);
  const log = new SqliteLog({ dataDir: dir });
  for (let seq = 1; seq <= count; seq += 1)
    log.append(record(seq, now - (count - seq) * everyMs), { durability: 'batched' });
  await log.close();
  return dir;
}

function factOf(dir: string, settings = {}, now = NOW) {
  const reader = new SqliteReader(dir);
  try {
    const whole = { folder: join(dir, 'archive'), ...settings };
    return {
      storage: measureStorage(reader, dir, whole, now, []),
      fact: storageFact(reader, dir, whole, now) as Record<string, unknown>,
    };
  } finally {
    reader.close();
  }
}

test('[C10] the growth of a log that is younger than an hour is unknown, and so is when space runs out', async (t) => {
  const dir = await written(t, 59, 60_000);
  const { fact } = factOf(dir, DEFAULT_LIMITS);
  t.like(fact, { bytesADay: 'unknown', next: 'unknown' });
  t.regex(String(fact.text), /growth a day unknown: the log is younger than an hour/);
  t.regex(String(fact.text), /when space runs out is unknown/);
  t.false('days' in fact);
  const later = factOf(dir, DEFAULT_LIMITS, NOW + 2 * HOUR).fact;
  t.is(typeof later.bytesADay, 'number');
});

test('[C10] the growth is that of the last day, not of the whole life', async (t) => {
  // Ten quiet days, and then a record a minute for a day.
  const dir = tempDir(t);
  const log = new SqliteLog({ dataDir: dir });
  let seq = 0;
  for (let day = 0; day < 10; day += 1)
    log.append(record(++seq, NOW - (11 - day) * DAY), { durability: 'batched' });
  for (let minute = 1; minute <= 1_440; minute += 1)
    log.append(record(++seq, NOW - DAY + minute * 60_000), { durability: 'batched' });
  await log.close();
  const { storage } = factOf(dir);
  const expected = (storage.live / seq) * 1_440;
  t.true(Math.abs((storage.aDay ?? 0) - expected) < expected * 0.01, `${storage.aDay} for ${expected}`);
});

const storage: Storage = {
  live: 100 * MB,
  archives: 0,
  aDay: 10 * MB,
  ageMs: 10 * DAY,
  ratio: 0.1,
  free: { live: 100_000 * MB, archives: 100_000 * MB, shared: true },
};
const limits = {
  folder: '/archives',
  keepBytes: 1_000 * MB,
  olderThanMs: 90 * DAY,
  keepArchiveBytes: 400 * MB,
};

test('[C10] which comes first is told: a limit, the disk, or nothing', (t) => {
  // The live log is full after 80 days (its age), the archives 400 days later.
  t.deepEqual(outlook(storage, limits), { first: 'limit', days: 480 });
  // By its size after 40 days, when age does not count.
  t.deepEqual(outlook({ ...storage, live: 600 * MB }, { ...limits, olderThanMs: undefined }), {
    first: 'limit',
    days: 440,
  });
  const free = (mb: number, archives = mb, shared = true) => ({
    live: mb * MB,
    archives: archives * MB,
    shared,
  });
  t.deepEqual(outlook({ ...storage, free: free(50) }, limits), { first: 'disk', days: 5 });
  // Room for the live log, and then for 100 days of archives.
  t.deepEqual(outlook({ ...storage, free: free(900) }, limits), { first: 'disk', days: 180 });
  t.deepEqual(outlook({ ...storage, free: free(900, 10, false) }, limits), { first: 'disk', days: 90 });
  t.deepEqual(outlook({ ...storage, aDay: 0 }, limits), { first: 'never' });
  t.deepEqual(outlook({ ...storage, aDay: undefined }, limits), { first: 'unknown' });
  const without = { folder: '/archives' };
  t.deepEqual(outlook({ ...storage, free: free(1_000) }, without), { first: 'disk', days: 100 });
  // Before there is an archive nobody knows how small they become.
  t.is(outlook({ ...storage, ratio: undefined }, limits).days, 120);
});

test('[C10] archives count, and what they hold of the live log is measured', async (t) => {
  const dir = await written(t, 200, HOUR);
  mkdirSync(join(dir, 'archive'));
  writeFileSync(join(dir, 'archive', archiveName(1, 1_000)), Buffer.alloc(50_000));
  writeFileSync(join(dir, 'archive', 'notes.txt'), Buffer.alloc(1_000));
  const { storage: measured } = factOf(dir);
  t.is(measured.archives, 50_000);
  t.is(measured.ratio, 50_000 / ((1_000 * measured.live) / 200));
});

test('[C10,R29] status of a stopped folder tells growth, limits and outlook as the last run had them', async (t) => {
  const dir = await written(t, 200, 60_000, Date.now());
  noteSettings(dir, { folder: join(dir, 'archive'), ...DEFAULT_LIMITS });
  const { out } = await call(['status', '--data-dir', dir], { cwd: dir });
  t.regex(out, /storage +grows [\d.]+ [KM]B a day; live [\d.]+ [KM]B of 1\.1 GB; archives 0 B of 4\.3 GB; /);
  t.regex(out, /the (limits are reached|disk is full) /);
  const { out: json } = await call(['status', '--data-dir', dir, '--json'], { cwd: dir });
  t.is(typeof JSON.parse(json).storage.bytesADay, 'number');
});
