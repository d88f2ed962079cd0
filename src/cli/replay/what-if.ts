import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { HostError } from '../../core/host/errors/host-error.ts';
import { runSteps } from '../../core/host/history/pace.ts';
import { shownDifference } from '../../core/host/history/shown.ts';
import { PluginWords } from '../../core/host/history/words.ts';
import type { CommandContext, CommandRun } from '../../core/host/plugin/command.ts';
import { jsonText } from '../../core/host/terminal.ts';
import type { ActorDefinition } from '../../core/kernel/actors/definition.ts';
import { HoldfastError } from '../../core/kernel/errors/holdfast-error.ts';
import { KernelError } from '../../core/kernel/errors/kernel-error.ts';
import { isObject } from '../../core/kernel/json.ts';
import type { Change } from '../../core/kernel/replay/changes.ts';
import { alterEvent, parseInserted } from '../../core/kernel/replay/changes.ts';
import type { Difference } from '../../core/kernel/replay/findings.ts';
import { whatIfSteps } from '../../core/kernel/replay/what-if.ts';
import { withChosenLog } from '../log/chosen.ts';
import { wholeNumber } from '../log/flags.ts';
import { recordProgress } from '../log/progress.ts';
import { sourceOf } from '../log/source.ts';
import { whatIfLines } from './what-if-text.ts';

const NAME = 'replay what-if';

/** `holdfast replay what-if`: replays the log with changes, and shows which decisions differ (C8). */
export const whatIf: CommandRun = async ([argument], flags, context) => {
  const { json, print, terminal } = context;
  const set = pairs(flags.set);
  const changes: Change[] = [
    ...((flags.drop as string[] | undefined) ?? []).map((text): Change => {
      return { kind: 'drop', seq: wholeNumber(text, '--drop', 1, NAME) };
    }),
    ...set.pairs.map(([seq, patch]) => alterEvent(patch, seq)),
    ...(typeof flags.insert === 'string' ? parseInserted(readText(flags.insert)) : []),
  ];
  const other = typeof flags.machines === 'string' ? await machinesOf(flags.machines) : [];
  if (changes.length === 0 && other.length === 0) {
    const reason = 'Name a change with --drop, --set, --insert or --machines.';
    throw new HostError('HF_CLI_USAGE', { reason, command: NAME });
  }
  const limit = wholeNumber(flags.limit, '--limit', 0, NAME) || Number.POSITIVE_INFINITY;
  const definitions = new Map(
    (await configuredActors(context, other.length > 0)).map((one) => [one.type, one]),
  );
  for (const definition of other) definitions.set(definition.type, definition);
  const named = argument ?? set.rest;
  const choice = {
    command: NAME,
    given: named === undefined ? [] : [named],
    here: () => sourceOf(named, context),
  };
  const answer = await withChosenLog(flags, choice, context, async (log) => {
    const steps = whatIfSteps(log, definitions, changes, other.length > 0);
    return runSteps(steps, context.signal, recordProgress('Deciding again', log, context));
  });
  const show = (all: readonly Difference[]) => all.map(shownDifference);
  const { differences, remembered } = answer;
  const shown = { ...answer, differences: show(differences), remembered: show(remembered) };
  if (json) return print(jsonText(shown, 2));
  const words = new PluginWords(context);
  await words.prepare(differences);
  for (const line of whatIfLines(shown, limit, terminal, words.describe)) print(line);
};

/** `--set` takes two words at a time; a single word at the end is the source. @throws HF_CLI_USAGE */
function pairs(values: unknown): { pairs: [number, unknown][]; rest?: string } {
  const words = Array.isArray(values) ? (values as string[]) : [];
  const found: [number, unknown][] = [];
  for (let index = 0; index + 1 < words.length; index += 2) {
    const seq = wholeNumber(words[index], '--set', 1, NAME);
    try {
      found.push([seq, JSON.parse(words[index + 1] ?? '')]);
    } catch {
      const reason = `--set ${seq} takes a patch in JSON, quoted for the shell.`;
      throw new HostError('HF_CLI_USAGE', { reason, command: NAME });
    }
  }
  const rest = words.length % 2 === 1 ? words.at(-1) : undefined;
  if (words.length === 1) {
    const reason = '--set takes a record number and a patch in JSON.';
    throw new HostError('HF_CLI_USAGE', { reason, command: NAME });
  }
  return { pairs: found, ...(rest !== undefined && { rest }) };
}

/** The configured actors; none where the user brings machines and there is no configuration. */
async function configuredActors(
  { actors }: CommandContext,
  hasOwn: boolean,
): Promise<readonly ActorDefinition[]> {
  try {
    return await actors();
  } catch (error) {
    if (hasOwn && error instanceof HoldfastError && error.code === 'HF_REPLAY_MACHINES') return [];
    throw error;
  }
}

/** @throws HF_REPLAY_CHANGE */
async function machinesOf(module: string): Promise<ActorDefinition[]> {
  const { serveOwnModules } = await import('../../core/host/config/load.ts');
  serveOwnModules();
  let exported: Record<string, unknown>;
  try {
    exported = await import(pathToFileURL(resolve(module)).href);
  } catch (error) {
    const reason = `${module} cannot be imported: ${error instanceof Error ? error.message.split('\n')[0] : error}`;
    throw new KernelError('HF_REPLAY_CHANGE', { reason }, { cause: error });
  }
  const found = Object.values(exported).flat().filter(isDefinition);
  if (found.length === 0) {
    const reason = `${module} exports nothing that defineActor made`;
    throw new KernelError('HF_REPLAY_CHANGE', { reason });
  }
  return found;
}

function isDefinition(exported: unknown): exported is ActorDefinition {
  return (
    isObject(exported) &&
    typeof exported.type === 'string' &&
    isObject(exported.machine) &&
    typeof exported.version === 'number'
  );
}

/** @throws HF_REPLAY_CHANGE */
function readText(file: string): string {
  try {
    return readFileSync(resolve(file), 'utf8');
  } catch (error) {
    const reason = `${file} cannot be read: ${error instanceof Error ? error.message : error}`;
    throw new KernelError('HF_REPLAY_CHANGE', { reason }, { cause: error });
  }
}
