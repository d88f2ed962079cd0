import { randomInt } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { SIGNAL_TABLES } from '../../../src/core/contracts/columnar-tables.ts';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import type { ColumnarBackup } from '../../../src/machines/columnar/backups.ts';
import { ColumnarBackups } from '../../../src/plugins/columnar/backups/backups.ts';
import { Database } from '../../../src/plugins/columnar/database.ts';
import { EmbeddedEngine } from '../../../src/plugins/columnar/engine/embedded.ts';
import { EMBEDDED_DATABASE } from '../../../src/plugins/columnar/engine/grants.ts';

const { signal } = new AbortController();
let folder = '';
let engine: EmbeddedEngine;
let database: Database;
let backups: ColumnarBackups;
let at = Date.parse('2026-01-01T03:30:00Z');

test.before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-columnar-backup-'));
  engine = await EmbeddedEngine.open(join(folder, 'columnar'), join(folder, "it's a copy"));
  const schema = { database: EMBEDDED_DATABASE, retentionDays: 3_650, replicas: 1, isDurable: true };
  database = new Database({ engine, clock: systemClock, schema });
  for (const table of SIGNAL_TABLES) await database.schema(table);
  backups = new ColumnarBackups(engine, join(folder, "it's a copy"));
});
test.after.always(async () => {
  await engine.close();
  await rm(folder, { recursive: true, force: true });
});

const now = () => new Date().toISOString();
const write = (body: string, count = 1) =>
  database.insert(
    'otel_logs',
    Array.from({ length: count }, (_, index) => ({
      Timestamp: now(),
      Body: `${body} ${index}`,
      LogAttributes: { index: String(index) },
    })),
  );
const make = () => {
  at += 60_000;
  return backups.make(at, signal);
};
const file = ({ name }: ColumnarBackup) => join(backups.folder, name);
const drill = (backup: ColumnarBackup) => backups.drill(backup, at, signal);

test.serial(
  '[O7] a backup of the embedded database is restored elsewhere, and every table is proven to be the same',
  async (t) => {
    await write('first', 300);
    await write('second', 200);
    await database.insert('otel_traces', [
      {
        Timestamp: now(),
        ServiceName: 's',
        SpanAttributes: { a: 'b' },
        'Events.Timestamp': [now()],
        'Events.Name': ['e'],
        'Events.Attributes': [{ x: 'y' }],
      },
    ]);
    const backup = await make();
    t.is(backup.tables.length, SIGNAL_TABLES.length);
    t.like(
      backup.tables.find(({ table }) => table === 'otel_logs'),
      { rows: '500' },
    );
    t.like(
      backup.tables.find(({ table }) => table === 'otel_metrics_sum'),
      { rows: '0' },
    );
    t.regex(backup.sha256, /^[0-9a-f]{64}$/);
    t.is(readFileSync(file(backup)).length, backup.size);
    t.deepEqual(await drill(backup), { at, name: backup.name, proven: true, reasons: [] });
    t.deepEqual(readdirSync(backups.folder), [backup.name], 'no scratch folder is left');
    await write('later');
    t.true((await drill(backup)).proven, 'what came later is not part of it');
    // Merges go on.
    await engine.command('OPTIMIZE TABLE otel_logs FINAL', { seconds: 20, signal });
    const [{ parts } = { parts: 0 }] = await database.query<{ parts: number }>(
      "SELECT toUInt32(count()) AS parts FROM system.parts WHERE active AND table = 'otel_logs'",
    );
    t.is(parts, 1);
  },
);

test.serial('[O7] rows that arrive while it is made are in it or not, and it is proven', async (t) => {
  let isOver = false;
  const writing = (async () => {
    for (let batch = 0; !isOver; batch += 1) await write(`during ${batch}`, 20);
  })();
  const backup = await make();
  isOver = true;
  await writing;
  t.deepEqual((await drill(backup)).reasons, []);
});

test.serial('[O7] a backup with any byte flipped, cut short or gone is not proven', async (t) => {
  const backup = await make();
  const whole = readFileSync(file(backup));
  for (let flips = 0; flips < 8; flips += 1) {
    const place = randomInt(whole.length);
    const broken = Buffer.from(whole);
    broken[place] = (broken[place] ?? 0) ^ (1 << randomInt(8));
    writeFileSync(file(backup), broken);
    const { proven, reasons } = await drill(backup);
    t.false(proven, `byte ${place}`);
    t.regex(reasons.join(), /not the one that was written/);
  }
  writeFileSync(file(backup), whole);
  t.true((await drill(backup)).proven);
  truncateSync(file(backup), whole.length - 700);
  t.regex((await drill(backup)).reasons.join(), /bytes, and \d+ were recorded/);
  await rm(file(backup));
  t.deepEqual((await drill(backup)).reasons, ['its file is gone']);
});

test.serial('[O7] a file that is whole and holds other rows than were recorded is not proven', async (t) => {
  const before = await make();
  const logs = before.tables.find(({ table }) => table === 'otel_logs');
  const recorded = (file: ColumnarBackup, tables: ColumnarBackup['tables']): ColumnarBackup => ({
    ...file,
    tables,
  });
  await write('one more');
  const more = recorded(await make(), before.tables);
  t.deepEqual((await drill(more)).reasons, [
    `otel_logs has ${Number(logs?.rows) + 1} rows, and ${logs?.rows} were backed up`,
  ]);
  await engine.command('TRUNCATE TABLE otel_traces', { seconds: 20, signal });
  await database.insert('otel_traces', [{ Timestamp: now(), ServiceName: 'another' }]);
  const other = recorded(await make(), more.tables);
  t.true((await drill(other)).reasons.includes('the rows of otel_traces have another content'));
  const [, ...fewer] = other.tables;
  const extra = { table: 'gone', rows: '1', sum: '1', xor: '1' };
  const { reasons } = await drill({ ...other, tables: [...fewer, extra] });
  t.true(reasons.includes('the table gone is missing'));
  t.true(reasons.includes(`the table ${other.tables[0]?.table} was not backed up`));
});

test.serial(
  '[O7] what a killed run has left is tidied away, and only files of ours are deleted',
  async (t) => {
    const partial = join(backups.folder, 'partial-columnar-2026-01-01-00-00-00.tar');
    const foreign = join(backups.folder, 'notes.tar');
    writeFileSync(partial, 'x');
    writeFileSync(foreign, 'x');
    const backup = await make();
    t.false(existsSync(partial));
    t.true((await backups.list()).includes(backup.name));
    t.false((await backups.list()).includes('notes.tar'));
    await backups.delete('notes.tar');
    await backups.delete('../columnar/status');
    t.true(existsSync(foreign));
    await backups.delete(backup.name);
    t.false(existsSync(file(backup)));
    const given = AbortSignal.abort(new Error('given up'));
    await t.throwsAsync(backups.make(at + 1_000, given), { code: 'HF_COLUMNAR_BACKUP' });
    await t.notThrowsAsync(make(), 'the next one is made');
  },
);
