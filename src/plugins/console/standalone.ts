/**
 * Commands of this plugin that need neither an instance nor a configuration. The command line finds this file by its name
 * and loads it instead of every plugin, so that such a command starts at once.
 */
import type { CommandDefinition } from '../../core/host/plugin/command.ts';

/** `holdfast open`: the console over an exported log, or over a data folder where nothing runs. */
const open: CommandDefinition = {
  name: 'open [source]',
  summary: 'Opens the console over an exported log or a stopped data folder, read-only; until Ctrl-C',
  example: 'holdfast open incident.jsonl.zst',
  untilInterrupted: true,
  flags: [{ flags: '--port <n>', summary: 'port on 127.0.0.1; any free one unless set', default: '0' }],
  run: async (...call) => (await import('./open/open-log.ts')).openLog(...call),
};

export const standaloneCommands: readonly CommandDefinition[] = [open];
