import { hash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import test from 'ava';
import { postControl } from '../../../src/core/host/operations/control-client.ts';
import { call, type Finished } from '../../support/cli.ts';
import { read } from '../../support/until.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { fill, rest, somePoints, startMemory } from '../memory-store/rig.ts';

const SNAPSHOTS = '/collections/memory/snapshots';
const DAY = 86_400_000;
const sha256 = (data: string | Buffer) => hash('sha256', data, 'hex');
const source = (path: string) => JSON.stringify(new URL(`../../../src/${path}`, import.meta.url).pathname);

/** A command line beside the running instance, with the plugins and options of that. */
async function holdfast(dataDir: string, words: readonly string[], options = '{}'): Promise<Finished> {
  writeFileSync(
    join(dataDir, 'plugins.config.ts'),
    `import { defineConfig } from ${source('index.ts')};
     import { memory } from ${source('plugins/memory/index.ts')};
     export default defineConfig({ plugins: [memory(${options})] });`,
  );
  return call([...words, '--data-dir', dataDir], { cwd: dataDir });
}

/** Waits until what is read is so. */
const until = <T>(look: () => Promise<T>, isSo: (value: T) => boolean): Promise<T> =>
  read('that', look, isSo, 20);

test('[B1, B4] backup commands work through the running instance, and each snapshot is recorded with what it holds', async (t) => {
  const rig = await startMemory(t);
  const { dataDir } = rig;
  const empty = await holdfast(dataDir, ['backup', 'list']);
  t.is(empty.code, 0, empty.err);
  t.regex(empty.out, /There is no backup of memory yet/);
  const early = await holdfast(dataDir, ['backup', 'snapshot']);
  t.is(early.code, 1);
  t.regex(early.err, /HF_MEMORY_BACKUP[\s\S]*nothing was ever stored/);

  const seeded = await holdfast(dataDir, ['backup', 'seed', '--synthetic']);
  t.regex(seeded.out, /16 seeds are in memory, which holds 16 points/, seeded.err);
  t.regex((await holdfast(dataDir, ['backup', 'seed', '--synthetic'])).out, /holds 16 points/);
  await rest(rig.url, 'PUT', '/collections/memory/points', { points: somePoints(5, 384) });

  const made = await holdfast(dataDir, ['backup', 'snapshot', '--json']);
  t.is(made.code, 0, made.err);
  const record = JSON.parse(made.out);
  t.regex(record.name, /^memory-\d+-\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d\.snapshot$/);
  t.is(record.count, 21);
  t.is(record.seeds.length, 16);
  t.regex(record.seeds[0].fingerprint, /^fp_[0-9a-f]{32}$/);
  t.like(record.content, { written: 0, vectors: '{"distance":"Cosine","size":384}' });
  t.regex(record.content.digest, /^[0-9a-f]{32}$/);
  const folder = join(dataDir, 'memory', 'snapshots', 'memory');
  t.is(record.sha256, sha256(readFileSync(join(folder, record.name))));
  const lists = join(dataDir, 'backups', 'content');
  t.deepEqual(readdirSync(lists), [`${record.content.list}.points`]);
  const points = readFileSync(join(lists, `${record.content.list}.points`), 'utf8');
  t.is(record.content.list, sha256(points));
  t.is(points.trim().split('\n').length, 21);
  t.is(statSync(join(lists, `${record.content.list}.points`)).mode & 0o777, 0o600);
  t.false((made.out + points).includes('memory 1"'), 'what a memory says is in no record');
  const again = JSON.parse((await holdfast(dataDir, ['backup', 'snapshot', '--json'])).out);
  t.is(again.content.digest, record.content.digest, 'the same points have the same digest');
  const list = JSON.parse((await holdfast(dataDir, ['backup', 'list', '--json'])).out);
  t.like(list.backups[1], { kind: 'snapshot', name: record.name, recorded: true, count: 21 });
  const status = await holdfast(dataDir, ['backup', 'status']);
  t.is(status.code, 0, status.out);
  t.true(status.out.includes(again.name));
  t.regex(status.out, /seeds +16/);
});

test('[B4] seeds are existing points unless synthetic ones are asked for, and a record keeps them', async (t) => {
  const rig = await startMemory(t);
  const { dataDir, url } = rig;
  t.regex(
    (await holdfast(dataDir, ['backup', 'seed'])).err,
    /HF_MEMORY_SEEDS[\s\S]*there is no collection memory/,
  );
  await rest(url, 'PUT', '/collections/memory', { vectors: { size: 4, distance: 'Cosine' } });
  t.regex((await holdfast(dataDir, ['backup', 'seed'])).err, /HF_MEMORY_SEEDS[\s\S]*memory has no points/);
  await rest(url, 'PUT', '/collections/memory/points', { points: somePoints(20) });
  const seed = async (...flags: string[]) => {
    const { code, out, err } = await holdfast(dataDir, ['backup', 'seed', '--json', ...flags]);
    return code === 0 ? JSON.parse(out).seeds : err;
  };
  t.deepEqual(
    await seed(),
    Array.from({ length: 16 }, (_, index) => index + 1),
  );
  t.deepEqual(await seed('--ids', '3,20'), [3, 20]);
  t.regex(await seed('--ids', '3,21,22'), /memory has no point 21, 22/);
  for (const flags of [
    ['--ids', '3,x'],
    ['--ids', ''],
    ['--ids', '3', '--synthetic'],
  ]) {
    t.regex(await seed(...flags), /HF_CLI_USAGE/);
  }
  t.is(await rig.stores.live.count('memory'), 20, 'nothing was written');
  const made = JSON.parse((await holdfast(dataDir, ['backup', 'snapshot', '--json'])).out);
  t.deepEqual(
    made.seeds.map(({ id }: { id: number }) => id),
    [3, 20],
  );
  const configured = await startMemory(t, { memory: { url, seeds: { ids: [5] } } });
  const taken = JSON.parse((await holdfast(configured.dataDir, ['backup', 'snapshot', '--json'])).out);
  t.deepEqual(
    taken.seeds.map(({ id }: { id: number }) => id),
    [5],
  );
});

test('[B1] only names of our shape are pruned, and a dry run says which', async (t) => {
  const rig = await startMemory(t, { memory: { snapshots: { keep: 2 }, missed: 'report' } });
  await fill(rig.url, 3);
  const folder = join(rig.dataDir, 'memory', 'snapshots', 'memory');
  await rest(rig.url, 'POST', SNAPSHOTS);
  writeFileSync(join(folder, 'by-hand.snapshot'), 'x');
  writeFileSync(join(folder, 'memory-1-2020-01-01-00-00-00.snapshot'), 'x');
  writeFileSync(join(folder, 'memory-1-2020-01-02-00-00-00.snapshot'), 'x');
  const dry = JSON.parse((await holdfast(rig.dataDir, ['backup', 'prune', '--dry-run', '--json'])).out);
  t.deepEqual(dry, {
    dryRun: true,
    deleted: { snapshot: ['memory-1-2020-01-01-00-00-00.snapshot'], volume: [] },
  });
  t.is(readdirSync(folder).filter((name) => name.endsWith('.snapshot')).length, 4);
  const pruned = await holdfast(rig.dataDir, ['backup', 'prune']);
  t.is(pruned.out.trim(), 'deleted memory-1-2020-01-01-00-00-00.snapshot');
  t.true(existsSync(join(folder, 'by-hand.snapshot')));
  t.is((await holdfast(rig.dataDir, ['backup', 'prune'])).out.trim(), 'Nothing is beyond the retention.');
});

test('[B1,B10] unless configured, the newest 14 snapshots are kept, and copies of the volume for 30 days', async (t) => {
  const rig = await startMemory(t);
  await fill(rig.url, 3);
  const daysAgo = (days: number) => new Date(Date.now() - days * DAY).toISOString().slice(0, 10);
  const folders = [
    join(rig.dataDir, 'memory', 'snapshots', 'memory'),
    join(rig.dataDir, 'backups', 'volume'),
  ] as const;
  for (const folder of folders) mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (let days = 1; days <= 16; days += 1)
    writeFileSync(join(folders[0], `memory-1-${daysAgo(days)}-02-30-00.snapshot`), 'x');
  for (const days of [1, 29, 30]) writeFileSync(join(folders[1], `memory-${daysAgo(days)}-00-00-00.db`), 'x');
  const { out } = await holdfast(rig.dataDir, ['backup', 'prune', '--dry-run', '--json']);
  t.deepEqual(JSON.parse(out).deleted, {
    snapshot: [15, 16].map((days) => `memory-1-${daysAgo(days)}-02-30-00.snapshot`),
    volume: [`memory-${daysAgo(30)}-00-00-00.db`],
  });
});

test('[B10] a snapshot of a store elsewhere is measured by 225 KB unless configured', async (t) => {
  const elsewhere = await startMemory(t);
  await fill(elsewhere.url, 3);
  const rig = await startMemory(t, { memory: { url: elsewhere.url } });
  const made = await holdfast(rig.dataDir, ['backup', 'snapshot']);
  t.is(made.code, 0, made.err);
  const { log } = rig.runtime.services;
  const texts: string[] = [];
  for await (const { effects } of log.read({})) texts.push(JSON.stringify(effects));
  t.regex(texts.join(), /memory\.backup_size[^}]*[^\d]225000[^\d]/);
});

