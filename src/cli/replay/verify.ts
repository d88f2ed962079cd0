import { setImmediate as turn } from 'node:timers/promises';
import { divergenceLines } from '../../core/host/divergence-text.ts';
import type { CommandContext, CommandRun } from '../../core/host/plugin/command.ts';
import { duration, jsonText } from '../../core/host/terminal.ts';
import { CoreError } from '../../core/kernel/errors/core-error.ts';
import type { SqliteReader } from '../../core/kernel/log/sqlite-reader.ts';
import type { NotCompared, ReplayReport } from '../../core/kernel/replay/verify.ts';
import { verifySteps } from '../../core/kernel/replay/verify-log.ts';
import { FAILED, OK } from '../failure.ts';
import { sourcesOf, withLog } from '../log/source.ts';

/** `holdfast replay verify`: the whole log through its machines again, and its chain checked (C4). */
export const verifyReplay: CommandRun = async (sources, flags, context) => {
  const { json, print, terminal } = context;
  const began = performance.now();
  const report = await withLog(sourcesOf(sources, context), (log) => verify(log, context));
  const { records, actors, notCompared, divergence } = report;
  const left = notCompared.reduce((sum, one) => sum + one.records, 0);
  const ok = !divergence && !(flags.strict && left > 0);
  const ms = Math.round(performance.now() - began);
  if (json) {
    const document = { ok, records, actors, notCompared, chain: 'ok', ms, divergence };
    print(jsonText(document, 2));
    return ok ? OK : FAILED;
  }
  if (divergence) {
    for (const line of divergenceLines(divergence, terminal)) print(line);
    print('');
    const { seq, actor } = divergence.record;
    throw new CoreError('HF_REPLAY_DIVERGED', { seq, actor });
  }
  const verdict = terminal.paint(
    'green',
    left === 0
      ? 'Every record is decided again as it stands in the log.'
      : 'Every record that could be compared is decided again as it stands in the log.',
  );
  print(left < records || records === 0 ? verdict : 'No record could be compared.');
  print(`${records} records of ${actors} actors, 0 divergences, chain ok, ${duration(ms)}`);
  for (const line of notCompared.map(notComparedLine)) print(terminal.paint('yellow', line));
  if (!ok) throw new CoreError('HF_REPLAY_NOT_COMPARED', { records: left });
  return OK;
};

function notComparedLine({ type, version, current, records }: NotCompared): string {
  const why =
    current === undefined
      ? 'no plugin here registers that type'
      : `version ${current} is here, and that machine is not kept`;
  return `${records} records of ${type} were not compared: version ${version} of its machine made them; ${why}.`;
}

async function verify(log: SqliteReader, context: CommandContext): Promise<ReplayReport> {
  const { terminal, signal } = context;
  const definitions = new Map((await context.actors()).map((definition) => [definition.type, definition]));
  const newest = log.lastSeq();
  const steps = verifySteps(log, definitions);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    terminal.progress(`verified ${value} of ${newest} records`);
    await turn();
    signal.throwIfAborted();
  }
}
