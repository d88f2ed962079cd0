/**
 * The commands `holdfast router …`, of the embedded router and of one elsewhere alike. They use a `RouterTarget`
 * (`target.ts`) and start no runtime. `change/` makes a change with a confirmed commit. Each file loads what it works with
 * when its command runs, so that `holdfast --help` loads none of it.
 */
import type { CommandDefinition } from '../../../core/host/plugin/command.ts';
import { applyCommand, restoreCommand } from './apply.ts';
import { getCommand, secretsCommand } from './get.ts';
import { diffCommand, historyCommand } from './history.ts';
import { explainCommand, legsCommand, raCommand } from './networks.ts';
import type { CommandSettings } from './target.ts';

const COMMANDS = [
  getCommand,
  secretsCommand,
  historyCommand,
  diffCommand,
  applyCommand,
  restoreCommand,
  legsCommand,
  explainCommand,
  raCommand,
];

/** Declares the commands. @param settings those of the plugin that provides the router */
export function registerCommands(
  { command }: { readonly command: (definition: CommandDefinition) => void },
  settings: CommandSettings,
): void {
  for (const definition of COMMANDS) command(definition(settings));
}
