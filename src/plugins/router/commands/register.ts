/**
 * The commands `holdfast router …`. They speak to a `RouterTarget` (`target.ts`); nothing of the runtime is started.
 * `change/` carries out a change by the safe procedure. A file imports what it works with when its command runs, so that
 * `holdfast --help` loads none of it.
 */
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import { applyCommand, restoreCommand } from './apply.ts';
import { getCommand, secretsCommand } from './get.ts';
import { diffCommand, historyCommand } from './history.ts';
import { explainCommand, legsCommand, raCommand } from './networks.ts';
import type { CommandSettings } from './target.ts';

export function registerCommands(context: Pick<PluginContext, 'command'>, settings: CommandSettings): void {
  const commands = [
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
  for (const command of commands) context.command(command(settings));
}
