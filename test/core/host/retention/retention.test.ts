import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { loadConfig } from '../../../../src/core/host/config/load.ts';
import { pruneRunning } from '../../../../src/core/host/retention/prune-running.ts';
import { recover } from '../../../../src/core/kernel/actors/recover.ts';
import { SqliteReader } from '../../../../src/core/kernel/log/sqlite-reader.ts';
import { openBench } from '../../../support/actors.ts';
import { call } from '../../../support/cli.ts';
import { door } from '../../../support/door.ts';
import { doorsConfig } from '../../../support/doors-config.ts';
import { tempDir } from '../../../support/temp.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const DAY = 86_400_000;

const patient = {
  ...door,
  input: (key: string) => ({ closeAfterMs: key === 'stays' ? 1_000 * DAY : 1_000 }),
};

/** A log of a hundred days: one door opens and closes each day. @param open the day since which another stays open */
async function hundredDays(t: ExecutionContext, open?: number, dir = tempDir(t)) {
  const clock = new VirtualClock(Date.now() - 100 * DAY);
  const bench = await openBench(dir, [patient], [], clock);
  for (let day = 0; day < 100; day += 1) {
    bench.actors.deliver(`test.door/${day % 5}`, { type: 'OPEN', by: `day ${day}` });
    bench.actors.deliver(`test.door/${day % 5}`, { type: 'CLOSE' });
    if (day === open) bench.actors.deliver('test.door/stays', { type: 'OPEN', by: 'who stays' });
    await bench.settled();
    await clock.advance(DAY / 2);
    await bench.settled();
    await clock.advance(DAY / 2);
  }
  await bench.settled();
  return { dir, bench };
}

function states(source: string): string {
  const reader = new SqliteReader(source);
  try {
    return JSON.stringify([...recover(reader).states.values()].toSorted((a, b) => (a.ref < b.ref ? -1 : 1)));
  } finally {
    reader.close();
  }
}

test('[C10] a prefix goes into an archive; what stays, and archives with what stays, verify and replay', async (t) => {
  const dir = tempDir(t);
  // A log is signed when it is closed, so there is a signature among the records that go.
  const before = await openBench(dir, [patient], [], new VirtualClock(Date.now() - 101 * DAY));
  before.actors.deliver('test.door/0', { type: 'OPEN', by: 'the day before' });
  before.actors.deliver('test.door/0', { type: 'CLOSE' });
  await before.settled();
  await before.close();
  const { bench } = await hundredDays(t, undefined, dir);
  await bench.close();
  doorsConfig(dir);
  const whole = states(dir);
  const cli = (...words: string[]) => call(words, { cwd: dir });
  const dry = await cli('log', 'prune', '--older-than', '60d', '--dry-run', '--data-dir', dir);
  t.regex(dry.out, /^Records 1 to \d+ would be archived, until /, dry.err);
  t.false(existsSync(join(dir, 'archive')));
  for (const age of ['60d', '30d']) {
    const { code, out, err } = await cli('log', 'prune', '--older-than', age, '--data-dir', dir);
    t.is(code, 0, err);
    t.regex(out, /^Records \d+ to \d+ were archived/);
  }
  t.regex(
    (await cli('log', 'prune', '--older-than', '30d', '--data-dir', dir)).out,
    /^No record is old enough/,
  );
  t.is(states(dir), whole);
  const kept = new SqliteReader(dir);
  t.true(kept.firstSeq() > 1);
  t.deepEqual(kept.signatures(0, kept.firstSeq() - 1), [], 'nothing signs what is gone');
  kept.close();
  const archives = readdirSync(join(dir, 'archive'))
    .toSorted()
    .map((name) => join(dir, 'archive', name));
  t.is(archives.length, 2);
  for (const sources of [[dir], archives, [...archives, dir]]) {
    for (const words of [
      ['log', 'verify'],
      ['replay', 'verify'],
    ]) {
      const { code, out, err } = await cli(...words, ...sources);
      t.is(code, 0, `${words} ${sources}: ${err}${out}`);
    }
  }
  t.regex((await cli('log', 'verify', ...archives.toReversed())).err, /^HF_LOG_GAP/);
  t.regex((await cli('log', 'verify', archives[0] ?? '', dir)).err, /^HF_LOG_GAP/);
  t.regex((await cli('log', 'verify', dir, archives[0] ?? '')).err, /^HF_LOG_GAP/);

  // A runtime goes on from what stays, and the archives still fit.
  const next = await openBench(dir, [door]);
  next.actors.deliver('test.door/0', { type: 'OPEN', by: 'later' });
  await next.settled();
  await next.close();
  t.is((await cli('replay', 'verify', ...archives, dir)).code, 0);
  t.is((await cli('log', 'verify', dir)).code, 0);
});

