import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { askInstance, operatorName } from '../../../core/host/operations/control-client.ts';
import type { CommandDefinition } from '../../../core/host/plugin/command.ts';
import { timestamp } from '../../../core/host/terminal.ts';
import { ConsoleError } from '../errors.ts';
import { CODE_PATH, type NewCode } from './routes.ts';

/** The browser has read the file by then, milliseconds. */
const OPENED_MS = 5_000;

/** `holdfast console`: a link that lets one browser in, once. */
export const consoleCommand: CommandDefinition = {
  name: 'console',
  first: true,
  summary: 'Prints a link that opens the console, once; opens it where there is a desktop',
  example: 'holdfast console --no-open',
  flags: [{ flags: '--no-open', summary: 'only print the link' }],
  async run(_args, flags, context) {
    const { json, print, note, terminal, signal } = context;
    const made = await askInstance<NewCode>(context, CODE_PATH, { by: operatorName() }, 'it runs no console');
    if (made.url === undefined || made.url.startsWith('unix:'))
      throw new ConsoleError('HF_CONSOLE_NO_ADDRESS');
    const link = `${made.url}/login#${made.code}`;
    if (json) return print(JSON.stringify({ link, expiresAt: made.expiresAt }));
    print(link);
    note(`It works once, until ${timestamp(made.expiresAt)}.`);
    const opener = flags.open === false || !terminal.interactive ? undefined : openerOf(process.env);
    if (opener) await openInBrowser(opener, link, signal);
  },
};

/** The program that opens a page on this desktop; undefined where there is none. */
function openerOf(env: NodeJS.ProcessEnv): string | undefined {
  if (process.platform === 'darwin') return 'open';
  return env.DISPLAY || env.WAYLAND_DISPLAY ? 'xdg-open' : undefined;
}

/**
 * Every user of a machine sees the arguments of its processes, so the link is none: the browser opens a file that only this
 * user can read, and that leads to it.
 */
async function openInBrowser(opener: string, link: string, signal: AbortSignal): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-console-'));
  try {
    const file = join(folder, 'open.html');
    const page = `<!doctype html><meta http-equiv="refresh" content="0; url=${link}"><a href="${link}">Holdfast</a>`;
    writeFileSync(file, page, { mode: 0o600 });
    const opened = spawn(opener, [file], { stdio: 'ignore', detached: true });
    opened.on('error', () => {}); // the link is printed
    opened.unref();
    await delay(OPENED_MS, undefined, { signal });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
