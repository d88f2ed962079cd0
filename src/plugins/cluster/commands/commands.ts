import { askInstance, operatorName } from '../../../core/host/operations/control-client.ts';
import type { CommandContext, CommandDefinition, CommandFlag } from '../../../core/host/plugin/command.ts';
import { ClusterError } from '../errors.ts';
import { type ClusterView, type MovedView, PATHS } from '../operate/view.ts';
import { hostLines, leaseLines, movedLines, orphanLines, statusLines } from './text.ts';

type Lines = (view: ClusterView, context: CommandContext) => readonly string[];

/** A command that shows a part of what the running instance knows. */
function shows(
  name: string,
  summary: string,
  part: (view: ClusterView) => unknown,
  lines: Lines,
): CommandDefinition {
  return {
    name: `cluster ${name}`,
    summary,
    example: `holdfast cluster ${name}`,
    run: async (_args, _flags, context) => show(await ask(context, PATHS.view), context, part, lines),
  };
}

/** A command that changes something, and then shows how it is. */
function changes(
  { name, summary, example, flags }: Omit<CommandDefinition, 'run'>,
  path: string,
  body: (args: readonly string[], flags: Readonly<Record<string, unknown>>) => object,
  lines: (view: MovedView, context: CommandContext) => readonly string[],
): CommandDefinition {
  return {
    ...{ name, summary, example, flags: [...(flags ?? []), reasonFlag] },
    run: async (args, given, context) => {
      const act = { by: operatorName(), ...(given.reason !== undefined && { reason: given.reason }) };
      const view = await ask<MovedView>(context, path, { ...body(args, given), ...act });
      show(view, context, (all) => all, lines);
      return 0;
    },
  };
}

const to: CommandFlag = {
  flags: '--to <host>',
  summary: 'the host that takes it over; any other unless given',
};
/** Of everything that an operator does: it is recorded beside the name. */
const reasonFlag: CommandFlag = { flags: '--reason <text>', summary: 'why; it is recorded' };
const undo: CommandFlag = { flags: '--undo', summary: 'lets the host take leases again' };

/** The commands `holdfast cluster …`: they ask the running instance, and need no configuration. */
export const clusterCommands: readonly CommandDefinition[] = [
  {
    ...shows(
      'status',
      'Shows this host, the others and what each does; exit code 1 if something is wrong',
      (all) => all,
      statusLines,
    ),
    first: true,
  },
  shows(
    'hosts',
    'Lists the hosts of the cluster, what each holds and how far its log is mirrored',
    ({ hosts }) => ({ hosts }),
    hostLines,
  ),
  shows(
    'leases',
    'Lists what one host does at a time: who holds it, since when, with which fencing token',
    ({ leases }) => ({ leases }),
    leaseLines,
  ),
  changes(
    {
      name: 'cluster move <singleton>',
      summary: 'Moves what one host does at a time to another one, and waits until it holds it',
      example: 'holdfast cluster move reconciler --to attic',
      flags: [to],
    },
    PATHS.move,
    ([singleton], flags) => ({ singleton, ...(flags.to !== undefined && { to: flags.to }) }),
    movedLines,
  ),
  changes(
    {
      name: 'cluster drain',
      summary:
        'Gives away all that this host holds, e.g. before an update; it takes nothing until --undo or a restart',
      example: 'holdfast cluster drain',
      flags: [undo],
    },
    PATHS.drain,
    (_args, flags) => ({ undo: flags.undo === true }),
    statusLines,
  ),
  changes(
    {
      name: 'cluster forget <host>',
      summary: 'Takes a host that does not come back out of the lists of all hosts; its log stays',
      example: 'holdfast cluster forget cellar',
    },
    PATHS.forget,
    ([host]) => ({ host }),
    hostLines,
  ),
  shows(
    'orphans',
    'Lists records that this host made for work that another had taken over: they do not count',
    ({ orphans }) => ({ orphans }),
    orphanLines,
  ),
  {
    name: 'cluster orphans export <number> <file>',
    summary: 'Writes an orphaned branch to a file that log list, log show and replay read; it counts as seen',
    example: 'holdfast cluster orphans export 1 orphaned.jsonl',
    flags: [reasonFlag],
    run: async (...call) => {
      await (await import('./orphans.ts')).exportOrphan(...call);
    },
  },
  {
    name: 'cluster nkey <file>',
    summary:
      'Makes a user of NATS: its secret in a file of mode 0600; prints what the servers must know of it',
    example: 'holdfast cluster nkey /etc/holdfast/nats.nk',
    run: async (...call) => {
      await (await import('./nkey.ts')).makeNkey(...call);
    },
  },
];

async function ask<T extends ClusterView>(
  context: CommandContext,
  path: string,
  body: object = {},
): Promise<T> {
  const alone = new ClusterError('HF_CLUSTER_ALONE', { dir: context.dataDir });
  return askInstance<T>(context, path, body, alone);
}

function show(
  view: ClusterView,
  context: CommandContext,
  part: (view: ClusterView) => unknown,
  lines: Lines,
): number {
  if (context.json) context.print(JSON.stringify(part(view), null, 2));
  else for (const line of lines(view, context)) context.print(line);
  return lines === statusLines && view.problems.length > 0 ? 1 : 0;
}
