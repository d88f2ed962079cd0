/**
 * The commands of the router plugin, one a file: what an operator asks of the config, and how it is changed safely.
 * `change/` carries a change out, `config/` reads, compares and edits configs, `copy/` writes copies to files.
 *
 * They speak to the HTTP API of a running instance, or read its store; nothing of the runtime is started. A file
 * imports what it works with when its command runs, so that `holdfast --help` loads none of it.
 */
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import { applyCommand } from './apply.ts';
import { registerControl } from './control.ts';
import { diffCommand } from './diff.ts';
import { explainCommand } from './explain.ts';
import { getCommand } from './get.ts';
import { historyCommand } from './history.ts';
import { legsCommand } from './legs.ts';
import { raCommand } from './ra.ts';
import { restoreCommand } from './restore.ts';
import { secretsCommand } from './secrets.ts';
import type { CommandSettings } from './target.ts';

export type { CommandSettings } from './target.ts';

export function registerCommands(context: PluginContext, settings: CommandSettings): void {
  registerControl(context);
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
