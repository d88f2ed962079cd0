import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { onTerminal, setUpDesk, until } from './setup.ts';

const LAB = '--set=interface.vlan.eth1.40.ipv4=10.77.41.1/24';
const CTRL_C = '\u0003';
const SECRET = /EXAMPLEx(PRIVATE|PRESHARED)|example-not-a-secret/;

/** The folders that edits have left where they are made. */
const folders = (pid: number) =>
  ['/dev/shm', tmpdir()].flatMap((base) => {
    try {
      return readdirSync(base).filter((name) => name.startsWith(`holdfast-edit-${pid}-`));
    } catch {
      return [];
    }
  });

/** A command in its window: appended, and its check running. */
async function inWindow(t: ExecutionContext, windowMs?: number) {
  const desk = await setUpDesk(t, windowMs);
  const before = await desk.standing();
  const argv = ['router', 'apply', LAB, '--check', 'echo begun; sleep 60'];
  const terminal = onTerminal(t, desk.line(argv), desk);
  await terminal.see(/\| begun/);
  t.notDeepEqual(await desk.standing(), before);
  return { ...desk, before, terminal };
}

test.serial(
  '[R31] on a terminal apply counts down and asks inside the window; a yes keeps the change',
  async (t) => {
    const desk = await setUpDesk(t);
    const terminal = onTerminal(t, desk.line(['router', 'apply', LAB]), desk);
    await terminal.see(/keep this change\? \[y\/N\]/);
    const [, first] = await terminal.see(/(\d+) s left/);
    await terminal.see(new RegExp(`${Number(first) - 1} s left`));
    t.is(desk.rig.actor().context.pending.who.includes('holdfast-cli'), true);
    terminal.type('y\n');
    t.is(await terminal.ended, 0, terminal.screen());
    t.is((await desk.rig.active()).interface.vlan['eth1.40'].ipv4, '10.77.41.1/24');
    t.is(desk.rig.actor().context.pending, undefined);
  },
);

test.serial('[R31] any other answer than yes reverts', async (t) => {
  const desk = await setUpDesk(t);
  const before = await desk.standing();
  const terminal = onTerminal(t, desk.line(['router', 'apply', LAB]), desk);
  await terminal.see(/keep this change/);
  terminal.type('\n');
  t.is(await terminal.ended, 3, terminal.screen());
  t.regex(terminal.screen(), /Reverted: it was not confirmed/);
  t.deepEqual(await desk.standing(), before);
});

