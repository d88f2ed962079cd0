import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { archivesIn, totalBytes } from '../../../../src/core/host/retention/archive-files.ts';
import { startChild } from '../../../support/disk.ts';
import { KEPT, live, openKept, replays, sizeOf, stepsOf } from '../../../support/retention.ts';
import { tempDir } from '../../../support/temp.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const DAY = 86_400_000;
const START = Date.parse('2026-01-01T00:00:00Z');
const child = new URL('../../../support/retention-child.ts', import.meta.url);

test('[C10] a year of idle life stays within its bounds every fortnight, and what is kept replays', async (t) => {
  t.timeout(600_000, 'a year of records is written, archived and replayed');
  const dir = tempDir(t);
  const clock = new VirtualClock(START);
  const settings = { ...KEPT(join(dir, 'archive')), keepArchiveBytes: 60_000 };
  const { bench, retention, steps, close } = await openKept(dir, settings, clock);
  const most = { used: 0, age: 0, archives: 0 };
  for (let fortnight = 0; fortnight < 26; fortnight += 1) {
    await live(bench, 14 * 12, 14 * DAY);
    await retention.run();
    const { used, oldest } = sizeOf(dir);
    most.used = Math.max(most.used, used);
    most.age = Math.max(most.age, clock.now() - oldest);
    most.archives = Math.max(most.archives, totalBytes(archivesIn(settings.folder)));
  }
  const total = bench.log.lastSeq();
  t.log(`${total} records, at most ${most.used} bytes live, ${most.archives} archived`);
  t.true(total > 26 * 14 * 12 * 2);
  t.true(most.used <= settings.keepBytes, `${most.used} bytes`);
  t.true(most.age <= settings.olderThanMs, `${most.age / DAY} days`);
  t.true(most.archives <= settings.keepArchiveBytes, `${most.archives} bytes`);
  t.true(steps.some(({ type }) => type === 'ARCHIVE_DELETED'));
  await close();
  await replays(
    t,
    dir,
    archivesIn(settings.folder).map(({ file }) => file),
  );
});

for (const step of [
  'while the archive is written',
  'before the record',
  'before the deletion',
  'in the deletion',
  'before an archive is deleted',
]) {
  test(`[C5,C10] killed ${step}: the next run goes on, no record is lost, and each step is recorded once`, async (t) => {
    const dir = tempDir(t);
    const clock = new VirtualClock(START);
    const settings = KEPT(join(dir, 'archive'));
    const first = await openKept(dir, settings, clock);
    for (let days = 0; days < 4; days += 1) await live(first.bench, 200, DAY);
    const total = first.bench.log.lastSeq();
    await first.close();
    const killed = startChild(t, child, [dir, String(clock.now()), step]);
    await t.throwsAsync(killed.line(/^ended/), { message: /SIGKILL/ });

    const next = await openKept(dir, settings, clock);
    await next.retention.run();
    t.deepEqual(
      readdirSync(settings.folder).filter((name) => name.endsWith('.part')),
      [],
    );
    t.true(sizeOf(dir).used <= settings.keepBytes);
    const steps = await stepsOf(next.bench);
    const made = steps.filter(({ type }) => type === 'ARCHIVED');
    t.is(new Set(made.map(({ file }) => file)).size, made.length, 'none is recorded twice');
    for (const [index, { from }] of made.entries()) t.is(from, (made[index - 1]?.to ?? 0) + 1);
    t.is(sizeOf(dir).first, (made.at(-1)?.to ?? 0) + 1);
    t.true(next.bench.log.lastSeq() >= total);
    await next.close();
    const left = archivesIn(settings.folder);
    t.true(totalBytes(left) <= settings.keepArchiveBytes);
    const deleted = steps.filter(({ type }) => type === 'ARCHIVE_DELETED').map(({ file }) => file);
    const gone = new Set(deleted);
    t.is(gone.size, deleted.length, 'none is recorded twice');
    t.deepEqual(
      left.map(({ name }) => name),
      made.map(({ file }) => file).filter((file) => !gone.has(file)),
    );
    await replays(
      t,
      dir,
      left.map(({ file }) => file),
    );
  });
}
