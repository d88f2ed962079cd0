/** The checks of `router apply`, as processes: how they end, and what may be left of them. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { carryOut } from '../../../../src/plugins/router/commands/change/carry-out.ts';
import { runCheck } from '../../../../src/plugins/router/commands/change/checks.ts';
import { openTarget } from '../../../../src/plugins/router/commands/target.ts';
import { spawnHoldfast } from '../../../support/cli.ts';
import { tempDir } from '../../../support/temp.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { setUpDesk, until } from './setup.ts';

const LAB = '--set=interface.vlan.eth1.40.ipv4=10.77.41.1/24';
const never = () => new AbortController().signal;

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  // A process that ended is there until its parent has asked how.
  return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
}

/** Writes the ids of four processes: of the shell, one in the background, and one of another group with its child. */
function processes(folder: string) {
  const files = ['shell', 'background', 'group', 'inner'].map((name) => join(folder, name));
  const [shell, background, group, inner] = files;
  const command = `trap '' TERM HUP; echo $$ > '${shell}'; sleep 300 & echo $! > '${background}'
    timeout 300 sh -c "echo \\$PPID > '${group}'; echo \\$\\$ > '${inner}'; sleep 300; true"; sleep 300`;
  const pids = () => files.map((file) => Number(readFileSync(file, 'utf8')));
  const begun = () => until(() => files.every((file) => existsSync(file) && readFileSync(file).length > 1));
  return { command, pids, begun };
}

test.serial('[R31] kill -9 of the command leaves nothing of its check behind', async (t) => {
  const { rig, cwd } = await setUpDesk(t);
  const { command, pids, begun } = processes(tempDir(t));
  const argv = ['router', 'apply', LAB, '--check', command, '--data-dir', rig.dataDir];
  const { child, ended } = spawnHoldfast(t, argv, { cwd });
  await begun();
  t.deepEqual(pids().map(isAlive), [true, true, true, true]);
  child.kill('SIGKILL');
  await ended;
  await until(() => !pids().some(isAlive));
  t.pass();
});

test.serial(
  '[R40] a check that is cut off ends with all its groups, though it ignores SIGTERM',
  async (t) => {
    const { command, pids, begun } = processes(tempDir(t));
    const cut = new AbortController();
    const running = runCheck(command, {}, cut.signal, () => {});
    await begun();
    cut.abort();
    t.like(await running, { outcome: 'cut off', exit: 'SIGKILL' });
    await until(() => !pids().some(isAlive));
  },
);

test.serial('[R31] what a passed check left running is ended, and does not hold up the commit', async (t) => {
  const file = join(tempDir(t), 'pid');
  const lines: string[] = [];
  const command = `echo out; echo err >&2; timeout 300 sleep 300 & echo $! > '${file}'; exit 0`;
  const result = await runCheck(command, {}, never(), (line) => lines.push(line));
  t.like(result, { outcome: 'passed', exit: 0 });
  t.deepEqual(lines.toSorted(), ['err', 'out']);
  const pid = Number(readFileSync(file, 'utf8'));
  await until(() => !isAlive(pid));
});

test.serial(
  '[R31] a check says by its exit code or its signal how it ended, and reads no input',
  async (t) => {
    const run = (command: string) => runCheck(command, { NAME: 'value' }, never(), () => {});
    t.like(await run('exit 7'), { outcome: 'failed', exit: 7 });
    t.like(await run('kill -9 $$'), { outcome: 'failed', exit: 'SIGKILL' });
    t.like(await run('test "$NAME" = value && ! read -r line'), { outcome: 'passed' });
  },
);

test.serial(
  '[R31,R40] a check that outlasts the window is ended 5 s before it, and the command reverts',
  async (t) => {
    const clock = new VirtualClock();
    const { rig, standing } = await setUpDesk(t, 120_000, clock);
    const before = await standing();
    const unused = () => Promise.reject(new Error('not needed here'));
    const settings = { token: () => undefined, windowMs: 120_000, raSources: [], readStore: unused };
    const target = openTarget({}, rig, settings);
    const active = await target.active(never());
    const after = structuredClone(active) as any;
    after.interface.vlan['eth1.40'].ipv4 = '10.77.41.1/24';
    const lines: string[] = [];
    const plain = (_format: unknown, text: string) => text;
    const ended = carryOut(
      { target, before: active, after, command: 'router apply', clock },
      { check: ['echo begun; sleep 600'] },
      {
        dataDir: rig.dataDir,
        json: false,
        print: (line) => void lines.push(line),
        note: () => {},
        signal: never(),
        terminal: {
          out: () => {},
          err: () => {},
          interactive: false,
          columns: 80,
          paint: plain,
          paintError: plain,
          progress: () => {},
          closed: never(),
        },
        config: unused,
        registrations: unused,
        declared: unused,
        actors: unused,
        wordsOf: unused,
        stoppedReports: unused,
        exportForms: unused,
        hostLogs: unused,
      },
    );
    await until(() => lines.some((line) => /\| begun/.test(line)));
    await clock.advance(114_999);
    t.false(
      lines.some((line) => /cut off/.test(line)),
      'a millisecond before',
    );
    t.notDeepEqual(await standing(), before);
    await clock.advance(1);
    t.is(await ended, 3, lines.join('\n'));
    t.regex(lines.join('\n'), /check cut off .*sleep 600[\s\S]*Reverted: the router's window is nearly over/);
    t.deepEqual(await standing(), before);
    t.regex((await rig.history())[0].who, /holdfast-cli/, 'the command reverted, not the deadline');
  },
);
