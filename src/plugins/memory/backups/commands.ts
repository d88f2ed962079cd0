/**
 * `holdfast backup …`: each command goes to the running instance through its control socket, so that what is done is
 * decided and recorded there. Without an instance, a store elsewhere is called directly, and nothing is recorded.
 */

import { HostError } from '../../../core/host/errors/host-error.ts';
import { askIfRunning } from '../../../core/host/operations/control-client.ts';
import type { CommandContext, CommandDefinition } from '../../../core/host/plugin/command.ts';
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import { readTokenFile } from '../../../core/host/secrets/token-file.ts';
import { systemClock } from '../../../core/kernel/clock.ts';
import { expiredBackups, newestFirst } from '../../../machines/memory/backups-rules.ts';
import { MemoryError } from '../errors.ts';
import type { MemoryOptions } from '../options.ts';
import { RestStores } from '../rest-store.ts';
import { settingsOf } from './actor.ts';
import {
  BACKUP_PATHS,
  type ListAnswer,
  type PruneAnswer,
  type SeedAnswer,
  type StatusAnswer,
  snapshotAnswer,
} from './answers.ts';
import { listBackups } from './effects.ts';
import { listLines, pruneLines, seedLines, snapshotLines, statusLines } from './output.ts';
import { chooseSeeds, type SeedRequest, seedRequest } from './seed.ts';

type Flags = Parameters<CommandDefinition['run']>[1];

const MISSING = 'it speaks to no memory store';

/** Prints an answer as JSON, or as lines. */
function show<T>(
  { json, print, terminal }: CommandContext,
  answer: T,
  lines: (answer: T, terminal: CommandContext['terminal']) => string[],
): void {
  for (const line of json ? [JSON.stringify(answer)] : lines(answer, terminal)) print(line);
}

interface BackupCommand<T> extends Pick<CommandDefinition, 'summary' | 'example' | 'flags'> {
  /** `holdfast backup <name>`. */
  readonly name: keyof typeof BACKUP_PATHS;
  /** The body of the request, by the command's flags. */
  readonly body?: (flags: Flags) => object;
  /** Does the same on a store elsewhere when no instance runs. */
  readonly direct: (stores: RestStores, signal: AbortSignal, flags: Flags) => Promise<T>;
  readonly lines: (answer: T, terminal: CommandContext['terminal']) => string[];
}

export function registerBackupCommands<S>(context: PluginContext<S>, options: MemoryOptions): void {
  const register = <T extends object>({ name, body, direct, lines, ...texts }: BackupCommand<T>) =>
    context.command({
      ...texts,
      name: `backup ${name}`,
      async run(_args, flags, command) {
        const answer =
          (await askIfRunning<T>(command, BACKUP_PATHS[name], body?.(flags) ?? {}, MISSING)) ??
          (await withoutInstance(options, command, (stores, signal) => direct(stores, signal, flags)));
        show(command, answer, lines);
      },
    });
  register<object>({
    name: 'snapshot',
    summary: 'Makes a snapshot of the memory collection now, records what it holds, and prunes old ones',
    example: 'holdfast backup snapshot',
    direct: snapshotDirectly,
    lines: (made) => snapshotLines(snapshotAnswer.parse(made)),
  });
  register<ListAnswer>({
    name: 'list',
    summary: 'Lists snapshots and volume copies, newest first',
    example: 'holdfast backup list --json',
    direct: listDirectly,
    lines: listLines,
  });
  register<PruneAnswer>({
    name: 'prune',
    summary: 'Deletes what is beyond the retention; never the newest, nor the last good one',
    example: 'holdfast backup prune --dry-run',
    flags: [
      { flags: '--dry-run', summary: 'only list what would be deleted' },
      {
        flags: '--force',
        summary: 'prune without a running instance too, although no record tells good snapshots from bad',
      },
    ],
    body: ({ dryRun }) => ({ dryRun: dryRun === true }),
    async direct(stores, signal, { dryRun, force }) {
      if (dryRun !== true && force !== true) throw new MemoryError('HF_MEMORY_UNRECORDED');
      return pruneDirectly(options, stores, dryRun === true, signal);
    },
    lines: pruneLines,
  });
  register<SeedAnswer>({
    name: 'seed',
    summary:
      'Chooses points of the collection by which a restore is recognised; writes nothing unless told to',
    example: 'holdfast backup seed --ids 1,2,3',
    flags: [
      { flags: '--ids <ids>', summary: 'these points, separated by commas; the first 16 unless given' },
      { flags: '--synthetic', summary: 'write 16 known points into the live collection, and take those' },
    ],
    body: seedFlags,
    direct: (stores, signal, flags) => seedDirectly(options, stores, signal, seedFlags(flags)),
    lines: seedLines,
  });
  context.command({
    name: 'backup status',
    first: true,
    summary: 'Shows when the last good backups were made and what is wrong; exit 1 when something is',
    example: 'holdfast backup status',
    async run(_args, _flags, command) {
      const answer = await askIfRunning<StatusAnswer>(command, BACKUP_PATHS.status, {}, MISSING);
      if (!answer) {
        show(command, await withoutInstance(options, command, listDirectly), listLines);
        return 0;
      }
      show(command, answer, statusLines);
      const { snapshot, volume, clusterVolume } = answer;
      const isWell =
        [snapshot, volume].every((kind) => !kind?.stale && kind?.fault === undefined) &&
        !clusterVolume?.stale;
      return isWell ? 0 : 1;
    },
  });
}

