import type { ExecutionContext } from 'ava';
import test from 'ava';
import { openBench } from '../support/actors.ts';
import { call } from '../support/cli.ts';
import { door } from '../support/door.ts';
import { tempDir } from '../support/temp.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

/** A log of 2026-01-01, which ended long before any clock that a test runs under. */
async function folder(t: ExecutionContext): Promise<string> {
  const dir = tempDir(t);
  const bench = await openBench(dir, [door], [], new VirtualClock());
  bench.actors.deliver('test.door/front', { type: 'KNOCK' });
  await bench.settled();
  await bench.clock.advance(3_600_000);
  bench.actors.deliver('test.door/back', { type: 'CLOSE' });
  await bench.settled();
  await bench.close();
  return dir;
}

const list = (dir: string, ...argv: string[]) => call(['log', 'list', dir, '--all', ...argv], { cwd: dir });

for (const [flags, reason] of [
  [['--actor', 'window'], 'none has --actor window'],
  [['--type', 'RING', '--actor', 'door'], 'none has --type RING'],
  [['--type', 'close', '--actor', '*/front'], 'each filter alone matches some records'],
  [['--from', '2027-01-01'], 'there is none between --from and --to'],
] as const) {
  test(`when no record fits ${flags.join(' ')} it is said why`, async (t) => {
    const { code, out, err } = await list(await folder(t), ...flags);
    t.is(code, 0);
    t.is(out, '');
    t.true(err.includes(reason), err);
  });
}

test('--actor takes a key, and --type any case', async (t) => {
  const dir = await folder(t);
  t.regex((await list(dir, '--actor', 'back')).out, /test\.door\/back {2}CLOSE/);
  t.regex((await list(dir, '--type', 'kno*')).out, /test\.door\/front {2}KNOCK/);
});

test('an empty filter, as of a variable that is not set, does not mean everything', async (t) => {
  const { code, out, err } = await list(await folder(t), '--correlation', '');
  t.deepEqual([code, out], [2, '']);
  t.regex(err, /^HF_CLI_USAGE\n {2}--correlation is empty\./);
});

test('--from behind --to is a slip, told by both', async (t) => {
  const dir = await folder(t);
  for (const [from, to] of [
    ['5', '2'],
    ['2026-01-02', '2026-01-01'],
  ] as const) {
    const { code, err } = await list(dir, '--from', from, '--to', to);
    t.is(code, 2);
    t.regex(err, new RegExp(`^HF_CLI_USAGE\\n {2}--from ${from} is later than --to ${to}\\.`));
  }
});

test('[C7] in a log that ended days ago, 00:30 is on the day of its end, and 15m before it', async (t) => {
  const dir = await folder(t);
  for (const place of ['00:30', '15m']) {
    const { out } = await list(dir, '--from', place);
    t.regex(out, /test\.door\/back {2}CLOSE/);
    t.notRegex(out, /KNOCK/);
    t.regex((await call(['replay', 'at', place, dir], { cwd: dir })).out, /^After record [123], 2026-01-01/);
  }
});

test('help of a group of commands has an example, and that of a place says how it is written', async (t) => {
  const cwd = tempDir(t);
  for (const group of ['log', 'replay']) {
    t.regex(
      (await call([group, '--help'], { cwd })).out,
      new RegExp(`Example:\\n {2}\\$ holdfast ${group} `),
    );
  }
  for (const words of [
    ['log', 'list'],
    ['log', 'export'],
    ['replay', 'at'],
    ['replay', 'step'],
  ]) {
    const { out } = await call([...words, '--help'], { cwd });
    t.regex(out.replace(/\s+/g, ' '), /2026-01-31T03:05, 03:05 \(the last time it was\) or 15m \(ago\); UTC/);
  }
});

test('log tail --json is a JSON document a line', async (t) => {
  const dir = await folder(t);
  const { out } = await call(['log', 'tail', dir, '--json', '--no-follow'], { cwd: dir });
  t.deepEqual(
    out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).seq),
    [1, 2, 3, 4, 5].slice(0, out.trim().split('\n').length),
  );
});
