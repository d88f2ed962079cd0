import type { CommandContext, CommandDefinition } from '../../../core/cli/index.ts';
import { HoldfastError } from '../../../core/errors/index.ts';
import type { RouteChange } from '../../../machines/mcp-routes.ts';
import { changesText } from '../routes/describe.ts';
import { RELOAD_PATH, ROLLBACK_PATH } from '../routes/register.ts';
import { askInstance } from './ask.ts';

/** `holdfast gateway reload`: takes the configuration up now, without waiting for the watch on its file. */
export const reloadCommand: CommandDefinition = {
  name: 'gateway reload',
  summary: 'Reads plugins.config.ts again and swaps the routes in; exit 1 when an entry is rejected',
  example: 'holdfast gateway reload',
  async run(_args, _flags, context) {
    const before = await revisionOf(context);
    const answer = await askInstance(context, RELOAD_PATH, {}, 'HF_GATEWAY_RELOAD');
    return tell(context, answer, before);
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
    const answer = await askInstance(context, ROLLBACK_PATH, body, 'HF_GATEWAY_ROLLBACK');
    return tell(context, answer, 0);
  },
};

async function revisionOf(context: CommandContext): Promise<number> {
  return Number((await askInstance(context, '/gateway/routes')).revision);
}

interface Told {
  readonly revision: number;
  readonly changes: readonly RouteChange[];
  readonly rejected: readonly { readonly name: string; readonly reason: string }[];
  readonly restart?: readonly string[];
}

/** @param before the revision that served, to tell an answer that changed nothing */
function tell({ json, print, terminal }: CommandContext, answer: object, before: number): number {
  const { revision, changes, rejected, restart = [] } = answer as Told;
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