/**
 * Runs `work` on a store elsewhere, without an instance: nothing of it is recorded.
 *
 * @throws HF_CONTROL_UNREACHABLE the store is embedded, and so exists only while an instance runs
 */
async function withoutInstance<T>(
  { url, apiKeyFile, apiKeyRef, collection, caFile, insecure }: MemoryOptions,
  { dataDir, signal }: CommandContext,
  work: (stores: RestStores, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const refuse = (reason: string) => new HostError('HF_CONTROL_UNREACHABLE', { dir: dataDir, reason });
  if (url === undefined) {
    throw refuse('no instance runs there, and the embedded memory store exists only while one does');
  }
  if (apiKeyFile === undefined && apiKeyRef !== undefined) {
    throw refuse(
      'no instance runs there, and only an instance reads the key of the memory store from the secrets store',
    );
  }
  const stores = new RestStores({
    kind: 'remote',
    collection,
    caFile,
    insecure,
    clock: systemClock,
    url: () => url,
    apiKey: async () => (apiKeyFile === undefined ? undefined : readTokenFile(apiKeyFile)),
  });
  try {
    return await work(stores, signal);
  } finally {
    await stores.close();
  }
}

const snapshotDirectly = async ({ live, collection }: RestStores, signal: AbortSignal) => ({
  ...(await live.createSnapshot(collection, signal)),
  recorded: false,
});

async function listDirectly(stores: RestStores, signal: AbortSignal): Promise<ListAnswer> {
  const listed = await listBackups({ stores }, 'snapshot', signal);
  const backups = listed.toSorted(newestFirst).map(({ name, at, size }) => ({
    kind: 'snapshot' as const,
    name,
    at: new Date(at).toISOString(),
    size,
    recorded: false,
  }));
  return { collection: stores.collection, backups };
}

/** @throws HF_CLI_USAGE */
function seedFlags({ ids, synthetic }: Flags): SeedRequest {
  const wanted =
    typeof ids === 'string' ? ids.split(',').map((id) => (/^\d+$/.test(id) ? Number(id) : id)) : undefined;
  const read = seedRequest.safeParse({ ids: wanted, synthetic: synthetic === true });
  if (read.success) return read.data;
  const reason = 'either --synthetic, or --ids with numbers and UUIDs, separated by commas, at most 100.';
  throw new HostError('HF_CLI_USAGE', { reason, command: 'backup seed' });
}

async function seedDirectly(
  options: MemoryOptions,
  { live, collection }: RestStores,
  signal: AbortSignal,
  request: SeedRequest,
): Promise<SeedAnswer> {
  const seeds = await chooseSeeds(live, collection, request, options.seeds?.ids, signal);
  return { collection, seeds, count: await live.count(collection, signal) };
}

/** Deletes all but the newest `keep`. Which of them are good is unknown, because only the log records that. */
async function pruneDirectly(
  options: MemoryOptions,
  stores: RestStores,
  dryRun: boolean,
  signal: AbortSignal,
): Promise<PruneAnswer> {
  const { live, collection } = stores;
  const listed = await listBackups({ stores }, 'snapshot', signal);
  const expired = expiredBackups(listed, [], settingsOf('snapshot', options), Date.now());
  if (!dryRun) for (const name of expired) await live.deleteSnapshot(collection, name, signal);
  return { dryRun, deleted: { snapshot: expired } };
}
