import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import fc from 'fast-check';
import { momentSteps, recover } from '../../../../src/core/kernel/actors/recover.ts';
import { isCoded } from '../../../../src/core/kernel/errors/holdfast-error.ts';
import { readChained } from '../../../../src/core/kernel/log/chain.ts';
import type { HistoryReader, ReadRange } from '../../../../src/core/kernel/log/event-log.ts';
import { portableHeader, portableLines } from '../../../../src/core/kernel/log/portable/export.ts';
import { writePortable } from '../../../../src/core/kernel/log/portable/file.ts';
import { MemoryReader } from '../../../../src/core/kernel/log/portable/memory-reader.ts';
import { openReader } from '../../../../src/core/kernel/log/portable/open-reader.ts';
import type { LogRecord } from '../../../../src/core/kernel/log/record.ts';
import { SqliteLog } from '../../../../src/core/kernel/log/sqlite-log.ts';
import { SqliteReader } from '../../../../src/core/kernel/log/sqlite-reader.ts';
import { runs } from '../../../support/runs.ts';
import { tempDir } from '../../../support/temp.ts';

const digest = async (text: string) => createHash('sha256').update(text).digest('hex');

const record = fc.record({
  actor: fc.constantFrom('test.door/a', 'test.door/b', 'test.lamp/hall'),
  correlation: fc.constantFrom('story-1', 'story-2', 'story-3'),
  from: fc.constantFrom(undefined, 'open', 'closed', { lock: 'shut', light: 'on' }),
  value: fc.constantFrom('open', 'closed', { lock: 'shut', light: 'on' }),
  revision: fc.option(fc.nat(4), { nil: undefined }),
});
type Drawn = typeof record extends fc.Arbitrary<infer T> ? T : never;

const recordOf = ({ actor, correlation, from, value, revision }: Drawn, index: number): LogRecord => ({
  seq: index + 1,
  at: 1_000 + index,
  actor,
  machine: 'door',
  version: 1,
  event: { type: 'KNOCK', text: '</script><!-- "\u2028' },
  ...(from !== undefined && { from }),
  to: { value, ...(revision !== undefined && { context: { revision } }) },
  effects: [],
  correlation,
});

/** The lines of an export of some records, and the same as a file that is read by SQLite. */
async function exported(
  t: ExecutionContext,
  drawn: readonly Drawn[],
  from: number,
  actors: ReadonlySet<string> | undefined,
): Promise<{ lines: string[]; sqlite: SqliteReader } | undefined> {
  const dir = tempDir(t);
  const log = new SqliteLog({ dataDir: dir });
  for (const [index, one] of drawn.entries()) log.append(recordOf(one, index), { durability: 'batched' });
  await log.close();
  const reader = new SqliteReader(dir);
  try {
    const part = { from, to: drawn.length, ...(actors && { actors }) };
    if (actors && !drawn.slice(from - 1).some(({ actor }) => actors.has(actor))) return undefined;
    const header = portableHeader(reader, part, 0);
    const first = header.range.from;
    const states = first > 1 ? [...recover(reader, first - 1).states.values()] : [];
    const lines = [...portableLines(reader, part, header, states)];
    const file = join(tempDir(t), 'incident.jsonl');
    await writePortable(file, lines);
    return { lines: lines.map((line) => line.trimEnd()), sqlite: await openReader(file) };
  } finally {
    reader.close();
  }
}

