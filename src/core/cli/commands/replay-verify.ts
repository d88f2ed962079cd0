import { setImmediate as turn } from 'node:timers/promises';
import { HoldfastError } from '../../errors/index.ts';
import type { CommandContext, CommandDefinition } from '../../plugin/command.ts';
import type { ReplayReport } from '../../replay/index.ts';
import { FAILED, OK } from '../failure.ts';

/** `holdfast replay verify`: the whole log through its machines again, and its chain checked (C4). */
export const replayVerify: CommandDefinition = {
  name: 'replay verify [source]',
  summary: 'check the chain of the log, and that its machines decide every record again as it stands',
  example: 'holdfast replay verify --data-dir .holdfast',
  async run([source], _flags, context) {
    const { json, print, terminal } = context;
    const { duration, jsonText, sourceOf, withLog } = await import('../log-view/index.ts');
    const began = performance.now();
    const report = await withLog(sourceOf(source, context), (log) => verify(log, context));
    const { records, actors, unchecked, divergence } = report;
    const ms = Math.round(performance.now() - began);
    if (json) {
      const document = { ok: !divergence, records, actors, unchecked, chain: 'ok', ms, divergence };
      print(jsonText(document, 2));
      return divergence ? FAILED : OK;
    }
    if (divergence) {
      const { divergenceLines } = await import('../divergence.ts');
      for (const line of divergenceLines(divergence, terminal)) print(line);
      print('');
      const { seq, actor } = divergence.record;
      throw new HoldfastError('HF_REPLAY_DIVERGED', { seq, actor });
    }
    const verdict = terminal.paint('green', 'Every record is decided again as it stands in the log.');
    print(unchecked < records || records === 0 ? verdict : 'No record could be checked.');
    print(`${records} records of ${actors} actors, 0 divergences, chain ok, ${duration(ms)}`);
    if (unchecked > 0) {
      print(
        terminal.paint('yellow', `${unchecked} records are of actor types that no plugin here registers.`),
      );
    }
    return OK;
  },
};

async function verify(
  log: Parameters<typeof import('../../replay/index.ts').verifySteps>[0],
  context: CommandContext,
): Promise<ReplayReport> {
  const { terminal, signal } = context;
  const { verifySteps } = await import('../../replay/index.ts');
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
