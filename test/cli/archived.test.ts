import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { archivesIn } from '../../src/core/host/retention/archive-files.ts';
import { noteSettings } from '../../src/core/host/retention/settings.ts';
import { SqliteReader } from '../../src/core/kernel/log/sqlite-reader.ts';
import { call } from '../support/cli.ts';
import { doorsConfig } from '../support/doors-config.ts';
import { openKept } from '../support/retention.ts';
import { tempDir } from '../support/temp.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const DAY = 86_400_000;

/** Twelve days of doors, of which retention archived all but the last three, in several archives elsewhere. */
async function archivedDays(t: ExecutionContext) {
  const dir = tempDir(t);
  const folder = join(tempDir(t), 'kept');
  const clock = new VirtualClock(Date.parse('2026-03-01T00:00:00Z'));
  const settings = { folder, olderThanMs: 3 * DAY };
  const { bench, retention, close } = await openKept(dir, settings, clock);
  for (let day = 1; day <= 12; day += 1) {
    bench.actors.deliver('test.door/front', { type: 'OPEN', by: `guest of day ${day}` });
    bench.actors.deliver('test.door/front', { type: 'CLOSE' });
    await bench.settled();
    clock.jump(DAY);
    if (day % 3 === 0) await retention.run();
  }
  await close();
  noteSettings(dir, settings);
  doorsConfig(dir);
  const reader = new SqliteReader(dir);
  const first = reader.firstSeq();
  reader.close();
  const cli = (...words: string[]) => call([...words, '--data-dir', dir], { cwd: dir });
  return { dir, folder, first, cli };
}

test('[C10] records that were archived are found by number and by time, without naming their archive', async (t) => {
  const { folder, first, cli } = await archivedDays(t);
  t.true(archivesIn(folder).length >= 3 && first > 10);
  const show = await cli('log', 'show', '2', '--json');
  t.is(show.code, 0, show.err);
  t.is(JSON.parse(show.out).record.seq, 2);
  const at = await cli('replay', 'at', '2', '--json');
  t.is(at.code, 0, at.err);
  t.is(JSON.parse(at.out).seq, 2);
  const byTime = await cli('replay', 'at', '2026-03-05T12:00', '--json');
  t.is(byTime.code, 0, byTime.err);
  t.true(JSON.parse(byTime.out).seq < first);
  const list = await cli('log', 'list', '--from', '2026-03-02', '--to', '2026-03-03T12:00');
  t.regex(list.out, /guest of day 2/, list.err);
  t.notRegex(list.out, /guest of day (1|12)\b/);
  const explained = await cli('replay', 'explain', '3');
  t.is(explained.code, 0, explained.err);
});

test('[C10] what the live log holds is read without its archives', async (t) => {
  const { folder, first, cli } = await archivedDays(t);
  for (const name of readdirSync(folder)) rmSync(join(folder, name));
  t.is((await cli('log', 'show', String(first))).code, 0);
  t.is((await cli('log', 'list')).code, 0);
  t.is((await cli('replay', 'at', String(first))).code, 0);
  const { code, err } = await cli('log', 'show', '2');
  t.not(code, 0);
  t.regex(err, /^HF_LOG_RANGE/);
});

test('[C9,C10] log verify checks the archives before the folder, one after another', async (t) => {
  const { folder, cli } = await archivedDays(t);
  const whole = await cli('log', 'verify');
  t.is(whole.code, 0, whole.err);
  t.regex(whole.out, /^\d+ records, 1 to \d+;/m);
  const [, second] = archivesIn(folder);
  // One archive is missing in the middle: those behind it lead to the folder, and are what is checked.
  rmSync(second?.file ?? '');
  const cut = await cli('log', 'verify');
  t.is(cut.code, 0, cut.err);
  t.regex(cut.out, new RegExp(`^\\d+ records, ${(second?.to ?? 0) + 1} to `, 'm'));
});
