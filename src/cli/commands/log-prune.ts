import { resolve } from 'node:path';
import type { CommandContext, CommandDefinition } from '../../core/host/plugin/command.ts';
import type { Pruned } from '../../core/host/retention/offline.ts';
import type { PruneRequest } from '../../core/host/retention/plan.ts';
import { HoldfastError } from '../../core/kernel/errors/holdfast-error.ts';

/** Where a running instance is asked to prune its log. */
const PRUNE_PATH = '/log/prune';

/** `holdfast log prune`: old records leave the log for an archive, and what stays can be replayed (C10). */
export const logPrune: CommandDefinition = {
  name: 'log prune',
  summary: 'move the oldest records into an archive; works on a running instance, too',
  example: 'holdfast log prune --older-than 30d --dry-run',
  flags: [
    { flags: '--older-than <age>', summary: 'records older than this go: 30d, 12h, 15m, 90s' },
    { flags: '--keep-size <size>', summary: 'the oldest go until the database holds no more: 500MB, 2GB' },
    { flags: '--archive <dir>', summary: 'where the archive goes (default: archive in the data folder)' },
    { flags: '--dry-run', summary: 'say what would go, and change nothing' },
  ],
  async run(_args, flags, context) {
    const { dataDir, json, print } = context;
    const { archiveFolder } = await import('../../core/host/retention/limits.ts');
    const request = await requestOf(flags);
    const folder = typeof flags.archive === 'string' ? resolve(flags.archive) : archiveFolder(dataDir);
    const dryRun = flags.dryRun === true;
    const pruned = dryRun ? await dry(request, context) : await prune(request, folder, context);
    if (json) return print(JSON.stringify({ ...pruned, dryRun }, null, 2));
    for (const line of await lines(pruned, dryRun)) print(line);
  },
};

async function requestOf(flags: Readonly<Record<string, unknown>>): Promise<PruneRequest> {
  const { parseAge, parseSize } = await import('../../core/host/retention/limits.ts');
  const read = (flag: unknown, name: string, parse: (text: string) => number | undefined, like: string) => {
    if (flag === undefined) return undefined;
    const value = parse(String(flag));
    if (value !== undefined) return value;
    throw usage(`${name} takes ${like}, not ${String(flag)}.`);
  };
  const olderThanMs = read(flags.olderThan, '--older-than', parseAge, 'an age such as 30d or 12h');
  const keepBytes = read(flags.keepSize, '--keep-size', parseSize, 'a size such as 500MB or 2GB');
  if (olderThanMs === undefined && keepBytes === undefined)
    throw usage('--older-than or --keep-size is needed.');
  return { olderThanMs, keepBytes };
}

async function dry(request: PruneRequest, { dataDir }: CommandContext): Promise<Pruned> {
  const { planPrune } = await import('../../core/host/retention/plan.ts');
  const { withLog } = await import('../log-view/index.ts');
  return withLog(dataDir, async (log) => ({ plan: planPrune(log, request, Date.now()) }));
}

async function prune(request: PruneRequest, folder: string, context: CommandContext): Promise<Pruned> {
  const { askIfRunning } = await import('../../core/host/operations/ask.ts');
  const asked = { ...request, folder };
  const pruned = await askIfRunning<Pruned>(context, PRUNE_PATH, asked, 'it prunes no log');
  if (pruned) return pruned;
  const { pruneStopped } = await import('../../core/host/retention/offline.ts');
  return pruneStopped(context.dataDir, request, folder, Date.now(), context.signal);
}

async function lines({ plan, file }: Pruned, dryRun: boolean): Promise<string[]> {
  const { timestamp } = await import('../log-view/index.ts');
  const said: string[] = [];
  if (plan.to < plan.from) said.push('No record is old enough to go.');
  else {
    const until = plan.until === undefined ? '' : `, until ${timestamp(plan.until)}`;
    const size = `about ${(plan.bytes / 1_000_000).toFixed(1)} MB`;
    said.push(`Records ${plan.from} to ${plan.to} ${dryRun ? 'would go' : 'have gone'}${until} (${size}).`);
  }
  if (plan.heldBy) {
    const { seq, actor } = plan.heldBy;
    said.push(`From record ${seq} on all stays: ${actor} has an effect or a timer open since then.`);
  }
  if (file !== undefined) {
    said.push(`Archive: ${file}`);
    said.push('Read it with what stays: holdfast replay verify <archives in order> <data folder>');
  }
  return said;
}

function usage(reason: string): HoldfastError {
  return new HoldfastError('HF_CLI_USAGE', { reason, command: 'log prune' });
}
