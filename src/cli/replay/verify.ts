import { divergenceLines } from '../../core/host/divergence-text.ts';
import { runSteps } from '../../core/host/history/pace.ts';
import type { CommandContext, CommandRun } from '../../core/host/plugin/command.ts';
import { duration, jsonText } from '../../core/host/terminal.ts';
import type { SqliteReader } from '../../core/kernel/log/sqlite-reader.ts';
import type { NotCompared, ReplayReport } from '../../core/kernel/replay/verify.ts';
import { verifySteps } from '../../core/kernel/replay/verify-log.ts';
import { CliError } from '../errors.ts';
import { FAILED, OK } from '../failure.ts';
import { recordProgress } from '../log/progress.ts';
import { sourcesOf, withLog } from '../log/source.ts';

/** `holdfast replay verify`: replays the whole log and checks its chain (C4). */
export const verifyReplay: CommandRun = async (sources, flags, context) => {
  const { json, print, terminal } = context;
  if (flags.host !== undefined) {
    const { verifyHosts } = await import('./verify-hosts.ts');
    return verifyHosts(sources, flags, context, replayLog);
  }
  const began = performance.now();
  const report = await withLog(sourcesOf(sources, context), (log) => replayLog(log, context));
  const { records, actors, notCompared, divergence, unknown = 0 } = report;
  const left = notCompared.reduce((sum, one) => sum + one.records, unknown);
  const ok = !divergence && !(flags.strict && left > 0);
  const ms = Math.round(performance.now() - began);
  if (json) {
    const document = {
      ok,
      records,
      actors,
      notCompared,
      chain: 'ok',
      ms,
      divergence,
      ...(unknown > 0 && { unknown }),
    };
    print(jsonText(document, 2));
    return ok ? OK : FAILED;
  }
  if (divergence) {
    for (const line of divergenceLines(divergence, terminal)) print(line);
    print('');
    const { seq, actor } = divergence.record;
    throw new CliError('HF_REPLAY_DIVERGED', { seq, actor });
  }
  const verdict = terminal.paint(
    'green',
    left === 0
      ? 'Every decision was repeated with the same result.'
      : 'Every decision that could be compared was repeated with the same result.',
  );
  print(left < records || records === 0 ? verdict : 'No record could be compared.');
  print(`${records} records of ${actors} actors, 0 divergences, chain ok, ${duration(ms)}`);
  for (const line of notCompared.map(notComparedLine)) print(terminal.paint('yellow', line));
  if (unknown > 0)
    print(
      terminal.paint(
        'yellow',
        `${unknown} records behind a gap were not compared: no state was saved before them.`,
      ),
    );
  if (!ok) throw new CliError('HF_REPLAY_NOT_COMPARED', { records: left });
  return OK;
};

function notComparedLine({ type, version, current, records }: NotCompared): string {
  const why =
    current === undefined ? 'no plugin here declares that type' : `only version ${current} is available`;
  return `${records} records of ${type} were not compared: they were made by version ${version} of its machine, and ${why}.`;
}

/** Replays one log. @throws HF_LOG_CORRUPT a record is not what was written */
async function replayLog(log: SqliteReader, context: CommandContext): Promise<ReplayReport> {
  const definitions = new Map((await context.actors()).map((definition) => [definition.type, definition]));
  return runSteps(verifySteps(log, definitions), context.signal, recordProgress('Verifying', log, context));
}
