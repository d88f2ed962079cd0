import { execFileSync } from 'node:child_process';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import fc from 'fast-check';
import { recover } from '../../../../src/core/kernel/actors/recover.ts';
import { isCoded } from '../../../../src/core/kernel/errors/holdfast-error.ts';
import { readChained } from '../../../../src/core/kernel/log/chain.ts';
import {
  type ExportPart,
  portableHeader,
  portableLines,
} from '../../../../src/core/kernel/log/portable/export.ts';
import { writePortable } from '../../../../src/core/kernel/log/portable/file.ts';
import { importLog } from '../../../../src/core/kernel/log/portable/import.ts';
import { openReader } from '../../../../src/core/kernel/log/portable/open-reader.ts';
import type { LogRecord } from '../../../../src/core/kernel/log/record.ts';
import { SqliteLog } from '../../../../src/core/kernel/log/sqlite-log.ts';
import { SqliteReader } from '../../../../src/core/kernel/log/sqlite-reader.ts';
import { call } from '../../../support/cli.ts';
import { runs } from '../../../support/runs.ts';
import { tempDir } from '../../../support/temp.ts';

const record = (seq: number, more: Partial<LogRecord> = {}): LogRecord => ({
  seq,
  at: seq,
  actor: `test.door/${seq % 3}`,
  machine: 'door',
  version: 1,
  event: { type: 'KNOCK' },
  to: { value: 'closed' },
  effects: [],
  correlation: `story-${seq % 3}`,
  ...more,
});

async function folder(t: ExecutionContext, records: readonly LogRecord[]): Promise<string> {
  const dir = tempDir(t);
  const log = new SqliteLog({ dataDir: dir });
  for (const one of records) log.append(one, { durability: 'sync' });
  await log.close();
  return dir;
}

const some = (count: number) => Array.from({ length: count }, (_, index) => record(index + 1));

async function exported(dir: string, file: string, part: Partial<ExportPart> = {}): Promise<string> {
  const reader = new SqliteReader(dir);
  try {
    const whole = { from: 1, to: reader.lastSeq(), ...part };
    const header = portableHeader(reader, whole, 0);
    const states = header.range.from > 1 ? recover(reader, header.range.from - 1).states.values() : [];
    await writePortable(file, portableLines(reader, whole, header, states));
    return file;
  } finally {
    reader.close();
  }
}

/** Every record with its hash, the chain checked. */
async function raws(source: string): Promise<unknown[]> {
  const reader = await openReader(source);
  try {
    for (const one of readChained(reader, reader.firstSeq())) void one;
    return [...reader.pages()].flat();
  } finally {
    reader.close();
  }
}

for (const ending of ['jsonl', 'jsonl.gz', 'jsonl.zst']) {
  test(`[C6] an export as ${ending} reads as the folder it was made of, and imports into one`, async (t) => {
    const dir = await folder(t, some(2_500));
    const file = await exported(dir, join(tempDir(t), `incident.${ending}`));
    t.is(statSync(file).mode & 0o777, 0o600);
    const original = await raws(dir);
    t.deepEqual(await raws(file), original);
    const copy = join(tempDir(t), 'new');
    t.is((await importLog(file, copy)).records, 2_500);
    t.deepEqual(await raws(copy), original);
    await t.throwsAsync(importLog(file, copy), { code: 'HF_LOG_EXISTS' });
  });
}

test('[C6] a part of a log brings the states before it, and is chained to what was left out', async (t) => {
  const dir = await folder(t, some(20));
  const part = await exported(dir, join(tempDir(t), 'part.jsonl'), { from: 11 });
  const reader = await openReader(part);
  t.teardown(() => reader.close());
  t.is(reader.firstSeq(), 11);
  const whole = new SqliteReader(dir);
  t.teardown(() => whole.close());
  t.deepEqual(Object.fromEntries(recover(reader, 15).states), Object.fromEntries(recover(whole, 15).states));
  const copy = tempDir(t);
  await importLog(part, copy);
  const log = new SqliteLog({ dataDir: copy });
  log.append(record(21), { durability: 'sync' });
  await log.close();
  t.is((await raws(copy)).length, 11, 'a runtime goes on from it');
});

test('[C6] an export of some actors is checked record by record, and no runtime goes on from it', async (t) => {
  const dir = await folder(t, some(20));
  const actors = new Set(['test.door/1']);
  const file = await exported(dir, join(tempDir(t), 'one.jsonl'), { actors });
  t.is((await raws(file)).length, 7);
  await t.throwsAsync(importLog(file, tempDir(t)), { code: 'HF_PORTABLE_FILTERED' });
  const verified = await call(['log', 'verify', file], { cwd: tempDir(t) });
  t.is(verified.code, 0, verified.err);
  const part = ['log', 'export', file, '--from', '7', '--out', join(tempDir(t), 'part.jsonl')];
  const { code, err } = await call(part, { cwd: tempDir(t) });
  t.is(code, 0, `what a part chains to was in the file: ${err}`);
  const edited = readFileSync(file, 'utf8').replace('KNOCK', 'BREAK');
  writeFileSync(file, edited);
  await t.throwsAsync(raws(file), { code: 'HF_LOG_CORRUPT' });
});

