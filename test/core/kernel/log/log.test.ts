import { readdirSync, readlinkSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import test from 'ava';
import { recover } from '../../../../src/core/kernel/actors/recover.ts';
import { readChained } from '../../../../src/core/kernel/log/chain.ts';
import { lockDataDir, lockedBy } from '../../../../src/core/kernel/log/lock.ts';
import type { LogRecord } from '../../../../src/core/kernel/log/record.ts';
import { SqliteLog } from '../../../../src/core/kernel/log/sqlite-log.ts';
import { SqliteReader } from '../../../../src/core/kernel/log/sqlite-reader.ts';
import { type Bench, openBench } from '../../../support/actors.ts';
import { door } from '../../../support/door.ts';
import { tempDir } from '../../../support/temp.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const record = (seq: number, more: Partial<LogRecord> = {}): LogRecord => ({
  seq,
  at: seq,
  actor: 'test.door/front',
  machine: 'door',
  version: 1,
  event: { type: 'KNOCK' },
  to: { value: 'closed' },
  effects: [],
  correlation: `story-${seq % 3}`,
  ...more,
});

function open(t: import('ava').ExecutionContext, dir = tempDir(t), clock = new VirtualClock(0)) {
  // What hangs is tested elsewhere; here a busy machine must not look like it.
  const log = new SqliteLog({ dataDir: dir, clock, patienceMs: 60_000 });
  t.teardown(() => log.close());
  return { log, dir, clock };
}

/** A log of some records, closed again. */
async function written(t: import('ava').ExecutionContext, count: number): Promise<string> {
  const { log, dir } = open(t);
  for (let seq = 1; seq <= count; seq += 1) log.append(record(seq), { durability: 'sync' });
  await log.close();
  return dir;
}

test('[C2] records of one turn share one commit, in order', async (t) => {
  const { log } = open(t);
  const commits: number[] = [];
  log.onDurable((_seq, { records }) => commits.push(records));
  for (let seq = 1; seq <= 100; seq += 1) log.append(record(seq), { durability: 'sync' });
  await log.whenDurable(100);
  t.deepEqual(commits, [100]);
  const seqs = (await Array.fromAsync(log.read())).map(({ seq }) => seq);
  t.deepEqual(
    seqs,
    Array.from({ length: 100 }, (_, index) => index + 1),
  );
});

test('[C2] batched records wait for the linger, or for the next commit that must not wait', async (t) => {
  const { log, clock } = open(t);
  log.append(record(1), { durability: 'batched' });
  await clock.advance(39);
  t.is(log.status().durableSeq, 0);
  await clock.advance(1);
  await log.whenDurable(1);
  log.append(record(2), { durability: 'batched' });
  log.append(record(3), { durability: 'sync' });
  await log.whenDurable(3);
  t.is(log.status().durableSeq, 3);
});

test('[C2] a batched record that somebody waits for does not linger', async (t) => {
  const { log, clock } = open(t);
  log.append(record(1), { durability: 'batched' });
  await log.whenDurable(1);
  t.is(clock.monotonic(), 0);
  t.is(clock.armed, 0);
});

test('[C2] batched records that come while a commit is under way wait for the linger all the same', async (t) => {
  const { log, clock } = open(t);
  const commits: number[] = [];
  log.onDurable((_seq, { records }) => commits.push(records));
  log.append(record(1), { durability: 'sync' });
  await new Promise(setImmediate); // it is on its way
  log.append(record(2), { durability: 'batched' });
  await log.whenDurable(1);
  log.append(record(3), { durability: 'batched' });
  await clock.advance(40);
  await log.whenDurable(3);
  t.deepEqual(commits, [1, 2]);
});

test('a full queue has no room until some of it is durable, and then says so', async (t) => {
  const { log } = open(t);
  const rooms: boolean[] = [];
  log.onRoom(() => rooms.push(log.hasRoom()));
  log.append(record(1, { event: { type: 'BIG', text: 'x'.repeat(9 * 1024 * 1024) } }), {
    durability: 'batched',
  });
  t.false(log.hasRoom());
  await log.whenDurable(1);
  t.deepEqual(rooms, [true]);
});

