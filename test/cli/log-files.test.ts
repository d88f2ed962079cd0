import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { openBench } from '../support/actors.ts';
import { call } from '../support/cli.ts';
import { door } from '../support/door.ts';
import { doorsConfig } from '../support/doors-config.ts';
import { tempDir } from '../support/temp.ts';

/** A folder with the records 1 to 12 of two doors, and an export of it. */
async function incident(t: ExecutionContext): Promise<{ dir: string; file: string }> {
  const dir = tempDir(t);
  const bench = await openBench(dir, [door], []);
  for (const by of ['ann', 'stranger']) {
    for (const key of ['front', 'back']) {
      bench.actors.deliver(
        `test.door/${key}`,
        { type: 'OPEN', by },
        { correlation: `story-of-${by}-${key}` },
      );
      bench.actors.deliver(`test.door/${key}`, { type: 'CLOSE' });
    }
  }
  await bench.settled();
  await bench.close();
  const file = join(dir, 'incident.jsonl');
  const { code, err } = await call(['log', 'export', '--data-dir', dir, '--out', file], { cwd: dir });
  t.is(code, 0, err);
  return { dir, file };
}

test('[C6] commands read an exported file where they read a folder, with the same answer', async (t) => {
  const { dir, file } = await incident(t);
  doorsConfig(dir);
  for (const words of [
    ['log', 'list', '--all'],
    ['log', 'show', '3'],
    ['log', 'tail', '--no-follow'],
    ['log', 'verify'],
  ]) {
    const folder = await call([...words, '--data-dir', dir], { cwd: dir });
    t.is(folder.code, 0, folder.err);
    t.is((await call([...words, file], { cwd: dir })).out, folder.out, words.join(' '));
    t.is((await call([...words, '--data-dir', file], { cwd: dir })).out, folder.out, words.join(' '));
  }
  const { code, out } = await call(['replay', 'verify', file], { cwd: dir });
  t.is(code, 0);
  t.regex(out, /^Every decision was repeated with the same result\.\n12 records of 2 actors/);
});

test('[C6] a part, an actor and a story are exported so that they can be replayed', async (t) => {
  const { dir } = await incident(t);
  doorsConfig(dir);
  const cases: readonly [string[], RegExp][] = [
    [['--from', '6', '--to', '8'], /^Exported records 6 to 8 to/],
    [['--actor', 'test.door/back'], /^Exported records \d+ to \d+ of 1 actors to/],
    [['--correlation', 'story-of-stranger-front'], /^Exported records (\d+) to \1 of 1 actors to/],
  ];
  for (const [flags, said] of cases) {
    const out = join(tempDir(t), 'part.jsonl.gz');
    const done = await call(['log', 'export', dir, '--out', out, ...flags], { cwd: dir });
    t.regex(done.out, said, done.err);
    t.is((await call(['replay', 'verify', out], { cwd: dir })).code, 0);
    t.is((await call(['log', 'verify', out], { cwd: dir })).code, 0);
  }
  const none = await call(['log', 'export', dir, '--out', join(dir, 'x'), '--actor', 'nobody'], { cwd: dir });
  t.regex(none.err, /^HF_PORTABLE_EMPTY/);
});

test('[C6] records before a cut are read when the export that holds them is named before the later one', async (t) => {
  const { dir } = await incident(t);
  doorsConfig(dir);
  const [early, late] = [join(dir, 'early.jsonl'), join(dir, 'late.jsonl.gz')];
  const records = JSON.parse((await call(['log', 'list', '--json', '--data-dir', dir], { cwd: dir })).out);
  const led = records.find(({ outcome }: { outcome?: string }) => outcome !== undefined);
  const [cause, seq] = [String(led.cause), String(led.seq)];
  await call(['log', 'export', dir, '--to', cause, '--out', early], { cwd: dir });
  await call(['log', 'export', dir, '--from', String(led.cause + 1), '--out', late], { cwd: dir });

  t.regex((await call(['log', 'show', cause, late], { cwd: dir })).err, /^HF_LOG_RANGE/);
  const alone = await call(['replay', 'explain', seq, late, '--json'], { cwd: dir });
  t.is(JSON.parse(alone.out).length, 1);
  for (const words of [
    ['log', 'show', cause],
    ['log', 'show', seq],
    ['log', 'list', '--all'],
    ['log', 'list', '--json'],
    ['replay', 'explain', seq],
    ['replay', 'at', cause],
    ['replay', 'diff', '1', seq],
  ]) {
    const whole = await call([...words, '--data-dir', dir], { cwd: dir });
    const both = await call([...words, early, late], { cwd: dir });
    t.is(both.out, whole.out, `${words.join(' ')} ${both.err}`);
    t.true(both.out.length > 0);
  }
  t.regex((await call(['log', 'list', late, early], { cwd: dir })).err, /^HF_LOG_GAP/);
});

