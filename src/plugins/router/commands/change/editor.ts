import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { NetworkConfig } from '../../../../core/contracts/router.ts';
import type { CommandContext } from '../../../../core/host/plugin/command.ts';
import { isCoded } from '../../../../core/kernel/errors/holdfast-error.ts';
import { parseConfig, readBytes, unusable } from '../config-file.ts';
import { hideSecrets, putSecretsBack } from '../leaves.ts';

const FOLDER = /^holdfast-edit-(\d+)-/;
/** Memory where the system has such a folder, so that a copy reaches no disk. */
const BASES = ['/dev/shm', tmpdir()];
const GUARD = 'trap "" HUP INT TERM; read -r _; rm -rf -- "$1"';

/**
 * Has a text edited by `$VISUAL`, `$EDITOR` or vi, in a folder of its own that only this user may enter.
 *
 * The folder is always removed (R35). A small shell in a session of its own waits at the other end of a pipe: when this
 * process ends, by Ctrl-C or by kill -9, the pipe closes and the shell removes the folder with everything in it. If
 * both are killed, the next edit removes the folder; in memory (`/dev/shm`) it does not survive a restart of the
 * machine.
 *
 * @param stop ends the editor
 * @throws HF_ROUTER_FILE the editor failed, or left something that is no regular file
 */
async function editText(text: string, stop: AbortSignal): Promise<string> {
  const base = BASES.find(isWritable) ?? tmpdir();
  sweep(base);
  const folder = mkdtempSync(join(base, `holdfast-edit-${process.pid}-`));
  const guard = spawn('sh', ['-c', GUARD, 'holdfast-edit-guard', folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  try {
    await once(guard, 'spawn'); // before there is anything to lose
    guard.unref();
    const file = join(folder, 'network-config.json');
    writeFileSync(file, text, { mode: 0o600, flag: 'wx' });
    await runEditor(file, stop);
    return readBytes(file, false).toString('utf8');
  } finally {
    rmSync(folder, { recursive: true, force: true });
    guard.stdin.destroy();
  }
}

async function runEditor(file: string, stop: AbortSignal): Promise<void> {
  const command = process.env.VISUAL || process.env.EDITOR || 'vi';
  // Ctrl-C may be an ordinary key in an editor. The signal reaches every process in the foreground, and must not end
  // this one.
  const listeners = process.listeners('SIGINT');
  const ignore = () => {};
  process.on('SIGINT', ignore);
  for (const listener of listeners) process.off('SIGINT', listener);
  try {
    const editor: ChildProcess = spawn('sh', ['-c', `${command} "$1"`, 'sh', file], { stdio: 'inherit' });
    const end = () => editor.kill('SIGTERM');
    stop.addEventListener('abort', end, { once: true });
    const [code, signal] = (await once(editor, 'close')) as [number | null, string | null];
    stop.removeEventListener('abort', end);
    stop.throwIfAborted();
    if (code !== 0) throw unusable('the edited copy', `the editor ended with ${code ?? signal}`);
  } finally {
    for (const listener of listeners) process.on('SIGINT', listener);
    process.off('SIGINT', ignore);
  }
}

/** Removes the folder of an edit whose process and shell were both killed. */
function sweep(base: string): void {
  for (const name of readdirSync(base)) {
    const [, pid] = FOLDER.exec(name) ?? [];
    if (pid === undefined || isAlive(Number(pid))) continue;
    const folder = join(base, name);
    const stat = statSync(folder, { throwIfNoEntry: false });
    if (stat?.isDirectory() && stat.uid === process.getuid?.())
      rmSync(folder, { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * Has the active config edited, secrets as placeholders. A text that is no valid config opens the editor again with what was
 * written, until it is left without a change.
 *
 * @throws HF_ROUTER_FILE, HF_ROUTER_CONTROL_FIELDS, HF_ROUTER_PLACEHOLDER
 */
export async function editConfig(
  active: NetworkConfig,
  { note, signal }: Pick<CommandContext, 'note' | 'signal'>,
): Promise<NetworkConfig> {
  let text = `${JSON.stringify(hideSecrets(active), null, 2)}\n`;
  for (;;) {
    const edited = await editText(text, signal);
    try {
      return putSecretsBack(parseConfig(edited, 'the edited copy'), active);
    } catch (error) {
      if (!isCoded(error) || edited === text) throw error;
      note(`${error.what} The editor opens again; leave it without a change to give up.`);
      text = edited;
    }
  }
}