test('[C2] a record is read back as it was written, by actor, by correlation, by range, forwards and back', async (t) => {
  const { log } = open(t);
  for (let seq = 1; seq <= 2_500; seq += 1) {
    log.append(record(seq, seq % 100 === 0 ? { actor: 'test.door/back' } : {}), { durability: 'sync' });
  }
  await log.whenDurable(2_500);
  const seqs = async (range: Parameters<typeof log.read>[0]) =>
    (await Array.fromAsync(log.read(range))).map(({ seq }) => seq);
  t.is((await seqs({})).length, 2_500);
  t.deepEqual(await seqs({ actor: 'test.door/back', to: 300 }), [100, 200, 300]);
  t.deepEqual(
    await seqs({ correlation: 'story-1', from: 2_496 }),
    [2_497, 2_500].filter((seq) => seq % 3 === 1),
  );
  t.deepEqual(await seqs({ reverse: true, limit: 3 }), [2_500, 2_499, 2_498]);
  t.deepEqual(await Array.fromAsync(log.read({ from: 7, to: 7 })), [record(7)]);
});

test('[C5] what was committed is there after the process has opened the folder again, and numbers go on', async (t) => {
  const dir = await written(t, 3);
  const { log } = open(t, dir);
  t.is(log.lastSeq(), 3);
  log.append(record(4), { durability: 'sync' });
  await log.whenDurable(4);
  t.is([...readChained(reader(t, dir), 1)].length, 4);
});

function reader(t: import('ava').ExecutionContext, dir: string): SqliteReader {
  const opened = new SqliteReader(dir);
  t.teardown(() => opened.close());
  return opened;
}

const damages: [string, string, RegExp][] = [
  ['an edit', "UPDATE records SET body = replace(body, 'KNOCK', 'BREAK') WHERE seq = 4", /Record 4 .*hash/],
  ['a deletion', 'DELETE FROM records WHERE seq = 4', /Record 4 .*missing/],
  [
    'a swap',
    'UPDATE records SET seq = -4 WHERE seq = 4; UPDATE records SET seq = 4 WHERE seq = 5; UPDATE records SET seq = 5 WHERE seq = -4',
    /Record 4 /,
  ],
  [
    'a column that differs from its body',
    "UPDATE records SET actor = 'test.door/other' WHERE seq = 4",
    /Record 4 .*columns/,
  ],
];
for (const [name, sql, message] of damages) {
  test(`[C9] ${name} is found, and the first bad record named`, async (t) => {
    const dir = await written(t, 8);
    const db = new DatabaseSync(`${dir}/log.db`);
    db.exec(sql);
    db.close();
    t.throws(() => [...readChained(reader(t, dir), 1)], { code: 'HF_LOG_CORRUPT', message });
    t.throws(() => recover(reader(t, dir)), { code: 'HF_LOG_CORRUPT' });
  });
}

test('a data folder belongs to one process, and readers are welcome', async (t) => {
  const dir = tempDir(t);
  const unlock = lockDataDir(dir);
  t.throws(() => lockDataDir(dir), { code: 'HF_LOG_LOCKED' });
  t.not(lockedBy(dir), undefined);
  const { log } = open(t, dir);
  log.append(record(1), { durability: 'sync' });
  await log.whenDurable(1);
  t.is(reader(t, dir).lastSeq(), 1);
  unlock();
  t.is(lockedBy(dir), undefined);
});