test('[C6] an export says where it cannot be written, and needs a name', async (t) => {
  const { dir } = await incident(t);
  const nowhere = await call(['log', 'export', dir, '--out', join(dir, 'no/where.jsonl')], { cwd: dir });
  t.regex(nowhere.err, /^HF_PORTABLE_WRITE/);
  t.is((await call(['log', 'export', dir], { cwd: dir })).code, 2);
});

test('[C6] an import makes a folder that verifies, and never writes over a log', async (t) => {
  const { dir, file } = await incident(t);
  const copy = join(tempDir(t), 'copy');
  const done = await call(['log', 'import', file, '--data-dir', copy], { cwd: dir });
  t.regex(done.out, /^Imported records 1 to 12 into .*, chain ok\./, done.err);
  t.is((await call(['log', 'verify', copy], { cwd: dir })).code, 0);
  t.regex((await call(['log', 'import', file, '--data-dir', copy], { cwd: dir })).err, /^HF_LOG_EXISTS/);
});

/** Who edits the database and knows nothing of hashes. */
const tampering: Readonly<Record<string, [sql: string, seq: number]>> = {
  'an edit': [`UPDATE records SET body = replace(body, '"version":1', '"version":2') WHERE seq = 4`, 4],
  'a deletion': ['DELETE FROM records WHERE seq = 5', 5],
  'a swap': [
    'UPDATE records SET seq = -1 WHERE seq = 6; UPDATE records SET seq = 6 WHERE seq = 7; UPDATE records SET seq = 7 WHERE seq = -1',
    6,
  ],
  'a column': [`UPDATE records SET actor = 'test.door/side' WHERE seq = 3`, 3],
  'a tail behind saved states': [
    `INSERT INTO checkpoints VALUES (14, 0, '', ''); DELETE FROM records WHERE seq > 8`,
    9,
  ],
};
for (const [name, [sql, seq]] of Object.entries(tampering)) {
  test(`[C9] log verify finds ${name} and names the first bad record`, async (t) => {
    const { dir } = await incident(t);
    const db = new DatabaseSync(join(dir, 'log.db'));
    db.exec(sql);
    db.close();
    const { code, err } = await call(['log', 'verify', dir], { cwd: dir });
    t.is(code, 1);
    t.regex(err, new RegExp(`^HF_LOG_CORRUPT\\n {2}Record ${seq} `));
  });
}

test('[C9] an anchor kept elsewhere finds a tail that was cut off, and a log that was written anew', async (t) => {
  const { dir, file } = await incident(t);
  const [, head = ''] = /Head: (\S+)/.exec((await call(['log', 'verify', dir], { cwd: dir })).out) ?? [];
  t.is((await call(['log', 'verify', file, '--anchor', head], { cwd: dir })).code, 0);
  const db = new DatabaseSync(join(dir, 'log.db'));
  db.exec('DELETE FROM records WHERE seq = 12; DELETE FROM signatures');
  db.close();
  rmSync(join(dir, 'secrets'), { recursive: true });
  t.is((await call(['log', 'verify', dir], { cwd: dir })).code, 0, 'it is sound in itself');
  const cut = await call(['log', 'verify', dir, '--anchor', head], { cwd: dir });
  t.regex(cut.err, /Record 12 cannot be trusted: it is missing, and the anchor names it/);
  const other = head.replace(/[0-9a-f]$/, (digit) => (digit === '0' ? '1' : '0'));
  t.regex(
    (await call(['log', 'verify', file, '--anchor', other], { cwd: dir })).err,
    /Record 12 .*written anew/,
  );
  t.is((await call(['log', 'verify', file, '--anchor', 'x'], { cwd: dir })).code, 2);
});

test('[C9] a database whose pages are overwritten ends every command with a code', async (t) => {
  const { dir } = await incident(t);
  const name = join(dir, 'log.db');
  const bytes = readFileSync(name);
  writeFileSync(name, bytes.fill(0xa5, 4_096));
  for (const words of [
    ['log', 'verify'],
    ['log', 'list'],
    ['log', 'show', '3'],
    ['log', 'export', '--out', join(dir, 'y')],
  ]) {
    const { code, err } = await call([...words, '--data-dir', dir], { cwd: dir });
    t.not(code, 0);
    t.regex(err, /^HF_LOG_(DAMAGED|MISSING|FORMAT|CORRUPT)/m, words.join(' '));
    t.notRegex(err, /\n +at /);
  }
});
