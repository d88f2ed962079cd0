import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { logFeatures } from '../../src/main.ts';
import { openBench } from '../support/actors.ts';
import { call } from '../support/cli.ts';
import { door } from '../support/door.ts';
import { doorsConfig } from '../support/doors-config.ts';
import { tempDir } from '../support/temp.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

/** Two doors are opened by ann and closed; the lamp's effect fails each time. */
async function folder(t: ExecutionContext): Promise<string> {
  const dir = tempDir(t);
  const lamp = {
    type: 'lamp.on',
    handler: () => {
      throw new Error('the bulb is broken');
    },
    onRecovery: 'retry' as const,
  };
  const bench = await openBench(dir, [door], [lamp], new VirtualClock());
  for (const key of ['front', 'back']) {
    bench.actors.deliver(`test.door/${key}`, { type: 'OPEN', by: 'ann' }, { correlation: 'one-story' });
    await bench.settled();
    bench.actors.deliver(`test.door/${key}`, { type: 'CLOSE' });
    await bench.settled();
  }
  await bench.close();
  doorsConfig(dir);
  return dir;
}

async function listed(dir: string, ...flags: string[]) {
  const { code, out, err } = await call(['log', 'list', ...flags, '--data-dir', dir], { cwd: dir });
  return { code, err, lines: out.split('\n').filter((line) => line !== '' && !line.startsWith('──')) };
}

test('[C7] --grep finds the text that a line prints: words of plugins, states, effects and actors, in any case', async (t) => {
  const dir = await folder(t);
  for (const text of [
    'ANN opens the door',
    'closed→open',
    '⇒ lamp.on',
    '/^test.door/(front|back)  ann opens/',
  ]) {
    const { code, err, lines } = await listed(dir, '--grep', text);
    t.is(code, 0, err);
    t.is(lines.filter((line) => /ann opens the door/.test(line)).length, 2, text);
  }
  t.is(
    (await listed(dir, '--grep', 'closed→open', '--actor', 'back')).lines.filter((line) => /ann/.test(line))
      .length,
    1,
  );
  const { lines, err } = await listed(dir, '--grep', 'by=ann');
  t.deepEqual(lines, [], 'the fields of the event are not printed where a plugin has words');
  t.true(err.includes('none has --grep by=ann'), err);
  t.is((await listed(dir, '--grep', '*')).lines.length, 0, 'a plain text is no pattern');
  t.is((await listed(dir, '--grep', '/ANN/')).lines.length, 0, 'an expression minds the case');
});

test('[C7] --grep works for all lines, and with --json', async (t) => {
  const dir = await folder(t);
  const limited = await listed(dir, '--grep', 'ann opens');
  t.deepEqual((await listed(dir, '--grep', 'ann opens', '--limit', '0')).lines, limited.lines);
  const { out } = await call(['log', 'list', '--grep', 'ann opens', '--json', '--data-dir', dir], {
    cwd: dir,
  });
  t.deepEqual(
    JSON.parse(out).map(({ event }: { event: { type: string } }) => event.type),
    ['OPEN', 'OPEN'],
  );
  t.is(
    (await listed(dir, '--grep', 'ann opens', '--limit', '1')).lines.filter((line) => /ann/.test(line))
      .length,
    1,
  );
});

for (const [name, pattern, reason] of [
  ['nothing', '', '--grep is empty'],
  ['201 characters', 'x'.repeat(201), 'at most 200 characters'],
  ['a back-reference', '/(a)\\1/', 'Cannot be executed in linear time'],
  ['a lookahead', '/(?=a)b/', 'Cannot be executed in linear time'],
  ['broken syntax', '/(/', 'Unterminated group'],
  ['a flag', '/a/i', 'an expression has no flags'],
] as const) {
  test(`[C7] --grep refuses ${name}`, async (t) => {
    const { code, err } = await listed(await folder(t), '--grep', pattern);
    t.is(code, 2);
    t.regex(err, /^HF_CLI_USAGE/);
    t.true(err.includes(reason), err);
  });
}

test('[C7] an expression that backtracks without end elsewhere ends at once', async (t) => {
  const dir = tempDir(t);
  const bench = await openBench(dir, [door], [], new VirtualClock());
  bench.actors.deliver('test.door/front', { type: 'OPEN', by: 'a'.repeat(39) });
  await bench.settled();
  await bench.close();
  const began = process.cpuUsage();
  const { code } = await listed(dir, '--grep', '/(a+)+(a+)+$b/');
  t.is(code, 0);
  t.true(process.cpuUsage(began).user < 5_000_000, 'backtracking would take years');
});

test('[C7] --failed lists what failed or was refused, machines that threw and lost effects included, and nothing else', async (t) => {
  const dir = await folder(t);
  const { lines } = await listed(dir, '--failed');
  t.is(lines.filter((line) => /lamp\.on failed/.test(line)).length, 2, lines.join('\n'));
  t.is(lines.filter((line) => /test\.door/.test(line)).length, 2);
  const none = await listed(dir, '--failed', '--to', '1');
  t.deepEqual(none.lines, []);
  const quiet = tempDir(t);
  const bench = await openBench(quiet, [door], [], new VirtualClock());
  bench.actors.deliver('test.door/front', { type: 'CLOSE' });
  await bench.settled();
  await bench.close();
  t.regex((await listed(quiet, '--failed')).err, /none has --failed;/);
});

test('[C7] --failed lists also what plugins call failed or refused', async (t) => {
  const file = join(import.meta.dirname, '../fixtures/logs/0.2.0/transaction.jsonl.gz');
  const { code, out, err } = await call(['log', 'list', '--failed', file], {
    cwd: tempDir(t),
    logFeatures: logFeatures(),
  });
  t.is(code, 0, err);
  t.deepEqual(
    Array.from(out.matchAll(/^\S+ +(\d+) /gm), ([, seq]) => Number(seq)),
    [31, 76],
    'a save that was refused, and a transaction that nobody committed',
  );
});
