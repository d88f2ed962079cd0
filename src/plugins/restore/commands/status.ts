import type { CommandDefinition } from '../../../core/host/plugin/command.ts';
import { statusOf } from './ask.ts';
import { progressText, secondsText, timeText } from './text.ts';

/** `holdfast restore status`: the drill that runs, what is left behind, and the last ones. */
export const statusCommand: CommandDefinition = {
  name: 'restore status',
  summary:
    'The drill that runs, what a clean-up left, and the last drills; exit 1 when the newest was not proven',
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