test('[B1, B10] the schedules make snapshots and volume copies in UTC, and keep what they should', async (t) => {
  const clock = new VirtualClock();
  const rig = await startMemory(t, {
    clock,
    memory: { snapshots: { keep: 1 }, volumeCopies: { keepDays: 1 } },
  });
  await fill(rig.url, 3);
  const copies = join(rig.dataDir, 'backups', 'volume');
  const snapshots = async () =>
    (await rest(rig.url, 'GET', SNAPSHOTS)).body.result.map((one: any) => one.name);
  const volume = async () =>
    existsSync(copies) ? readdirSync(copies).filter((name) => name.endsWith('.db')) : [];
  const rested = (names: string[]) => async () => {
    const { body } = await postControl(rig.dataDir, '/memory/backup/status', {}, AbortSignal.timeout(60_000));
    const { snapshot, volume: copy } = body as Record<string, any>;
    return names.every((name) =>
      [snapshot, copy].some((kind) => kind.lastGood?.name.includes(name) && kind.state === 'done'),
    );
  };
  const start = clock.now();
  /** To the very moment: what runs then has deadlines on this clock. */
  const goTo = (day: number, hours: number) =>
    clock.advance(start + (day - 1) * DAY + hours * 3_600_000 - clock.now());
  await clock.advance(30_000);
  await until(rested(['2026-01-01-00-00-30.snapshot', '2026-01-01-00-00-30.db']), (is) => is);
  for (let day = 1; day <= 2; day += 1) {
    const date = `2026-01-0${day}`;
    await goTo(day, 2.5);
    await until(rested([`${date}-02-30-00`]), (is) => is);
    await goTo(day, 4);
    await until(rested([`${date}-02-30-00`, `${date}-04-00-00`]), (is) => is);
  }
  t.deepEqual((await snapshots()).map((name: string) => name.slice(-28, -9)).toSorted(), [
    '2026-01-02-02-30-00',
  ]);
  t.is((await volume()).length, 2);
  const copy = new DatabaseSync(join(copies, 'memory-2026-01-02-04-00-00.db'), { readOnly: true });
  t.is(copy.prepare('SELECT count(*) AS n FROM points_1').get()?.n, 3);
  copy.close();
});

test('[B8] a backup that was missed while nothing ran is made up for after the start', async (t) => {
  const clock = new VirtualClock();
  const first = await startMemory(t, { clock });
  await fill(first.url, 3);
  await first.runtime.stop('test');
  const later = new VirtualClock(clock.now() + 3 * DAY);
  const second = await startMemory(t, { clock: later, dataDir: first.dataDir });
  // To the first check, and no further: the backup that it requests has its deadlines on this clock.
  await later.advance(30_000);
  const names = async () => (await rest(second.url, 'GET', SNAPSHOTS)).body.result;
  t.is((await until(names, (found: any[]) => found.length > 0)).length, 1);
  await until(
    async () => readdirSync(join(first.dataDir, 'backups', 'volume')).filter((name) => name.endsWith('.db')),
    (found) => found.length === 1,
  );
});
