import type { HistoryEntry } from '../../../core/contracts/config-store.ts';
import type { NetworkConfig } from '../../../core/contracts/router.ts';
import { HostError } from '../../../core/host/errors/host-error.ts';
import type { CommandDefinition } from '../../../core/host/plugin/command.ts';
import { plainText } from '../../../core/host/terminal.ts';
import { withoutControlFields } from '../config/network-config.ts';
import { RouterError } from '../errors.ts';
import { parseJsonObject } from './config-file.ts';
import {
  type CommandSettings,
  openTarget,
  type ReadableStore,
  type RouterTarget,
  targetFlags,
} from './target.ts';

/** `holdfast router history`: the accepted config writes, newest first (R13). */
export function historyCommand(settings: CommandSettings): CommandDefinition {
  return {
    name: 'router history',
    summary: 'Lists the accepted config writes, newest first, and what was there before them',
    example: 'holdfast router history --limit 5',
    flags: [{ flags: '--limit <n>', summary: 'how many entries', default: '20' }, ...targetFlags],
    async run(_args, flags, context) {
      const { json, print, note, signal } = context;
      const limit = Number(flags.limit);
      if (!Number.isInteger(limit) || limit < 1) {
        throw new HostError('HF_CLI_USAGE', {
          reason: '--limit takes a number from 1.',
          command: 'router history',
        });
      }
      const entries = await openTarget(flags, context, settings).history(limit, signal);
      if (json) return print(JSON.stringify({ entries }));
      for (const [index, { score, ncid, op, who, changed, pending, uncompared }] of entries.entries()) {
        const at = new Date(score * 1000).toISOString().slice(0, 19);
        const nothing = uncompared ? '(not known, the write before it is not kept)' : '(nothing changed)';
        const what = op === 'seed' ? 'what was there before' : changed.join(', ') || nothing;
        print(
          `${String(index + 1).padStart(3)}  ${at}  ${ncid}  ${(pending ? 'pending' : op).padEnd(7)}  ${plainText(`${who}  ${what}`)}`,
        );
      }
      if (entries.length === 0) print('no writes yet');
      if (entries.length === 0 && settings.url !== undefined && flags.url === undefined) {
        const { HISTORY_DATABASE, HISTORY_KEY } = await import('../redis.ts');
        note(
          `${HISTORY_KEY} in database ${HISTORY_DATABASE} of the router's Redis is empty; on a real router its main daemon writes it, some seconds after each change.`,
        );
      }
    },
  };
}

/** `holdfast router diff`: what differs between two configs of the history, or one and the active (R31). */
export function diffCommand(settings: CommandSettings): CommandDefinition {
  return {
    name: 'router diff <entry> [other]',
    summary: 'Shows what changed from one config of the history to another; secrets as fingerprints',
    example: 'holdfast router diff 2 active',
    async run([entry = '', other = 'active'], _flags, context) {
      const { dataDir, json, print, note, terminal } = context;
      const { differenceOf, fingerprintOf, showChanges } = await import('./leaves.ts');
      const target = openTarget({}, context, settings);
      const find = (wanted: string) => findEntry(target, wanted);
      const [before, after] = [await find(entry), await find(other)];
      const changes = differenceOf(before.config, after.config, fingerprintOf(dataDir));
      if (json) return print(JSON.stringify({ before: before.label, after: after.label, changes }));
      note(`from ${before.label} to ${after.label}`);
      showChanges(changes, print, terminal.paint);
      if (changes.length === 0) print('No difference.');
    },
  };
}

/** More than any history keeps. */
const ALL = 100_000;
/** A shorter argument is a place in the list. */
const SHORTEST_PREFIX = 4;

/** A config of the history, whole: read from the store with the keys of the data folder, because the HTTP API shows no values. */
export interface Found {
  readonly label: string;
  readonly config: NetworkConfig;
}

/**
 * @param wanted `active`, `seed`, a place in `router history` (1 is the newest), or the beginning of an ncid
 * @throws HF_ROUTER_ENTRY there is no such entry, or several
 * @throws HF_ROUTER_STORE the history is not kept on this data folder
 */
export function findEntry(target: RouterTarget, wanted: string): Promise<Found> {
  return target.readStore((store) => (wanted === 'active' ? activeOf(store) : entryOf(store, wanted)));
}

async function activeOf(store: ReadableStore): Promise<Found> {
  const active = await store.active();
  if (!active) return none('active', 'the store is empty');
  return {
    label: `active (${active.ncid})`,
    config: configOf(active.body, `the active config, ncid ${active.ncid}`),
  };
}

async function entryOf(store: ReadableStore, wanted: string): Promise<Found> {
  const entries = await store.history(ALL);
  const isPlace = /^\d+$/.test(wanted) && wanted.length < SHORTEST_PREFIX;
  const place = Number(wanted);
  if (wanted === 'seed') {
    const seed = entries.find(({ op }) => op === 'seed');
    return seed
      ? found(store, seed)
      : none(wanted, 'what was there before the first write is not kept any more');
  }
  if (isPlace) {
    const entry = entries[place - 1];
    if (!entry) return none(wanted, `the history has ${entries.length} entries`);
    return found(store, entry);
  }
  if (wanted.length < SHORTEST_PREFIX)
    return none(wanted, `an ncid is named by ${SHORTEST_PREFIX} characters or more`);
  const matching = entries.filter(({ ncid }) => ncid.startsWith(wanted));
  const [first] = matching;
  if (!first) return none(wanted, `no ncid of the ${entries.length} entries begins so`);
  if (matching.some(({ ncid }) => ncid !== first.ncid)) return none(wanted, `${matching.length} begin so`);
  return found(store, first);
}

/** A history that another daemon wrote may contain entries that are no configs. */
async function found(store: ReadableStore, { ncid, score }: HistoryEntry): Promise<Found> {
  const entry = await store.entry(ncid);
  if (!entry) return none(ncid, 'it has left the history just now');
  const label = `${ncid} of ${new Date(score * 1000).toISOString().slice(0, 19)}Z`;
  return { label, config: configOf(entry.body, `history entry ${ncid}`) };
}

/** A real daemon stores the `reqId` of a write with its config; it is no part of either. */
function configOf(body: string, name: string): NetworkConfig {
  return withoutControlFields(parseJsonObject(body, name));
}

function none(entry: string, reason: string): never {
  throw new RouterError('HF_ROUTER_ENTRY', { entry, reason });
}
