import { setTimeout as delay } from 'node:timers/promises';
import { HostError } from '../../core/host/errors/host-error.ts';
import { askInstance, type InstanceAddress } from '../../core/host/operations/control-client.ts';
import type { CommandContext, CommandDefinition } from '../../core/host/plugin/command.ts';
import { passingLine } from '../../core/host/progress.ts';
import type { Result } from '../../machines/restore/drill-shapes.ts';
import { progressText, secondsText, sourceText, summaryLines, timeText } from './command-output.ts';
import { CANCEL_PATH, DRILL_PATH, type DrillStatus, STATUS_PATH } from './control.ts';

const LOOK_MS = 100;
/** After Ctrl-C the drill is cancelled, and the command waits this long for its clean-up. */
const PATIENCE_MS = 30_000;

/** `holdfast restore drill`: restores, compares, cleans up, and prints what was proven. */
export const drillCommand: CommandDefinition = {
  name: 'restore drill',
  summary: 'Restores a backup into a scratch instance and proves it; exit 1 when it is not proven',
  example: 'holdfast restore drill --path a',
  flags: [
    { flags: '--path <path>', summary: "a: the store's own snapshot; b: a copy of its volume", default: 'a' },
    { flags: '--snapshot <name>', summary: 'this snapshot or backup, not the newest good one' },
  ],
  async run(_args, { path, snapshot }, context) {
    if (path !== 'a' && path !== 'b') {
      throw new HostError('HF_CLI_USAGE', { reason: '--path is a or b.', command: 'restore drill' });
    }
    const body = { path, ...(typeof snapshot === 'string' && { snapshot }) };
    const { id, correlation } = await ask<{ id: string; correlation: string }>(context, DRILL_PATH, body);
    const end = await follow(context, id);
    return tell(context, end, correlation);
  },
};

interface End {
  readonly result: Result;
  readonly isClean: boolean;
}

/** Shows the phases as they begin. Ctrl-C cancels the drill and waits for its clean-up. */
async function follow(context: CommandContext, id: string): Promise<End> {
  const { dataDir, json, note, terminal, signal } = context;
  const began = performance.now();
  const show = passingLine(context);
  let patience: AbortSignal | undefined;
  let last = '';
  for (;;) {
    if (signal.aborted && !patience) {
      patience = AbortSignal.timeout(PATIENCE_MS);
      const reason = `it was interrupted by ${signal.reason}`;
      await ask({ dataDir, signal: patience }, CANCEL_PATH, { reason });
    }
    const status = await statusOf({ dataDir, signal: patience ?? new AbortController().signal });
    const end = endOf(status, id);
    if (end) {
      terminal.progress('');
      return end;
    }
    if (!json && status.state !== last)
      note(`${secondsText(performance.now() - began).padStart(7)}  ${phaseText(status)}`);
    last = status.state;
    show(() => progressText(status.state, status.progress));
    await delay(LOOK_MS);
  }
}

function phaseText({ state, source, place, failure }: DrillStatus): string {
  if (state === 'preparing' && source) return `preparing a scratch instance for ${sourceText(source)}`;
  if (state === 'recovering' && place !== undefined) return `recovering into ${place}`;
  if (state === 'cleaning' && failure) return `cleaning up after a failure while ${failure.phase}`;
  return state;
}

/** @returns undefined while it runs */
function endOf(
  { state, drill, results, source, place, report, failure }: DrillStatus,
  id: string,
): End | undefined {
  const result = results.findLast((one) => one.id === id);
  if (result) return { result, isClean: true };
  if (drill?.id !== id || state !== 'uncleaned') return undefined;
  const sofar = {
    ...drill,
    outcome: failure ? 'failed' : 'completed',
    endedAt: Date.now(),
    cleanFailures: 1,
    ...(source && { source }),
    ...(place !== undefined && { place }),
    ...(report && { report }),
    ...(failure && { failure }),
  } as const;
  return { result: sofar, isClean: false };
}

function tell(
  { json, print, terminal }: CommandContext,
  { result, isClean }: End,
  correlation: string,
): number {
  const isProven = result.outcome === 'completed';
  if (json) print(JSON.stringify({ ...result, proven: isProven, clean: isClean, correlation }));
  else {
    const lines = summaryLines(result, isClean);
    for (const line of lines.slice(0, -1)) print(line);
    print(terminal.paint(isProven ? 'green' : 'red', lines.at(-1) ?? ''));
    print(`evidence   holdfast log list --correlation ${correlation}`);
  }
  return isProven && isClean ? 0 : 1;
}

/** `holdfast restore status`: the drill that runs, what is left behind, and the last ones. */
export const statusCommand: CommandDefinition = {
  name: 'restore status',
  summary:
    'Shows the drill that runs, what a clean-up left, and the last drills; exit 1 when the newest was not proven',
  example: 'holdfast restore status',
  async run(_args, _flags, context) {
    const { json, print } = context;
    const status = await statusOf(context);
    const { state, progress, drill, results, cleanReason, cleanFailures = 0 } = status;
    const isWell = results.at(-1)?.outcome !== 'failed' && cleanFailures === 0;
    if (json) {
      print(JSON.stringify(status));
      return isWell ? 0 : 1;
    }
    if (drill) print(`drill ${drill.id} of path ${drill.path}: ${progressText(state, progress)}`);
    else if (state === 'cleaning' || state === 'uncleaned')
      print('what an earlier run left behind is being removed');
    else print('no drill runs');
    if (cleanReason !== undefined) {
      print(`its clean-up failed ${cleanFailures} times and is tried again: ${cleanReason}`);
    }
    for (const { id, path, by, outcome, at, endedAt, report, failure } of results.toReversed()) {
      const said =
        outcome === 'completed' ? report?.verdict : `failed while ${failure?.phase}: ${failure?.reason}`;
      print(`${timeText(at)}  ${path}  ${id}  ${by}  ${secondsText(endedAt - at)}  ${said}`);
    }
    return isWell ? 0 : 1;
  },
};

/** Asks the instance that runs on the data folder. @throws HF_CONTROL_UNREACHABLE, HF_RESTORE_RUNNING */
export const ask = <T extends object>(asking: InstanceAddress, path: string, body: object): Promise<T> =>
  askInstance<T>(asking, path, body, 'it runs no restore drills');

export const statusOf = (asking: InstanceAddress): Promise<DrillStatus> =>
  ask<DrillStatus>(asking, STATUS_PATH, {});
