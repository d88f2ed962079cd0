import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { resolveConfig } from '../../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../../src/core/host/logging/logger.ts';
import { archivesIn, totalBytes } from '../../../../src/core/host/retention/archive-files.ts';
import { KEPT, live, openKept, replays, sizeOf } from '../../../support/retention.ts';
import { tempDir } from '../../../support/temp.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const DAY = 86_400_000;
const START = Date.parse('2026-01-01T00:00:00Z');

test('[C10] records over the limits of size and age are archived, and archives over theirs deleted, in order and recorded', async (t) => {
  const dir = tempDir(t);
  const clock = new VirtualClock(START);
  const settings = KEPT(join(dir, 'archive'));
  const { bench, retention, steps, close } = await openKept(dir, settings, clock);
  await live(bench, 50, DAY);
  await retention.run();
  t.false(existsSync(settings.folder), 'nothing is over a limit');

  // By age alone: the first day goes when it is ninety days old, and what is younger stays.
  clock.jump(90 * DAY);
  await retention.run();
  const [byAge] = archivesIn(settings.folder);
  t.is(byAge?.from, 1);
  t.true(sizeOf(dir).oldest >= clock.now() - 90 * DAY);

  // By size: as many archives as it takes, each of them after the one before.
  for (let days = 0; days < 4; days += 1) await live(bench, 250, DAY);
  t.true(sizeOf(dir).used > settings.keepBytes);
  await retention.run();
  t.true(sizeOf(dir).used <= settings.keepBytes);
  const made = steps.filter(({ type }) => type === 'ARCHIVED');
  const deleted = steps.filter(({ type }) => type === 'ARCHIVE_DELETED');
  t.true(made.length > 2, `${made.length} archives`);
  t.is(sizeOf(dir).first, (made.at(-1)?.to ?? 0) + 1);
  for (const [index, { from }] of made.entries()) t.is(from, (made[index - 1]?.to ?? 0) + 1);
  const left = archivesIn(settings.folder);
  t.true(totalBytes(left) <= settings.keepArchiveBytes);
  t.deepEqual(
    [...deleted.map(({ file }) => file), ...left.map(({ name }) => name)],
    made.map(({ file }) => file),
  );
  await close();
  await replays(
    t,
    dir,
    left.map(({ file }) => file),
  );
});

test('[C10] a timer that has been open for longer than the limit does not keep the log from it', async (t) => {
  const dir = tempDir(t);
  const clock = new VirtualClock(START);
  const settings = { folder: join(dir, 'archive'), olderThanMs: 90 * DAY };
  const { bench, retention, close } = await openKept(dir, settings, clock);
  bench.actors.deliver('test.door/stays', { type: 'OPEN', by: 'who stays' });
  await live(bench, 20, DAY);
  clock.jump(100 * DAY);
  await live(bench, 20, DAY);
  await retention.run();
  t.true(sizeOf(dir).first > 20);
  await close();
  const again = await openKept(dir, settings, clock);
  t.is(
    again.bench.actors.snapshot('test.door/stays')?.value,
    'open',
    'its state was saved where the log begins',
  );
  await again.close();
  await replays(
    t,
    dir,
    archivesIn(settings.folder).map(({ file }) => file),
  );
});

test('[C10,C13] records that are needed elsewhere stay, until the disk is nearly full', async (t) => {
  const dir = tempDir(t);
  const clock = new VirtualClock(START);
  const settings = { folder: join(dir, 'archive'), olderThanMs: DAY };
  for (const { leastFreeBytes, first } of [
    { leastFreeBytes: 0, first: 40 },
    { leastFreeBytes: Number.MAX_SAFE_INTEGER, first: undefined },
  ]) {
    const { bench, retention, close } = await openKept(dir, settings, clock, { leastFreeBytes });
    bench.log.keepFrom(() => 40);
    if (first !== undefined) await live(bench, 50, DAY);
    clock.jump(10 * DAY);
    await retention.run();
    if (first === undefined) t.true(sizeOf(dir).first > 40);
    else t.is(sizeOf(dir).first, first);
    await close();
  }
});

