import { cpSync, existsSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import fc from 'fast-check';
import { recover } from '../../../../src/core/kernel/actors/recover.ts';
import { isCoded } from '../../../../src/core/kernel/errors/holdfast-error.ts';
import { readChained } from '../../../../src/core/kernel/log/chain.ts';
import { SqliteLog } from '../../../../src/core/kernel/log/sqlite-log.ts';
import { SqliteReader } from '../../../../src/core/kernel/log/sqlite-reader.ts';
import { call } from '../../../support/cli.ts';
import { startChild } from '../../../support/disk.ts';
import { tempDir } from '../../../support/temp.ts';

const script = new URL('../../../support/log-child.ts', import.meta.url);

/** What a folder tells: every record with its hash, and every actor. */
function told(dir: string): { records: string[]; states: string } {
  const reader = new SqliteReader(dir);
  try {
    for (const _ of readChained(reader, 1));
    const records = [...reader.pages()].flat().map(({ seq, hash, body }) => `${seq} ${hash} ${body}`);
    const states = [...recover(reader).states.values()].toSorted((a, b) => (a.ref < b.ref ? -1 : 1));
    return { records, states: JSON.stringify(states) };
  } finally {
    reader.close();
  }
}

/** A folder as kill -9 leaves it: part of its records in the database, part in the write-ahead log. */
async function killed(t: ExecutionContext): Promise<string> {
  const dir = tempDir(t);
  const earlier = new SqliteLog({ dataDir: dir });
  await earlier.close();
  for (const count of [60, 40]) {
    const child = startChild(t, script, [dir]);
    await child.line(/^ready/);
    for (let knock = 0; knock < count; knock += 1) child.say(`open ann-${count}-${knock % 9}`);
    child.say('settle');
    await child.line(/^settled/);
    await child.kill('SIGKILL');
    // The first time whoever opens it next moves what is in the write-ahead log into the database.
    if (count === 60) await new SqliteLog({ dataDir: dir }).close();
  }
  return dir;
}

const damage = fc.record({
  file: fc.constantFrom('log.db', 'log.db-wal'),
  kind: fc.constantFrom('cut' as const, 'flip' as const),
  /** Where, as a part of the file's length. */
  at: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
  bits: fc.array(fc.nat({ max: 0xffff_ffff }), { minLength: 1, maxLength: 6 }),
});

test('[C5,C9] a database that was cut or whose bits flipped gives every acknowledged record or a code, never a wrong answer', async (t) => {
  t.timeout(240_000);
  const whole = await killed(t);
  const copies = tempDir(t);
  const pristine = join(copies, 'pristine');
  cpSync(whole, pristine, { recursive: true });
  t.true(statSync(join(pristine, 'log.db-wal')).size > 10_000);
  const before = told(join(whole));
  t.true(before.records.length > 100, `${before.records.length} records`);
  let copy = 0;
  const outcomes = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(damage, async ({ file, kind, at, bits }) => {
      copy += 1;
      const dir = join(copies, String(copy));
      cpSync(pristine, dir, { recursive: true });
      const name = join(dir, file);
      const bytes = readFileSync(name);
      if (kind === 'cut') truncateSync(name, Math.floor(at * bytes.length));
      else {
        for (const bit of bits) {
          const place = bit % (bytes.length * 8);
          bytes[place >> 3] = (bytes[place >> 3] ?? 0) ^ (1 << (place & 7));
        }
        writeFileSync(name, bytes);
      }
      let outcome = 'whole';
      try {
        await new SqliteLog({ dataDir: dir }).close();
        t.deepEqual(told(dir), before);
      } catch (error) {
        if (!isCoded(error)) throw error;
        outcome = error.code;
        const { code, err } = await call(['log', 'verify', dir], { cwd: copies });
        t.is(code, 1, `a start says ${outcome}, and log verify nothing`);
        t.regex(err, /^HF_/);
        t.notRegex(err, /\n +at /);
      }
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      rmSync(dir, { recursive: true });
    }),
    { numRuns: 80 },
  );
  t.log([...outcomes].map(([outcome, times]) => `${times} × ${outcome}`).join(', '));
  t.true(existsSync(whole));
});