test('[C6,C9] every signature of a log goes with its record into the export', async (t) => {
  const dir = tempDir(t);
  const log = new SqliteLog({ dataDir: dir, signEvery: 1 });
  for (const one of some(5)) {
    log.append(one, { durability: 'sync' });
    await log.whenDurable(one.seq);
  }
  await log.close();
  const signed = (source: Pick<SqliteReader, 'signatures'>) => source.signatures(1, 5).map(({ seq }) => seq);
  const live = new SqliteReader(dir);
  t.teardown(() => live.close());
  t.true(signed(live).includes(5));
  const file = await openReader(await exported(dir, join(dir, 'part.jsonl')));
  t.teardown(() => file.close());
  t.deepEqual(signed(file), signed(live));
});

test('[C6,C9] an export that was cut off, shuffled, edited, or is none, is refused with a code', async (t) => {
  const dir = await folder(t, some(20));
  const file = await exported(dir, join(tempDir(t), 'whole.jsonl'));
  const text = readFileSync(file, 'utf8');
  const lines = text.split('\n');
  const gz = readFileSync(await exported(dir, join(tempDir(t), 'whole.jsonl.gz')));
  const cases: readonly [string, string | Uint8Array, string][] = [
    ['empty', '', 'HF_PORTABLE_FOREIGN'],
    ['another text', 'root:x:0:0\n', 'HF_PORTABLE_FOREIGN'],
    ['a database', 'SQLite format 3\0', 'HF_PORTABLE_FOREIGN'],
    ['a later release', text.replace('"format":1', '"format":9'), 'HF_PORTABLE_FORMAT'],
    ['a header without a range', text.replace('"range"', '"rang"'), 'HF_PORTABLE_DAMAGED'],
    ['cut within a line', text.slice(0, text.length / 2), 'HF_PORTABLE_DAMAGED'],
    ['cut between lines', lines.slice(0, 10).join('\n'), 'HF_PORTABLE_DAMAGED'],
    ['cut within the compressed bytes', gz.subarray(0, gz.length / 2), 'HF_PORTABLE_DAMAGED'],
    ['a record left out', lines.toSpliced(5, 1).join('\n'), 'HF_LOG_CORRUPT'],
    [
      'two records swapped',
      [...lines.slice(0, 5), lines[6], lines[5], ...lines.slice(7)].join('\n'),
      'HF_LOG_CORRUPT',
    ],
    ['a record twice', lines.toSpliced(5, 0, lines[5] ?? '').join('\n'), 'HF_PORTABLE_DAMAGED'],
    ['an edit', text.replace('"KNOCK"', '"BREAK"'), 'HF_LOG_CORRUPT'],
    ['more behind the end', `${text}{"state":{}}\n`, 'HF_PORTABLE_DAMAGED'],
  ];
  for (const [name, content, code] of cases) {
    writeFileSync(file, content);
    const refused = await t.throwsAsync(importLog(file, tempDir(t)), { code }, name);
    if (name === 'a header without a range') t.regex(refused?.message ?? '', /the header's range: Invalid/);
  }
});

test('[C6] a record of 5 MB travels', async (t) => {
  const big = record(2, { event: { type: 'BIG', text: 'ü'.repeat(2_500_000) } });
  const dir = await folder(t, [record(1), big, record(3)]);
  const file = await exported(dir, join(tempDir(t), 'big.jsonl.gz'));
  t.deepEqual(await raws(file), await raws(dir));
});

const jsonValue = fc.jsonValue() as fc.Arbitrary<never>;

test('[C6] whatever an event holds, it is exported and imported byte by byte', async (t) => {
  t.timeout(180_000);
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ key: fc.string(), value: jsonValue }), { minLength: 1, maxLength: 8 }),
      fc.nat(7),
      async (events, skip) => {
        const records = events.map(({ key, value }, index) =>
          record(index + 1, { event: { ...{ [key]: value }, type: 'ANY' } }),
        );
        const dir = await folder(t, records);
        const from = (skip % records.length) + 1;
        const file = await exported(dir, join(tempDir(t), 'any.jsonl'), { from });
        t.deepEqual(await raws(file), (await raws(dir)).slice(from - 1));
      },
    ),
    { numRuns: runs(20) },
  );
});

test('[C6] whatever is done to a file, it is read as it was or refused with a code', async (t) => {
  t.timeout(180_000);
  const dir = await folder(t, some(6));
  const file = await exported(dir, join(tempDir(t), 'fuzz.jsonl'));
  const original = await raws(dir);
  const whole = readFileSync(file);
  await fc.assert(
    fc.asyncProperty(
      fc.nat(whole.length - 1),
      fc.nat(40),
      fc.uint8Array({ maxLength: 12 }),
      async (at, gone, inserted) => {
        writeFileSync(file, Buffer.concat([whole.subarray(0, at), inserted, whole.subarray(at + gone)]));
        try {
          t.deepEqual(await raws(file), original);
        } catch (error) {
          t.true(isCoded(error), String(error));
        }
      },
    ),
    { numRuns: runs(150) },
  );
});

test('[C6,R32] an export never takes the place of a device, a pipe or a folder', async (t) => {
  const dir = tempDir(t);
  const pipe = join(dir, 'pipe');
  execFileSync('mkfifo', [pipe]);
  for (const [path, is] of [
    [pipe, () => statSync(pipe).isFIFO()],
    [dir, () => statSync(dir).isDirectory()],
  ] as const) {
    await t.throwsAsync(writePortable(path, ['x']), { code: 'HF_PORTABLE_WRITE' });
    t.true(is(), path);
  }
  const file = join(dir, 'file');
  writeFileSync(file, 'old');
  await writePortable(file, ['new']);
  t.is(readFileSync(file, 'utf8'), 'new');
});
