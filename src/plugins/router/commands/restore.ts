import { existsSync } from 'node:fs';
import type { CommandDefinition } from '../../../core/host/plugin/command.ts';
import { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import { changeFlags, EXIT_TEXT } from './change/flags.ts';
import { type CommandSettings, runningClientOf, targetFlags } from './target.ts';

const COMMAND = 'router restore';
const WINDOW_MS = 120_000;

/** `holdfast router restore`: an older config in force again, by the safe procedure (R31). */
export function restoreCommand(settings: CommandSettings): CommandDefinition {
  return {
    name: `${COMMAND} <entry>`,
    summary: `Puts a config of the history, or of a file, in force again by the safe procedure (${EXIT_TEXT})`,
    example: `holdfast router restore 2 --check 'ping -c1 10.77.10.1'`,
    flags: [
      { flags: '--identity-file <file>', summary: 'key of an age file (mode 0600)' },
      { flags: '--passphrase-file <file>', summary: 'passphrase of an age file (mode 0600)' },
      ...changeFlags,
      ...targetFlags,
    ],
    async run([entry = ''], flags, context) {
      const isFile = /[/.]/.test(entry) && existsSync(entry);
      if (!isFile && flags.url !== undefined) {
        const reason = 'The history here is that of the router here: for the one of --url, give a file.';
        throw new HoldfastError('HF_CLI_USAGE', { reason, command: COMMAND });
      }
      const client = runningClientOf(flags, context, settings);
      const { carryOut, unlessInterrupted } = await import('./change/carry-out.ts');
      return unlessInterrupted(context, async () => {
        const before = await client.active(context.signal);
        const config = isFile
          ? await (await import('./config/read-config.ts')).readConfigFile(entry, flags, before)
          : (await (await import('./entries.ts')).findEntry(context, settings, entry)).config;
        const windowMs = flags.url === undefined ? settings.windowMs : WINDOW_MS;
        const after = { ...config, ncid: before.ncid };
        return carryOut({ client, before, after, windowMs, command: COMMAND }, flags, context);
      });
    },
  };
}