test('[C10,C9] who takes records away and says that they were archived cannot sign it', async (t) => {
  const { dir, bench } = await hundredDays(t);
  await bench.close();
  await call(['log', 'prune', '--older-than', '60d', '--data-dir', dir], { cwd: dir });
  const db = new DatabaseSync(join(dir, 'log.db'));
  const first = (db.prepare('SELECT min(seq) AS seq FROM records').get()?.seq as number) + 10;
  db.exec(`
    INSERT INTO links SELECT ${first}, hash, NULL, NULL FROM records WHERE seq = ${first - 1};
    DELETE FROM records WHERE seq < ${first}; UPDATE meta SET value = '${first}' WHERE key = 'begin'`);
  db.close();
  t.regex(
    (await call(['log', 'verify', dir], { cwd: dir })).err,
    /no signature says that they were archived/,
  );
  await t.throwsAsync(() => openBench(dir, [door]), { code: 'HF_LOG_UNTRUSTED' });
});

test('[C10] a running log is pruned between commits, and what is open keeps what it came from', async (t) => {
  const { dir, bench } = await hundredDays(t, 80);
  const clock = new VirtualClock(Date.now());
  const job = { dataDir: dir, request: { olderThanMs: 0 }, folder: join(dir, 'archive'), now: clock.now() };
  const pruning = pruneRunning(bench.log, job);
  const again = t.throwsAsync(pruneRunning(bench.log, job), {
    code: 'HF_LOG_PRUNING',
  });
  for (let more = 0; more < 20; more += 1) {
    bench.actors.deliver('test.door/9', { type: 'OPEN', by: `${more}` });
    await bench.settled();
  }
  const { plan, file } = await pruning;
  await again;
  t.truthy(file);
  t.like(plan, { to: (plan.heldBy?.seq ?? 0) - 1, heldBy: { actor: 'test.door/stays' } });
  const first = (await bench.records())[0]?.seq ?? 0;
  t.is(first, plan.to + 1);
  const live = JSON.stringify([...bench.actors.states()].toSorted((a, b) => (a.ref < b.ref ? -1 : 1)));
  await bench.close();
  t.is(states(dir), live);
  doorsConfig(dir);
  t.is((await call(['replay', 'verify', file ?? '', dir], { cwd: dir })).code, 0);
  t.is((await call(['log', 'verify', dir], { cwd: dir })).code, 0);
});

test('[C10] a database is pruned down to a size, and the space goes back to the disk', async (t) => {
  const { dir, bench } = await hundredDays(t);
  await bench.close();
  const used = () => {
    const reader = new SqliteReader(dir);
    try {
      return reader.usedBytes();
    } finally {
      reader.close();
    }
  };
  const before = used();
  const keep = Math.ceil(before / 2_000);
  const archive = join(tempDir(t), 'kept');
  const { code, out, err } = await call(
    ['log', 'prune', '--keep-size', `${keep}KB`, '--archive', archive, '--data-dir', dir, '--json'],
    { cwd: dir },
  );
  t.is(code, 0, err);
  t.true(existsSync(JSON.parse(out).file));
  t.true(used() < before * 0.75, `${used()} of ${before} bytes are left`);
});

test('[C10] a slip in the limits is said, on the command line and in the configuration', async (t) => {
  const dir = tempDir(t);
  const prune = (...flags: string[]) => call(['log', 'prune', '--data-dir', dir, ...flags], { cwd: dir });
  t.is((await prune()).code, 2);
  t.is((await prune('--older-than', 'a month')).code, 2);
  t.is((await prune('--keep-size', '5')).code, 2);
  t.regex((await prune('--older-than', '1d')).err, /^HF_LOG_MISSING/);
  const file = join(dir, 'plugins.config.ts');
  const config = (retention: string) =>
    writeFileSync(file, `export default { plugins: [], data: { retention: ${retention} } };`);
  config(`{ olderThan: '30 days' }`);
  await t.throwsAsync(loadConfig({ file, env: {} }), { code: 'HF_CONFIG_SETTING', message: /olderThan/ });
});

test('[C10] what the archive cannot take stays in the log', async (t) => {
  const { dir, bench } = await hundredDays(t);
  await bench.close();
  mkdirSync(join(dir, 'in'));
  writeFileSync(join(dir, 'in/the-way'), '');
  const flags = ['--older-than', '1d', '--archive', join(dir, 'in/the-way'), '--data-dir', dir];
  const { err } = await call(['log', 'prune', ...flags], { cwd: dir });
  t.regex(err, /^HF_PORTABLE_WRITE/);
  const reader = new SqliteReader(dir);
  t.teardown(() => reader.close());
  t.is(reader.firstSeq(), 1);
});
