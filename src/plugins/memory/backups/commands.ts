import { askIfRunning } from '../../../core/host/operations/ask.ts';
import type { CommandContext } from '../../../core/host/plugin/command.ts';
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import { systemClock } from '../../../core/kernel/clock.ts';
import { CoreError } from '../../../core/kernel/errors/core-error.ts';
import { readTokenFile } from '../../../core/kernel/secret-file.ts';
import { doomedOf, newestFirst } from '../../../machines/memory/assessment.ts';
import { MemoryError } from '../errors.ts';
import type { QdrantOptions } from '../options.ts';
import { RestStores } from '../rest-store.ts';
import { settingsOf } from './actor.ts';
import { BACKUP_PATHS } from './control.ts';
import { listBackups } from './effects.ts';
import { listLines, pruneLines, seedLines, snapshotLines, statusLines } from './output.ts';
import { seed } from './seed.ts';

/**
 * `holdfast backup …`: each asks the running instance through its control socket, so that what is done is decided and
 * recorded there; with none, a store elsewhere is spoken to directly, and nothing is recorded.
 */

type Answer = Record<string, unknown>;

/** @returns undefined when no instance runs */
const running = (command: CommandContext, what: keyof typeof BACKUP_PATHS, body: object = {}) =>
  askIfRunning<Answer>(command, BACKUP_PATHS[what], body, 'it speaks to no memory store');

type Lines = (answer: Answer, terminal: CommandContext['terminal']) => string[];

/** Says `answer` as JSON, or as lines. */
function say(context: CommandContext, answer: Answer, lines: Lines): void {
  const said = context.json ? [JSON.stringify(answer)] : lines(answer, context.terminal);
  for (const line of said) context.print(line);
}

export function registerBackupCommands(context: PluginContext, options: QdrantOptions): void {
  const ask = async (command: CommandContext, what: 'snapshot' | 'list' | 'seed'): Promise<Answer> =>
    (await running(command, what)) ??
    (await directly<Answer>(options, command, (stores) => direct[what](stores, command.signal)));

  context.command({
    name: 'backup snapshot',
    summary: 'Takes a snapshot of the memory collection now, records what it holds, and prunes old ones',
    example: 'holdfast backup snapshot',
    run: async (_args, _flags, command) => say(command, await ask(command, 'snapshot'), snapshotLines),
  });
  context.command({
    name: 'backup list',
    summary: 'Lists snapshots and volume copies, newest first',
    example: 'holdfast backup list --json',
    run: async (_args, _flags, command) => say(command, await ask(command, 'list'), listLines),
  });
  context.command({
    name: 'backup prune',
    summary: 'Deletes what is beyond the retention; never the newest, nor the last good one',
    example: 'holdfast backup prune --dry-run',
    flags: [
      { flags: '--dry-run', summary: 'only say what would be deleted' },
      {
        flags: '--force',
        summary: 'without a running instance too, where no record tells good ones from bad',
      },
    ],
    async run(_args, { dryRun, force }, command) {
      const isDry = dryRun === true;
      const answer =
        (await running(command, 'prune', { dryRun: isDry })) ??
        (await directly(options, command, (stores) => {
          if (!isDry && force !== true) throw new MemoryError('HF_MEMORY_UNRECORDED');
          return pruneDirectly(options, stores, isDry, command.signal);
        }));
      say(command, answer, pruneLines);
    },
  });
  context.command({
    name: 'backup seed',
    summary: 'Keeps 16 known points in the collection, by which restores are proven',
    example: 'holdfast backup seed',
    run: async (_args, _flags, command) => say(command, await ask(command, 'seed'), seedLines),
  });
  context.command({
    name: 'backup status',
    first: true,
    summary: 'Says when the last good backups were made, and what is wrong; exit 1 when something is',
    example: 'holdfast backup status',
    async run(_args, _flags, command) {
      const answer = await running(command, 'status');
      if (!answer) {
        const listed = await directly(options, command, (stores) => direct.list(stores, command.signal));
        say(command, listed, listLines);
        return 0;
      }
      say(command, answer, statusLines);
      return isWell(answer) ? 0 : 1;
    },
  });
}

function isWell({ snapshot, volume }: Answer): boolean {
  return [snapshot, volume].every((kind) => {
    const { stale, fault } = (kind ?? {}) as { stale?: boolean; fault?: string };
    return stale !== true && fault === undefined;
  });
}

/**
 * Runs `work` on a store elsewhere, with no instance: nothing of it is recorded.
 *
 * @throws HF_CONTROL_UNREACHABLE the store is embedded, and so is there only while an instance runs
 */
export async function directly<T>(
  options: QdrantOptions,
  { dataDir }: CommandContext,
  work: (stores: RestStores) => Promise<T>,
): Promise<T> {
  const { url, apiKeyFile, apiKeyRef, collection, caFile } = options;
  if (url === undefined) {
    throw new CoreError('HF_CONTROL_UNREACHABLE', {
      dir: dataDir,
      reason: 'nothing runs there, and the embedded memory store is there only while it does',
    });
  }
  if (apiKeyFile === undefined && apiKeyRef !== undefined) {
    throw new CoreError('HF_CONTROL_UNREACHABLE', {
      dir: dataDir,
      reason:
        'nothing runs there, and the key of the memory store is in the secrets store, which only it reads',
    });
  }
  const apiKey = async () => (apiKeyFile === undefined ? undefined : readTokenFile(apiKeyFile));
  const stores = new RestStores({
    kind: 'remote',
    collection,
    caFile,
    clock: systemClock,
    url: () => url,
    apiKey,
  });
  try {
    return await work(stores);
  } finally {
    await stores.close();
  }
}

type Direct = (stores: RestStores, signal: AbortSignal) => Promise<Record<string, unknown>>;

const NO_SEEDS = () => [];

/** The same answers as a running instance gives, as far as they can be had without one. */
export const direct = {
  snapshot: async (stores, signal) => ({
    ...(await stores.live.createSnapshot(stores.collection, signal)),
    recorded: false,
  }),
  list: async (stores, signal) => {
    const listed = await listBackups({ stores, seeds: NO_SEEDS }, 'snapshot', signal);
    const backups = listed.toSorted(newestFirst).map(({ name, at, size }) => ({
      kind: 'snapshot',
      name,
      at: new Date(at).toISOString(),
      size,
      recorded: false,
    }));
    return { collection: stores.collection, backups };
  },
  seed: async (stores, signal) => {
    const seeds = await seed(stores.live, stores.collection, signal);
    return {
      collection: stores.collection,
      seeds,
      count: await stores.live.count(stores.collection, signal),
    };
  },
} as const satisfies Record<string, Direct>;

/** Only a dry run, or what is beyond the newest so many: which one is known to be good, only the log knows. */
export async function pruneDirectly(
  options: QdrantOptions,
  stores: RestStores,
  dryRun: boolean,
  signal: AbortSignal,
): Promise<Record<string, unknown>> {
  const listed = await listBackups({ stores, seeds: NO_SEEDS }, 'snapshot', signal);
  const doomed = doomedOf(listed, [], settingsOf('snapshot', options), Date.now());
  if (!dryRun) for (const name of doomed) await stores.live.deleteSnapshot(stores.collection, name, signal);
  return { dryRun, deleted: { snapshot: doomed } };
}
