import { resolve } from 'node:path';
import { parseDuration } from '../../core/host/duration.ts';
import { HostError } from '../../core/host/errors/host-error.ts';
import { forgetStop } from '../../core/host/integrity/ledger.ts';
import { askIfRunning } from '../../core/host/operations/control-client.ts';
import type { CommandContext, CommandRun } from '../../core/host/plugin/command.ts';
import { progressOf } from '../../core/host/progress.ts';
import type { PruneRequest } from '../../core/host/retention/plan.ts';
import { planPrune } from '../../core/host/retention/plan.ts';
import type { Pruned } from '../../core/host/retention/prune-stopped.ts';
import { pruneStopped } from '../../core/host/retention/prune-stopped.ts';
import { notedSettings } from '../../core/host/retention/settings.ts';
import { parseSize, sizeText } from '../../core/host/size.ts';
import { timestamp } from '../../core/host/terminal.ts';
import { recover } from '../../core/kernel/actors/recover.ts';
import type { HoldfastError } from '../../core/kernel/errors/holdfast-error.ts';
import { lockDataDir } from '../../core/kernel/log/lock.ts';
import { LogWriter } from '../../core/kernel/log/log-writer.ts';
import { checkBeforeStart } from '../../core/kernel/log/trust.ts';
import { CliError } from '../errors.ts';
import { withLog } from './source.ts';

/** The control path by which a running instance prunes its log. */
const PRUNE_PATH = '/log/prune';

/** `holdfast log prune`: moves old records to an archive; the rest can still be replayed (C10). */
export const pruneLog: CommandRun = async (_args, flags, context) => {
  const { dataDir, json, print } = context;
  const request = await requestOf(flags);
  const folder = typeof flags.archive === 'string' ? resolve(flags.archive) : notedSettings(dataDir).folder;
  const dryRun = flags.dryRun === true;
  const pruned = dryRun ? await dry(request, context) : await prune(request, folder, context);
  if (json) return print(JSON.stringify({ ...pruned, dryRun }, null, 2));
  for (const line of await lines(pruned, dryRun)) print(line);
};

async function requestOf(flags: Readonly<Record<string, unknown>>): Promise<PruneRequest> {
  const read = (flag: unknown, name: string, parse: (text: string) => number | undefined, like: string) => {
    if (flag === undefined) return undefined;
    const value = parse(String(flag));
    if (value !== undefined) return value;
    throw usageError('log prune', `${name} takes ${like}, not ${String(flag)}.`);
  };
  const olderThanMs = read(flags.olderThan, '--older-than', parseDuration, 'an age such as 30d or 12h');
  const keepBytes = read(flags.keepSize, '--keep-size', parseSize, 'a size such as 500MB or 2GiB');
  if (olderThanMs === undefined && keepBytes === undefined)
    throw usageError('log prune', '--older-than or --keep-size is needed.');
  return { olderThanMs, keepBytes };
}

async function dry(request: PruneRequest, { dataDir }: CommandContext): Promise<Pruned> {
  return withLog(dataDir, async (log) => ({ plan: planPrune(log, request, Date.now()) }));
}

async function prune(request: PruneRequest, folder: string, context: CommandContext): Promise<Pruned> {
  const body = { ...request, folder };
  const pruned = await askIfRunning<Pruned>(context, PRUNE_PATH, body, 'it prunes no log');
  if (pruned) return pruned;
  const onProgress = progressOf('Archiving', context);
  const { dataDir, signal } = context;
  return pruneStopped({ dataDir, request, folder, now: Date.now() }, { signal, onProgress });
}

async function lines({ plan, file }: Pruned, dryRun: boolean): Promise<string[]> {
  const result: string[] = [];
  if (plan.to < plan.from) result.push('No record is old enough to be pruned.');
  else {
    const until = plan.until === undefined ? '' : `, until ${timestamp(plan.until)}`;
    const size = `about ${sizeText(plan.bytes)}`;
    result.push(
      `Records ${plan.from} to ${plan.to} ${dryRun ? 'would be archived' : 'were archived'}${until} (${size}).`,
    );
  }
  if (plan.heldBy) {
    const { seq, actor } = plan.heldBy;
    result.push(
      `Record ${seq} and all later ones stay: an effect or timer of ${actor} has been open since then.`,
    );
  }
  if (file !== undefined) {
    result.push(`Archive: ${file}`);
    result.push(
      'Verify it together with the rest of the log: holdfast replay verify <archives in order> <data folder>',
    );
  }
  return result;
}

/** The control path by which a running instance shreds. */
const SHRED_PATH = '/log/shred';

/** `holdfast log shred`: makes sealed configs unreadable; the records stay as they are. */
export const shredBodies: CommandRun = async ([fingerprint], flags, context) => {
  const keys = await keysOf(fingerprint, flags.olderThan, context);
  if (keys.length > 0) await shred(keys, context);
  if (context.json) return context.print(JSON.stringify({ shredded: keys }, null, 2));
  for (const key of keys) context.print(`${key} can no longer be read.`);
  if (keys.length === 0)
    context.print('No stored config is that old, except those that are active or pending.');
  else
    context.print(
      'A revert that needs one of them fails with HF_LOG_SHREDDED. Exports never contain these configs.',
    );
};

async function keysOf(
  fingerprint: string | undefined,
  age: unknown,
  context: CommandContext,
): Promise<string[]> {
  const { dataDir } = context;
  if ((fingerprint === undefined) === (age === undefined))
    throw usageError('log shred', 'A fingerprint or --older-than is needed, and not both.');
  if (fingerprint !== undefined) {
    const kept = await withLog(dataDir, async (log) => log.blob(fingerprint));
    if (!kept) throw new CliError('HF_LOG_BODY_UNKNOWN', { fingerprint });
    return [fingerprint];
  }
  const ms = parseDuration(String(age));
  if (ms === undefined)
    throw usageError('log shred', `--older-than takes an age such as 30d or 12h, not ${String(age)}.`);
  return withLog(dataDir, async (log) => {
    // Without the body of what is active now, the next transaction could not be reverted.
    const needed = JSON.stringify([...recover(log).states.values()].map((state) => state.context));
    return log.blobKeys(Date.now() - ms + 1).filter((key) => !needed.includes(key));
  });
}

async function shred(keys: readonly string[], { dataDir, signal }: CommandContext): Promise<void> {
  if (await askIfRunning({ dataDir, signal }, SHRED_PATH, { keys }, 'it shreds nothing')) return;
  const unlock = lockDataDir(dataDir);
  try {
    forgetStop(dataDir);
    await withLog(dataDir, async (log) => checkBeforeStart(log, dataDir));
    const writer = new LogWriter({ dataDir, signEvery: Number.MAX_SAFE_INTEGER });
    try {
      while (writer.shred(keys)) signal.throwIfAborted();
    } finally {
      writer.close();
    }
  } finally {
    unlock();
  }
}

function usageError(command: 'log prune' | 'log shred', reason: string): HoldfastError {
  return new HostError('HF_CLI_USAGE', { reason, command });
}
