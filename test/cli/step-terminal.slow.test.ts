import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { openBench } from '../support/actors.ts';
import { root } from '../support/cli.ts';
import { door } from '../support/door.ts';
import { onTerminal } from '../support/on-terminal.ts';
import { tempDir } from '../support/temp.ts';

const FIXTURE = join(root, 'test/fixtures/logs/0.2.0/transaction.jsonl.gz');
const SIZE = { columns: 80, rows: 24 };
const ENTERED = '\u001b[?1049h\u001b[?25l';
const LEFT = '\u001b[?25h\u001b[?1049l';

/** The command in a shell that says how it ended and how the terminal is then. */
function stepping(t: ExecutionContext, source = FIXTURE, env: Record<string, string> = {}) {
  const command = `'${process.execPath}' '${join(root, 'bin/holdfast.js')}' replay step '${source}'`;
  const line = `sh -c "echo tty=$(tty).; ${command}; echo ended=\\$?.; stty -a"`;
  return onTerminal(t, line, { cwd: tempDir(t), env: { TERM: 'xterm', NO_COLOR: '1', ...env }, size: SIZE });
}

/** What stands on the screen now, line by line. */
function lastFrame(screen: string): string[] {
  const frame = screen.split('\u001b[H').at(-1) ?? '';
  return frame.replaceAll('\u001b[K', '').replaceAll('\u001b[J', '').split('\r\n');
}

async function endedWell(t: ExecutionContext, terminal: ReturnType<typeof onTerminal>, code = 0) {
  await terminal.see(/ended=\d+\.[\s\S]*-?iexten/);
  await terminal.ended;
  const after = terminal.screen().split('ended=')[1] ?? '';
  t.regex(after, new RegExp(`^${code}\\.`), terminal.screen());
  t.regex(after, /[^-]icanon/);
  t.regex(after, /[^-]echo /);
  t.is(terminal.screen().split(ENTERED).length, 2);
  t.is(terminal.screen().split(LEFT).length, 2);
}

test.serial('[C7] keys walk over the log on a real terminal of 80x24, and q gives it back', async (t) => {
  const terminal = stepping(t);
  await terminal.see(/record 1 of \d+[\s\S]*q quit/);
  const frame = lastFrame(terminal.screen());
  t.is(frame.length, SIZE.rows);
  t.deepEqual(
    frame.filter((line) => line.length >= SIZE.columns),
    [],
  );
  terminal.type('j');
  await terminal.see(/record 2 of/);
  terminal.type('\u001b[B');
  await terminal.see(/record 3 of/);
  terminal.type('\u001b[A');
  await terminal.see(/record 3 of[\s\S]*record 2 of/);
  terminal.type('/maintenance-2\r');
  await terminal.see(/appends maintenance-2[\s\S]*decided {3}[\s\S]*anywhere: full refused/);
  terminal.type('?');
  await terminal.see(/Keys of holdfast replay step/);
  terminal.type('qG');
  await terminal.see(/record (\d+) of \1/);
  terminal.type('q');
  await endedWell(t, terminal);
});

test.serial('Ctrl-C gives the terminal back', async (t) => {
  const terminal = stepping(t);
  await terminal.see(/q quit/);
  terminal.type('\u0003');
  await endedWell(t, terminal);
});

/** The node process below the shells. */
function nodeBelow(pid: number): number {
  const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
  return Number(child);
}

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test.serial(`${signal} gives the terminal back`, async (t) => {
    const terminal = stepping(t);
    await terminal.see(/q quit/);
    process.kill(nodeBelow(await terminal.pid()), signal);
    await endedWell(t, terminal);
  });
}

test.serial('Ctrl-Z gives it back until the viewer goes on', async (t) => {
  const terminal = stepping(t);
  await terminal.see(/q quit/);
  const pid = nodeBelow(await terminal.pid());
  terminal.type('\u001a');
  await terminal.see(new RegExp(RegExp.escape(LEFT)));
  process.kill(pid, 'SIGCONT');
  await terminal.see(/1049l[\s\S]*1049h[\s\S]*q quit/);
  terminal.type('q');
  const [ended] = await terminal.see(/ended=0\.[\s\S]*icanon/);
  t.notRegex(ended, /-icanon/);
});

test.serial('an error on the way gives it back before it is told', async (t) => {
  const dir = tempDir(t);
  const bench = await openBench(dir, [door]);
  for (let n = 0; n < 30; n += 1) bench.actors.deliver('test.door/front', { type: 'KNOCK' });
  await bench.settled();
  await bench.close();
  const db = new DatabaseSync(join(dir, 'log.db'));
  db.exec("UPDATE records SET body = '{}' WHERE seq = 20");
  db.close();
  const terminal = stepping(t, dir);
  await terminal.see(/q quit/);
  terminal.type(':20\r');
  await endedWell(t, terminal, 1);
  t.regex(terminal.screen().split(LEFT)[1] ?? '', /HF_LOG_CORRUPT[\s\S]*Record 20 cannot be trusted/);
});

test.serial('it is drawn anew when the terminal has another size', async (t) => {
  const terminal = stepping(t);
  const [, tty = ''] = await terminal.see(/tty=(\S+)\./);
  await terminal.see(/q quit/);
  execFileSync('stty', ['-F', tty, 'cols', '100', 'rows', '30']);
  await terminal.see(/─{99}/);
  t.is(lastFrame(terminal.screen()).length, 30);
  terminal.type('q');
  await endedWell(t, terminal);
});

test.serial('a dumb terminal gets frames one below the other, and no escape sequence', async (t) => {
  const terminal = stepping(t, FIXTURE, { TERM: 'dumb' });
  await terminal.see(/record 1 of/);
  terminal.type('j');
  await terminal.see(/record 2 of/);
  terminal.type('q');
  await terminal.see(/ended=0\./);
  t.false(terminal.screen().includes('\u001b'));
});

test.serial('colours come where the terminal has them, and only then', async (t) => {
  const terminal = stepping(t, FIXTURE, { NO_COLOR: '', FORCE_COLOR: '1' });
  await terminal.see(/record 1 of/);
  t.true(terminal.screen().includes('\u001b[7m>'));
  terminal.type('q');
  await endedWell(t, terminal);
});
