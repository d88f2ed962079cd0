import type { CommandContext, CommandDefinition } from '../../../core/host/plugin/command.ts';
import { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import type { RouteChange } from '../../../machines/gateway/routes.ts';
import { RELOAD_PATH, ROLLBACK_PATH, ROUTES_PATH } from '../routes/control.ts';
import { changesText } from '../routes/describe.ts';
import type { TableView } from '../routes/view.ts';
import { askGateway } from './ask.ts';

/** `holdfast gateway reload`: takes the configuration up now, without waiting for the watch on its file. */
export const reloadCommand: CommandDefinition = {
  name: 'gateway reload',
  summary: 'Reads plugins.config.ts again and swaps the routes in; exit 1 when an entry is rejected',
  example: 'holdfast gateway reload',
  async run(_args, _flags, context) {
    const { revision } = await askGateway<TableView>(context, ROUTES_PATH);
    return tell(context, await askGateway(context, RELOAD_PATH), revision);
  },
};

/** `holdfast gateway rollback <route>`: entry, environment entry and secret reference as they were, together (G24). */
export const rollbackCommand: CommandDefinition = {
  name: 'gateway rollback <route>',
  summary: 'Brings back what served before the last change of a route, until its entry changes again',
  example: 'holdfast gateway rollback library_docs',
  flags: [
    { flags: '--to <revision>', summary: 'not the change before, but what began to serve in this revision' },
  ],
  async run([route], flags, context) {
    const to = flags.to === undefined ? undefined : Number(flags.to);
    if (to !== undefined && (!Number.isInteger(to) || to < 1)) {
      const reason = '--to takes the number of a revision.';
      throw new HoldfastError('HF_CLI_USAGE', { reason, command: 'gateway rollback' });
    }
    const body = { route, ...(to !== undefined && { to }) };
    tell(context, await askGateway(context, ROLLBACK_PATH, body), 0); // what is wrong with other entries is no failure of this
  },
};

interface Told {
  readonly revision: number;
  readonly changes: readonly RouteChange[];
  readonly rejected: readonly { readonly name: string; readonly reason: string }[];
  readonly restart?: readonly string[];
}

/** @param before the revision that served, to tell an answer that changed nothing */
function tell({ json, print, terminal }: CommandContext, answer: Told, before: number): number {
  const { revision, changes, rejected, restart = [] } = answer;
  const failed = rejected.length > 0 ? 1 : 0;
  const isNew = revision !== before;
  if (json) {
    print(JSON.stringify({ ...answer, changes: isNew ? changes : [] }));
    return failed;
  }
  print(`revision ${revision} serves: ${isNew ? changesText(changes) : 'nothing changed'}`);
  for (const { name, reason } of rejected) print(terminal.paint('red', `rejected: ${name}: ${reason}`));
  if (restart.length > 0) print(`takes effect at the next start: ${restart.join(', ')}`);
  return failed;
}