function last<T>(steps: Generator<unknown, T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

const attempt = (work: () => unknown): unknown => {
  try {
    return work();
  } catch (error) {
    return isCoded(error) ? { code: error.code, details: error.details } : error;
  }
};

/** Everything that questions ask of a log. */
async function answersOf(reader: HistoryReader, most: number): Promise<unknown> {
  const seqs = Array.from({ length: most + 3 }, (_, seq) => seq);
  const ranges: ReadRange[] = [
    {},
    { reverse: true },
    { from: 2, to: most - 1 },
    { actor: 'test.door/a' },
    { actor: 'test.door/a', reverse: true, to: most - 2 },
    { correlation: 'story-1', from: 2 },
    { correlation: 'story-2', actor: 'test.lamp/hall', reverse: true },
    { actor: 'test.nobody/x' },
    { from: 3, to: 2 },
  ];
  const read: LogRecord[][] = [];
  for (const range of [{ limit: 2 }, { limit: 0 }, { from: 2, limit: 3, reverse: true }])
    read.push(await Array.fromAsync(reader.read(range)));
  return {
    ...{ first: reader.firstSeq(), last: reader.lastSeq(), partial: reader.partial, read },
    pages: ranges.map((range) => [...reader.pages(range)].flat()),
    firstOfLimited: [...reader.pages({ limit: 2, reverse: true })][0],
    chained: attempt(() => [...readChained(reader, reader.firstSeq())]),
    saved: [...seqs, undefined].map((seq) => reader.snapshotSeq(seq)),
    each: seqs.map((seq) => ({
      record: attempt(() => reader.record(seq)),
      hash: [reader.hashOf(seq), reader.hashBefore(seq)],
      missing: [reader.isMissing(seq, seq), reader.isMissing(seq + 1, seq)],
      entered: last(reader.stateEntered('test.door/a', seq)),
      set: [0, 1].map((value) => last(reader.contextSet('test.door/b', seq, 'revision', value))),
      states: reader.snapshots(reader.snapshotSeq(seq)).toSorted(),
      state: reader.snapshotOf('test.door/a', seq),
      moment: attempt(() => last(momentSteps(reader, seq))),
    })),
  };
}

test('[C6] an exported log in memory answers every question as the file that SQLite reads', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(record, { minLength: 1, maxLength: 14 }),
      fc.nat(13),
      fc.option(fc.subarray(['test.door/a', 'test.door/b', 'test.lamp/hall'], { minLength: 1 }), {
        nil: undefined,
      }),
      async (drawn, skipped, actors) => {
        const from = Math.min(skipped + 1, drawn.length);
        const made = await exported(t, drawn, from, actors && new Set(actors));
        if (!made) return;
        const { lines, sqlite } = made;
        try {
          const memory = new MemoryReader(lines, 'incident.jsonl');
          t.is(await memory.verify(digest), undefined);
          t.deepEqual(await answersOf(memory, drawn.length), await answersOf(sqlite, drawn.length));
        } finally {
          sqlite.close();
        }
      },
    ),
    { numRuns: runs(25) },
  );
});

const DOOR: Drawn = {
  actor: 'test.door/a',
  correlation: 'story-1',
  from: undefined,
  value: 'open',
  revision: 1,
};

test('[C6] a log in memory finds the first record that is not what was written, and folds no state over it', async (t) => {
  const made = await exported(t, [DOOR, DOOR, DOOR, DOOR], 1, undefined);
  made?.sqlite.close();
  const lines = (made?.lines ?? []).map((line) =>
    line.includes('"seq":3,') ? line.replace('"open"', '"shut"') : line,
  );
  const memory = new MemoryReader(lines, 'incident.html');
  t.is(await memory.verify(digest), 3);
  const error = t.throws(() => last(momentSteps(memory, 4)));
  t.true(isCoded(error, 'HF_LOG_CORRUPT'));
  t.is(last(momentSteps(memory, 2)).actors[0]?.value, 'open');
  const known = new MemoryReader(lines, 'incident.html');
  t.is(await known.verify(digest, new Set([3])), undefined, 'its text was changed on purpose');
});

test('[C6] a log in memory refuses lines that are cut off or in another order', async (t) => {
  const made = await exported(t, [DOOR, DOOR, DOOR], 1, undefined);
  made?.sqlite.close();
  const lines = made?.lines ?? [];
  const refused = (given: readonly string[], code: `HF_${string}`) => {
    const error = t.throws(() => new MemoryReader(given, 'incident.html'));
    t.true(isCoded(error, code), String(error));
  };
  refused([], 'HF_PORTABLE_FOREIGN');
  refused(lines.slice(0, -1), 'HF_PORTABLE_DAMAGED');
  refused(lines.toSpliced(2, 1), 'HF_LOG_CORRUPT');
  refused([lines[0] ?? '', ...lines.slice(1, 4).reverse(), lines.at(-1) ?? ''], 'HF_LOG_CORRUPT');
  refused([...lines, lines[1] ?? ''], 'HF_PORTABLE_DAMAGED');
});
