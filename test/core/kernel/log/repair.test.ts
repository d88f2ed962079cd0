import { cpSync, existsSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { lifecycleActor } from '../../../../src/core/host/lifecycle/run.ts';
import { replayFixture } from '../../../../src/core/host/testing/index.ts';
import { recover } from '../../../../src/core/kernel/actors/recover.ts';
import { lockDataDir } from '../../../../src/core/kernel/log/lock.ts';
import { PAGE_BYTES } from '../../../../src/core/kernel/log/schema.ts';
import { SqliteReader } from '../../../../src/core/kernel/log/sqlite-reader.ts';
import { openBench } from '../../../support/actors.ts';
import { call } from '../../../support/cli.ts';
import { flipBytes, seeded } from '../../../support/damage.ts';
import { door } from '../../../support/door.ts';
import { doorsConfig } from '../../../support/doors-config.ts';
import { tempDir } from '../../../support/temp.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const patient = { ...door, input: () => ({ closeAfterMs: 86_400_000 }) };

/** Some hundreds of records, half of them in front of saved states, some larger than a page. */
async function folder(t: ExecutionContext): Promise<string> {
  const dir = tempDir(t);
  const bench = await openBench(dir, [patient, lifecycleActor], [], new VirtualClock());
  bench.actors.send(lifecycleActor, 'host', { type: 'BOOTED', pid: 1, startedAt: 1, version: '0' });
  for (let round = 0; round < 150; round += 1) {
    const by = round % 10 === 0 ? 'x'.repeat(3_000) : `visitor ${round}`;
    bench.actors.deliver(`test.door/${round % 9}`, { type: round % 2 ? 'CLOSE' : 'OPEN', by });
    if (round === 75) {
      await bench.settled();
      const states = [...bench.actors.states()].map((state) => ({
        actor: state.ref,
        body: JSON.stringify(state),
      }));
      await bench.log.saveSnapshots(states, () => []);
    }
  }
  await bench.settled();
  await bench.close();
  const db = new DatabaseSync(join(dir, 'log.db'));
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  db.close();
  return dir;
}

function recordsOf(dir: string): Map<number, string> {
  const reader = new SqliteReader(dir);
  try {
    return new Map([...reader.pages()].flat().map(({ seq, hash, body }) => [seq, `${hash} ${body}`]));
  } finally {
    reader.close();
  }
}

interface Result {
  readonly records: Map<number, string>;
  readonly missing: number[];
  readonly out: string;
}

/** Repairs, and checks what holds after every repair. */
async function repaired(t: ExecutionContext, dir: string, before: Map<number, string>): Promise<Result> {
  const damaged = readFileSync(join(dir, 'log.db'));
  const cli = (...words: string[]) => call([...words, '--data-dir', dir], { cwd: dir });
  const { code, out, err } = await cli('log', 'repair', '--json');
  t.is(code, 0, err);
  const report = JSON.parse(out) as {
    original: string;
    missing: { from: number; to: number }[];
    last: number;
  };
  t.true(readFileSync(join(report.original, 'log.db')).equals(damaged), 'the damaged original is kept');
  const records = recordsOf(dir);
  for (const [seq, text] of before)
    if (records.has(seq)) t.true(records.get(seq) === text, `record ${seq} is as it was written`);
  const missing = report.missing.flatMap(({ from, to }) =>
    Array.from({ length: to - from + 1 }, (_, at) => from + at),
  );
  const lost = [...before.keys()].filter((seq) => !records.has(seq));
  t.deepEqual(missing, lost, 'what is missing is said');
  const verified = await call(['log', 'verify', dir], { cwd: dir });
  t.is(verified.code, 0, verified.err);
  for (const { from, to } of report.missing)
    t.regex(verified.out, new RegExp(`Records ${from} to ${to} are missing`));
  doorsConfig(dir);
  const replayed = await call(['replay', 'verify', dir, '--json'], { cwd: dir });
  t.is(replayed.code, 0, replayed.err + replayed.out);
  const { unknown = 0 } = JSON.parse(replayed.out) as { unknown?: number };
  const held = await replayFixture(dir, [patient, lifecycleActor]).catch((error: Error) => error.message);
  const gap = `records could not be compared:\n  ${unknown} behind a gap, which a repair left: no state was saved before them`;
  if (unknown > 0) t.is(held, gap);
  else t.is(typeof held, 'object');
  const listed = await call(['log', 'list', dir, '--limit', '1'], { cwd: dir });
  t.regex(listed.out, /the log was repaired/);
  return { records, missing, out: verified.out };
}

test('[C9] repair: swapped records are put where they were, and none is missing', async (t) => {
  const dir = await folder(t);
  const before = recordsOf(dir);
  const db = new DatabaseSync(join(dir, 'log.db'));
  db.exec(`
    CREATE TEMP TABLE kept AS SELECT * FROM records WHERE seq IN (20, 50);
    UPDATE records SET (actor, correlation, body, hash) =
      (SELECT actor, correlation, body, hash FROM kept WHERE kept.seq = 70 - records.seq) WHERE seq IN (20, 50)`);
  db.close();
  const { missing } = await repaired(t, dir, before);
  t.deepEqual(missing, []);
  const bench = await openBench(dir, [patient, lifecycleActor], [], new VirtualClock(Date.now() + 1_000));
  t.notThrows(() => bench.actors.deliver('test.door/1', { type: 'KNOCK' }));
  await bench.settled();
  await bench.close();
});

for (const seed of [1, 2, 3]) {
  test(`[C9] repair: of a database with 64 flipped bytes (seed ${seed}) every record that can be read is saved`, async (t) => {
    const dir = await folder(t);
    const before = recordsOf(dir);
    flipBytes(join(dir, 'log.db'), 64, seeded(seed));
    const { records } = await repaired(t, dir, before);
    t.true(records.size > before.size / 2, `${records.size} of ${before.size}`);
  });
}

test('[C9] repair: of a file that was cut off, what is left is saved, and the rest is named', async (t) => {
  const dir = await folder(t);
  const before = recordsOf(dir);
  const file = join(dir, 'log.db');
  truncateSync(file, Math.floor((statSync(file).size * 0.7) / PAGE_BYTES) * PAGE_BYTES);
  const { missing, records } = await repaired(t, dir, before);
  t.true(missing.length > 0 && records.size > before.size / 3, `${records.size} of ${before.size}`);
});

test('[C9] repair: zeroed pages lose the records in them and no others', async (t) => {
  const dir = await folder(t);
  const before = recordsOf(dir);
  const file = join(dir, 'log.db');
  const bytes = readFileSync(file);
  const random = seeded(7);
  for (let page = 0; page < 8; page += 1)
    bytes.fill(0, ...range(1 + Math.floor(random() * (bytes.length / PAGE_BYTES - 2))));
  writeFileSync(file, bytes);
  const { missing } = await repaired(t, dir, before);
  t.true(missing.length <= 24, `${missing}`);
});

const range = (page: number): [number, number] => [page * PAGE_BYTES, (page + 1) * PAGE_BYTES];

test('[C9] repair: a database without its first page is read by its other pages', async (t) => {
  const dir = await folder(t);
  const before = recordsOf(dir);
  const file = join(dir, 'log.db');
  const bytes = readFileSync(file);
  bytes.fill(0, 0, PAGE_BYTES);
  writeFileSync(file, bytes);
  const { missing } = await repaired(t, dir, before);
  t.deepEqual(missing, []);
});

test('[C9] a repaired log is gone on with where states were saved behind what is missing, and refused elsewhere', async (t) => {
  const dir = await folder(t);
  const damage = (copy: string, seq: number) => {
    const db = new DatabaseSync(join(copy, 'log.db'));
    db.exec(`UPDATE records SET body = body || ' ' WHERE seq BETWEEN ${seq} AND ${seq + 5}`);
    db.close();
  };
  const saved = (() => {
    const reader = new SqliteReader(dir);
    const at = reader.snapshotSeq();
    reader.close();
    return at;
  })();
  const [early, late] = [join(tempDir(t), 'early'), join(tempDir(t), 'late')];
  for (const copy of [early, late]) cpSync(dir, copy, { recursive: true });
  damage(early, saved - 20);
  damage(late, saved + 20);
  const before = recordsOf(dir);
  const states = (place: string) => {
    const reader = new SqliteReader(place);
    try {
      return JSON.stringify(
        [...recover(reader).states.values()].filter(({ ref }) => ref.startsWith('test.')),
      );
    } finally {
      reader.close();
    }
  };
  const expected = states(dir);
  t.true((await repaired(t, early, before)).missing.length > 0);
  t.is(states(early), expected);
  const out = join(tempDir(t), 'part.jsonl');
  t.regex((await call(['log', 'export', early, '--out', out], { cwd: early })).err, /^HF_LOG_REPAIRED/);
  t.false(existsSync(out));
  t.true((await repaired(t, late, before)).missing.length > 0);
  t.throws(() => states(late), { code: 'HF_LOG_CORRUPT', message: /a repair could not save it/ });
});

test('[C9] repair says how many checkpoints of saved states it could not save', async (t) => {
  const dir = await folder(t);
  const reader = new SqliteReader(dir);
  const all = reader.checkpoints().length;
  reader.close();
  const db = new DatabaseSync(join(dir, 'log.db'));
  db.exec("UPDATE checkpoints SET digest = 'damaged' WHERE seq = (SELECT max(seq) FROM checkpoints)");
  db.close();
  const { out } = await call(['log', 'repair', '--data-dir', dir], { cwd: dir });
  t.regex(out, new RegExp(`and ${all - 1} of ${all} checkpoints? of saved states were saved\\.\\n`));
});

test('[C9] repair never touches a log that is in use, or that is not damaged', async (t) => {
  const dir = await folder(t);
  const cli = () => call(['log', 'repair', '--data-dir', dir], { cwd: dir });
  t.regex((await cli()).err, /^HF_LOG_SOUND/m); // behind a line of progress, where it takes long
  const unlock = lockDataDir(dir);
  t.regex((await cli()).err, /^HF_LOG_LOCKED/);
  unlock();
  t.false(existsSync(join(dir, 'quarantine')));
});

test('[C9] who removes records and says that a repair lost them cannot sign it', async (t) => {
  const dir = await folder(t);
  const db = new DatabaseSync(join(dir, 'log.db'));
  db.exec(`
    CREATE TABLE missing ("from" INTEGER PRIMARY KEY, "to" INTEGER, reason TEXT, key TEXT, signature TEXT);
    INSERT INTO missing SELECT 20, 25, 'it cannot be read', key, signature FROM signatures LIMIT 1;
    DELETE FROM records WHERE seq BETWEEN 20 AND 25`);
  db.close();
  t.regex(
    (await call(['log', 'verify', dir], { cwd: dir })).err,
    /Record 20 cannot be trusted: it is missing/,
  );
});