test('[C10] a running log is looked at every minute', async (t) => {
  const dir = tempDir(t);
  const clock = new VirtualClock(START);
  const settings = KEPT(join(dir, 'archive'));
  const { bench, close } = await openKept(dir, settings, clock, { scheduled: true });
  await live(bench, 20, DAY);
  clock.jump(90 * DAY);
  for (let wait = 0; wait < 3_000 && archivesIn(settings.folder).length === 0; wait += 1) {
    await clock.advance(60_000);
    await delay(5);
  }
  t.is(archivesIn(settings.folder)[0]?.from, 1);
  await close();
  t.is(clock.armed, 0);
});

test('[C10] what an archive cannot take stays in the log, and is archived when it can', async (t) => {
  const dir = tempDir(t);
  const clock = new VirtualClock(START);
  const settings = KEPT(join(dir, 'in-the-way'));
  writeFileSync(settings.folder, '');
  const { bench, retention, close } = await openKept(dir, settings, clock);
  await live(bench, 50, DAY);
  clock.jump(100 * DAY);
  await t.throwsAsync(retention.run(), { code: 'HF_PORTABLE_WRITE' });
  t.is(sizeOf(dir).first, 1);
  await close();
});

test('[C10] a refusal that lasts is said once, and told as long as it lasts', async (t) => {
  const dir = tempDir(t);
  const clock = new VirtualClock(START);
  const settings = KEPT(join(dir, 'in-the-way'));
  writeFileSync(settings.folder, '');
  const lines: string[] = [];
  const logger = createLogger({ destination: { write: (line) => void lines.push(line) } });
  const said = () => lines.filter((line) => line.includes('log.prune_failed')).length;
  const { bench, retention, close } = await openKept(dir, settings, clock, { scheduled: true, logger });
  await live(bench, 50, DAY);
  clock.jump(100 * DAY);
  const attempts = async (until: () => boolean, step: number) => {
    for (let wait = 0; wait < 3_000 && !until(); wait += 1) {
      await clock.advance(step);
      await delay(5);
    }
  };
  await attempts(() => said() === 1, 60_000);
  t.is(said(), 1);
  t.regex(retention.problem ?? '', /in-the-way/);
  for (let tried = 0; tried < 5; tried += 1) {
    await clock.advance(3_600_000);
    await retention.run().catch(() => {});
    await delay(20);
  }
  t.is(said(), 1, 'the same refusal, five times more');
  rmSync(settings.folder);
  await attempts(() => retention.problem === undefined && archivesIn(settings.folder).length > 0, 3_600_000);
  t.is(retention.problem, undefined);
  await close();
});

test('[C10,C11] unless the configuration says otherwise, 1 GiB and 90 days are kept, and 4 GiB of archives', (t) => {
  const retentionOf = (retention?: unknown) =>
    resolveConfig({ plugins: [], ...(retention !== undefined && { data: { retention } }) } as never, {
      cwd: '/srv',
      env: {},
    }).retention;
  const usual = { keepBytes: 2 ** 30, olderThanMs: 90 * DAY, keepArchiveBytes: 4 * 2 ** 30 };
  t.like(retentionOf(), usual);
  t.like(retentionOf({ keepSize: '200MB' }), { ...usual, keepBytes: 200_000_000 });
  t.like(retentionOf({ keepArchives: '2GiB' }), { ...usual, keepArchiveBytes: 2 * 2 ** 30 });
  t.like(retentionOf({ olderThan: false, keepArchives: false }), {
    keepBytes: 2 ** 30,
    olderThanMs: undefined,
    keepArchiveBytes: undefined,
  });
  t.is(retentionOf(false), undefined);
  for (const wrong of [
    { keepSize: '5' },
    { keepSize: '1KB' },
    { olderThan: '1m' },
    { keepArchives: 'all' },
    true,
  ])
    t.throws(
      () => retentionOf(wrong),
      { code: 'HF_CONFIG_SETTING', message: /retention/ },
      JSON.stringify(wrong),
    );
});