/** What this process has open in a folder. */
const openIn = (dir: string) =>
  readdirSync('/proc/self/fd')
    .map((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`);
      } catch {
        return ''; // that of the listing itself
      }
    })
    .filter((file) => file.startsWith(dir));

test('a folder without a log, and one of another format, are coded errors, and nothing stays open', async (t) => {
  t.throws(() => new SqliteReader(tempDir(t)), { code: 'HF_LOG_MISSING' });
  const dir = await written(t, 1);
  const db = new DatabaseSync(`${dir}/log.db`);
  db.exec("UPDATE meta SET value = '999' WHERE key = 'format'");
  db.close();
  t.throws(() => new SqliteReader(dir), { code: 'HF_LOG_FORMAT' });
  t.throws(() => new SqliteLog({ dataDir: dir }), { code: 'HF_LOG_FORMAT' });
  t.deepEqual(openIn(dir), []);
});

test('[C5] a start reads the newest snapshots and folds only what came after', async (t) => {
  const dir = tempDir(t);
  const bench = await openBench(dir, [door]);
  bench.actors.deliver('test.door/front', { type: 'OPEN', by: 'ann' });
  bench.actors.deliver('test.door/back', { type: 'OPEN', by: 'bob' });
  await bench.settled();
  const states = bench.actors.takeDirty();
  const saved = await bench.log.saveSnapshots(
    states.map((state) => ({ actor: state.ref, body: JSON.stringify(state) })),
    () => [],
  );
  t.like(saved, { seq: bench.log.lastSeq(), count: 2 });
  bench.actors.deliver('test.door/front', { type: 'CLOSE' });
  await bench.settled();
  const live = structuredClone(bench.actors.states());
  await bench.close();
  const db = new DatabaseSync(`${dir}/log.db`);
  db.exec(`DELETE FROM records WHERE seq < ${saved.seq}`); // as an archive would: the snapshots stand for them
  db.close();
  const { states: recovered } = recover(reader(t, dir));
  const byRef = (a: { ref: string }, b: { ref: string }) => a.ref.localeCompare(b.ref);
  t.deepEqual([...recovered.values()].sort(byRef), live.sort(byRef) as never);
});

test('[C5] an actor that changed before a crash is in the next snapshots, though nothing changed it since', async (t) => {
  const dir = tempDir(t);
  const save = async (bench: Bench) => {
    const states = bench.actors.takeDirty();
    await bench.log.saveSnapshots(
      states.map((state) => ({ actor: state.ref, body: JSON.stringify(state) })),
      () => [],
    );
  };
  const first = await openBench(dir, [door]);
  first.actors.deliver('test.door/front', { type: 'OPEN', by: 'ann' });
  await first.settled();
  await first.close(); // without saving, as after a crash
  const second = await openBench(dir, [door]);
  second.actors.deliver('test.door/back', { type: 'OPEN', by: 'bob' });
  await second.settled();
  await save(second);
  await second.close();
  const { states } = recover(reader(t, dir));
  t.deepEqual([...states.keys()].sort(), ['test.door/back', 'test.door/front']);
});

test('[C5] a stored body is durable with its record, readable at once, and dropped when nothing names it', async (t) => {
  const { log, dir } = open(t);
  const blobs = new Map([
    ['fp_1', Buffer.from('one')],
    ['fp_2', Buffer.from('two')],
  ]);
  log.append(record(1), { durability: 'sync', blobs });
  t.is(Buffer.from(log.blob('fp_1') ?? '').toString(), 'one');
  await log.whenDurable(1);
  t.is(Buffer.from(reader(t, dir).blob('fp_2') ?? '').toString(), 'two');
  await log.saveSnapshots([], () => ['fp_2']);
  t.is(log.blob('fp_1'), undefined);
  t.is(Buffer.from(log.blob('fp_2') ?? '').toString(), 'two');
});

test('a closed log takes nothing more, and says so to whoever waits', async (t) => {
  const { log } = open(t);
  log.append(record(1), { durability: 'sync' });
  await log.close();
  t.throws(() => log.append(record(2), { durability: 'sync' }), { code: 'HF_LOG_CLOSED' });
  await t.throwsAsync(log.whenDurable(2), { code: 'HF_LOG_CLOSED' });
});

test('[C5] a writer thread that dies is replaced, again and again, until what waits is written', async (t) => {
  const { log, dir, clock } = open(t);
  const setFormat = (format: string) => {
    const db = new DatabaseSync(`${dir}/log.db`);
    db.prepare("UPDATE meta SET value = ? WHERE key = 'format'").run(format);
    db.close();
  };
  setFormat('999'); // the thread has not opened the file yet: it will refuse it and end
  const frozen = new Promise<string | undefined>((resolve) => log.onFrozen(resolve));
  log.append(record(1), { durability: 'sync' });
  t.regex((await frozen) ?? '', /the writer ended/);
  t.false(log.hasRoom());
  setFormat('1');
  const thawed = log.whenDurable(1);
  await clock.advance(5_000);
  await thawed;
  t.true(log.hasRoom());
});

test('a log whose table computed each record’s time is opened without that column, unless somebody uses it', async (t) => {
  for (const more of ['', 'CREATE INDEX mine ON records (at)']) {
    const dir = await written(t, 2);
    const db = new DatabaseSync(`${dir}/log.db`);
    db.exec("ALTER TABLE records ADD COLUMN at INTEGER AS (json_extract(body, '$.at')) VIRTUAL");
    if (more) db.exec(more);
    const { log } = open(t, dir);
    log.append(record(3), { durability: 'sync' });
    await log.close();
    t.deepEqual(
      db
        .prepare('SELECT at FROM timeline ORDER BY seq')
        .all()
        .map((row) => row.at),
      [1, 2, 3],
    );
    const columns = db.prepare("SELECT name FROM pragma_table_xinfo('records')").all().length;
    t.is(columns, more ? 6 : 5);
    db.close();
  }
});