test.serial('[R31] no answer reverts before the window ends', async (t) => {
  const desk = await setUpDesk(t, 6_000);
  const before = await desk.standing();
  const terminal = onTerminal(t, desk.line(['router', 'apply', LAB]), desk);
  t.is(await terminal.ended, 3, terminal.screen());
  t.regex(terminal.screen(), /Reverted: the router's window is nearly over/);
  t.deepEqual(await desk.standing(), before);
});

test.serial('[R31] Ctrl-C inside the window reverts at once', async (t) => {
  const { terminal, before, standing, rig } = await inWindow(t);
  terminal.type(CTRL_C);
  t.is(await terminal.ended, 3, terminal.screen());
  t.regex(terminal.screen(), /Reverted: interrupted \(SIGINT\)/);
  t.deepEqual(await standing(), before);
  t.regex((await rig.history())[0].who, /holdfast-cli/);
});

for (const signal of ['SIGTERM', 'SIGHUP'] as const) {
  test.serial(`[R31] ${signal} inside the window reverts at once`, async (t) => {
    const { terminal, before, standing } = await inWindow(t);
    process.kill(await terminal.pid(), signal);
    t.is(await terminal.ended, 3, terminal.screen());
    t.deepEqual(await standing(), before);
  });
}

test.serial(
  '[R31] when the terminal dies the change is reverted, without waiting for the deadline',
  async (t) => {
    const { terminal, before, standing, rig } = await inWindow(t);
    terminal.script.kill('SIGKILL');
    await until(() => rig.actor().context.pending === undefined);
    await rig.settled();
    t.deepEqual(await standing(), before);
    t.regex((await rig.history())[0].who, /holdfast-cli/);
  },
);

test.serial('[R31] after kill -9 of the command the router reverts by itself at its deadline', async (t) => {
  const { terminal, before, standing, rig } = await inWindow(t, 12_000);
  process.kill(await terminal.pid(), 'SIGKILL');
  await terminal.ended;
  t.not(rig.actor().context.pending, undefined, 'nobody but the router is left to revert');
  await until(async () => (await rig.history())[0].op === 'revert');
  t.deepEqual(await standing(), before);
  t.notRegex((await rig.history())[0].who, /holdfast-cli.*revert/);
});

/** An editor that shows what it got, and then does what it is told. */
function editorThat(cwd: string, script: string): Record<string, string> {
  const file = join(cwd, 'editor.sh');
  writeFileSync(
    file,
    `#!/bin/sh\ncp "$1" '${join(cwd, 'seen.json')}'\nstat -c '%a %a' "$1" > '${join(cwd, 'mode')}'\necho editing; ${script}\n`,
    { mode: 0o700 },
  );
  return { EDITOR: file };
}

test.serial(
  '[R31,R35] --edit hands out a copy with placeholders, applies what was written, and leaves nothing',
  async (t) => {
    const desk = await setUpDesk(t);
    const { privateKey } = (await desk.rig.active()).interface.wireguard.wg0;
    const env = editorThat(desk.cwd, `sed -i 's|10.77.40.1/24|10.77.41.1/24|' "$1"`);
    const terminal = onTerminal(t, desk.line(['router', 'apply', '--edit', '--yes']), { ...desk, env });
    t.is(await terminal.ended, 0, terminal.screen());
    t.notRegex(readFileSync(join(desk.cwd, 'seen.json'), 'utf8'), SECRET);
    t.is(readFileSync(join(desk.cwd, 'mode'), 'utf8'), '600 600\n');
    const now = await desk.rig.active();
    t.is(now.interface.vlan['eth1.40'].ipv4, '10.77.41.1/24');
    t.is(now.interface.wireguard.wg0.privateKey, privateKey);
    t.deepEqual(folders(await terminal.pid()), []);
  },
);

for (const [how, end] of [
  ['Ctrl-C', (terminal: ReturnType<typeof onTerminal>) => terminal.type(CTRL_C)],
  [
    'kill -9',
    async (terminal: ReturnType<typeof onTerminal>) => process.kill(await terminal.pid(), 'SIGKILL'),
  ],
  ['the death of the terminal', (terminal: ReturnType<typeof onTerminal>) => terminal.script.kill('SIGKILL')],
] as const) {
  test.serial(`[R35] no copy survives ${how} while it is edited, and nothing is posted`, async (t) => {
    const desk = await setUpDesk(t);
    const env = editorThat(desk.cwd, 'sleep 60');
    const terminal = onTerminal(t, desk.line(['router', 'apply', '--edit', '--yes']), { ...desk, env });
    await terminal.see(/editing/);
    const pid = await terminal.pid();
    t.is(folders(pid).length, 1);
    await end(terminal);
    await until(() => folders(pid).length === 0);
    await terminal.ended;
    t.deepEqual(await desk.rig.history(), []);
  });
}

test.serial('[R35] an editor that puts a symbolic link in place of the copy is not followed', async (t) => {
  const desk = await setUpDesk(t);
  const env = editorThat(desk.cwd, `mv "$1" "$1.old"; ln -s "$1.old" "$1"`);
  const { code, err } = await new Promise<{ code: number; err: string }>((resolve) => {
    const terminal = onTerminal(t, desk.line(['router', 'apply', '--edit', '--yes']), { ...desk, env });
    void terminal.ended.then((code) => resolve({ code, err: terminal.screen() }));
  });
  t.is(code, 1);
  t.regex(err, /HF_ROUTER_FILE/);
});

test.serial('[R31] a slip of the pen opens the editor again with what was written', async (t) => {
  const desk = await setUpDesk(t);
  const once = join(desk.cwd, 'once');
  const script = `if [ -e '${once}' ]; then sed -i 's|oops||; s|10.77.40.1/24|10.77.41.1/24|' "$1"; else touch '${once}'; echo oops >> "$1"; fi`;
  const terminal = onTerminal(t, desk.line(['router', 'apply', '--edit', '--yes']), {
    ...desk,
    env: editorThat(desk.cwd, script),
  });
  t.is(await terminal.ended, 0, terminal.screen());
  t.regex(terminal.screen(), /it is no JSON.*opens again/);
  t.is((await desk.rig.active()).interface.vlan['eth1.40'].ipv4, '10.77.41.1/24');
});

test.serial(
  '[R3,R31] a save that lands while the copy is edited makes the append fail, and stays',
  async (t) => {
    const desk = await setUpDesk(t);
    const go = join(desk.cwd, 'go');
    const env = editorThat(
      desk.cwd,
      `while [ ! -e '${go}' ]; do sleep 0.1; done; sed -i 's|10.77.40.1/24|10.77.41.1/24|' "$1"`,
    );
    const terminal = onTerminal(t, desk.line(['router', 'apply', '--edit', '--yes']), { ...desk, env });
    await terminal.see(/editing/);
    const renamed = await desk.rig.active();
    renamed.interface.vlan['eth1.20'].meta.name = 'Things';
    t.is((await desk.rig.set(renamed)).status, 200);
    writeFileSync(go, '');
    t.is(await terminal.ended, 1, terminal.screen());
    t.regex(terminal.screen(), /Refused, nothing was applied: ncid not match/);
    const now = await desk.rig.active();
    t.is(now.interface.vlan['eth1.20'].meta.name, 'Things');
    t.is(now.interface.vlan['eth1.40'].ipv4, '10.77.40.1/24');
  },
);

test.serial('[R35] a passphrase is asked for twice, is not shown, and opens the copy', async (t) => {
  t.timeout(240_000); // deriving a key from a passphrase takes long on purpose
  const desk = await setUpDesk(t);
  const out = join(desk.cwd, 'copy.age');
  const argv = ['router', 'get', '--with-secrets', '--out', out];
  const terminal = onTerminal(t, desk.line(argv), desk);
  await terminal.see(/Passphrase: /);
  terminal.type('correct horse battery\r');
  await terminal.see(/Once more: /);
  terminal.type('correct horse battery\r');
  t.is(await terminal.ended, 0, terminal.screen());
  t.notRegex(terminal.screen(), /horse/);
  writeFileSync(join(desk.cwd, 'phrase'), 'correct horse battery', { mode: 0o600 });
  const opened = await desk.holdfast([
    'router',
    'apply',
    out,
    '--yes',
    '--passphrase-file',
    join(desk.cwd, 'phrase'),
  ]);
  t.regex(opened.out, /Nothing would change/, opened.err);
});
