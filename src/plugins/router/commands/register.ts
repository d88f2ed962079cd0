/**
 * The commands of the router plugin, one a file: what an operator asks of the config, and how it is changed safely.
 * `change/` carries a change out, `config/` reads, compares and edits configs, `copy/` writes copies to files.
 *
 * They speak to the HTTP API of a running instance, or read its store; nothing of the runtime is started. A file
 * imports what it works with when its command runs, so that `holdfast --help` loads none of it.
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
