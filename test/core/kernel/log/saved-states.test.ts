import { DatabaseSync } from 'node:sqlite';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { recover } from '../../../../src/core/kernel/actors/recover.ts';
import { LogWriter } from '../../../../src/core/kernel/log/log-writer.ts';
import type { LogRecord } from '../../../../src/core/kernel/log/record.ts';
import { SqliteLog } from '../../../../src/core/kernel/log/sqlite-log.ts';
import { SqliteReader } from '../../../../src/core/kernel/log/sqlite-reader.ts';
import { openBench } from '../../../support/actors.ts';
import { door } from '../../../support/door.ts';
import { tempDir } from '../../../support/temp.ts';

const record = (seq: number): LogRecord => ({
  seq,
  at: seq,
  actor: `test.door/${seq}`,
  machine: 'door',
  version: 1,
  event: { type: 'KNOCK' },
  to: { value: 'closed' },
  effects: [],
  correlation: 'story',
});

function reader(t: ExecutionContext, dir: string): SqliteReader {
  const opened = new SqliteReader(dir);
  t.teardown(() => opened.close());
  return opened;
}

function rows(dir: string, sql: string): unknown[] {
  const db = new DatabaseSync(`${dir}/log.db`, { readOnly: true });
  try {
    return db.prepare(sql).all();
  } finally {
    db.close();
  }
}

test('[C7,C10] of many checkpoints a spaced series stays, and every record is reached from it as before', async (t) => {
  const dir = tempDir(t);
  const bench = await openBench(dir, [door]);
  const states = new Map<number, string>();
  const inOrder = (found: Iterable<{ ref: string }>) =>
    JSON.stringify([...found].toSorted((a, b) => (a.ref < b.ref ? -1 : 1)));
  for (let round = 0; round < 120; round += 1) {
    bench.actors.deliver(`test.door/${round % 7}`, {
      type: round % 2 === 0 ? 'OPEN' : 'CLOSE',
      by: `${round}`,
    });
    await bench.settled();
    const changed = bench.actors
      .takeDirty()
      .map((state) => ({ actor: state.ref, body: JSON.stringify(state) }));
    states.set(bench.log.lastSeq(), inOrder(bench.actors.states()));
    await bench.log.saveSnapshots(changed, () => []);
  }
  await bench.close();
  const log = reader(t, dir);
  for (const [seq, expected] of states)
    t.is(inOrder(recover(log, seq).states.values()), expected, `at ${seq}`);
  const [{ n }] = rows(dir, 'SELECT count(*) AS n FROM checkpoints') as [{ n: number }];
  t.true(n < 60, `${n} checkpoints are kept`);
  const [{ n: saved }] = rows(dir, 'SELECT count(*) AS n FROM snapshots') as [{ n: number }];
  t.true(saved < 60 * 7, `${saved} states are kept`);
});

/** Writes a log of which every record is of the next actor, and saves what changed after each so many. */
function writeSaved(dir: string, { records, actors, every }: Record<'records' | 'actors' | 'every', number>) {
  const writer = new LogWriter({ dataDir: dir, signEvery: records });
  for (let seq = every; seq <= records; seq += every) {
    const rows = Array.from({ length: every }, (_, place) => {
      const actor = `test.door/${(seq - every + place) % actors}`;
      return [actor, 'story', JSON.stringify({ ...record(seq - every + place + 1), actor })];
    });
    writer.commit({ id: seq, firstSeq: seq - every + 1, rows: rows.flat(), blobs: [] });
    const states = new Map(rows.map(([actor = '']) => [actor, `{"ref":"${actor}"}`]));
    writer.save({ seq, rows: [...states].flat(), finish: { full: false } });
  }
  writer.close();
  const found = rows(dir, 'SELECT seq FROM checkpoints ORDER BY seq') as { seq: number }[];
  const [{ n: saved }] = rows(dir, 'SELECT count(*) AS n FROM snapshots') as [{ n: number }];
  return { saved, gaps: found.map(({ seq }, index) => seq - (found[index - 1]?.seq ?? 0)) };
}

test('[C7,C15] no record is far behind a checkpoint, in a long log either', (t) => {
  const few = writeSaved(tempDir(t), { records: 16_000, actors: 5, every: 400 });
  t.deepEqual([...new Set(few.gaps)], [400], 'all are kept while their states are few beside the records');
  const many = writeSaved(tempDir(t), { records: 20_000, actors: 200, every: 400 });
  t.true(many.saved < 34 * 200, `${many.saved} states of many actors are kept`);
  t.true(Math.max(...many.gaps) <= 4 * (20_000 / 32), `the largest gap is ${Math.max(...many.gaps)}`);
});

test('states of 20,000 actors are made and written in parts, with turns for others between', async (t) => {
  const dir = tempDir(t);
  const log = new SqliteLog({ dataDir: dir });
  t.teardown(() => log.close());
  for (let seq = 1; seq <= 10; seq += 1) log.append(record(seq), { durability: 'sync' });
  let made = 0;
  let largest = 0;
  let before = 0;
  const watch = setInterval(() => {
    largest = Math.max(largest, made - before);
    before = made;
  }, 0);
  function* states() {
    for (; made < 20_000; made += 1) yield { actor: `test.door/${made}`, body: `{"ref":"${made}"}` };
  }
  const saving = log.saveSnapshots(states(), () => []);
  log.append(record(11), { durability: 'sync' });
  await log.whenDurable(11);
  t.true(made < 20_000, 'a record does not wait for the whole checkpoint');
  t.is(reader(t, dir).snapshotSeq(), 0, 'nothing counts as saved before all of it is');
  t.like(await saving, { seq: 10, count: 20_000 });
  clearInterval(watch);
  t.true(largest > 0 && largest < 5_000, `${largest} states in one turn`);
  t.is(reader(t, dir).snapshots(10).length, 20_000);
});

test('[C5] a checkpoint that a kill cut short is as if it had never been begun', async (t) => {
  const dir = tempDir(t);
  const log = new SqliteLog({ dataDir: dir });
  for (let seq = 1; seq <= 3; seq += 1) log.append(record(seq), { durability: 'sync' });
  await log.whenDurable(3);
  await log.close();
  const db = new DatabaseSync(`${dir}/log.db`);
  db.exec(`INSERT INTO snapshots VALUES ('test.door/1', 3, '{"ref":"test.door/1"}')`);
  db.close();
  const { states, savedSeq } = recover(reader(t, dir));
  t.is(savedSeq, 0);
  t.is(states.size, 3);
});

test('a log that is closed in the middle of a checkpoint says so to who saves', async (t) => {
  const log = new SqliteLog({ dataDir: tempDir(t) });
  log.append(record(1), { durability: 'sync' });
  const states = Array.from({ length: 5_000 }, (_, place) => ({ actor: `test.door/${place}`, body: '{}' }));
  const saving = t.throwsAsync(
    log.saveSnapshots(states, () => []),
    { code: 'HF_LOG_CLOSED' },
  );
  await log.close();
  await saving;
});
