import type { CommandRun } from '../../core/host/plugin/command.ts';
import { duration, jsonText, plainText, stateName, timeOfDay, wrapped } from '../../core/host/terminal.ts';
import { momentAt } from '../../core/kernel/actors/recover.ts';
import { diffContext } from '../../core/kernel/json.ts';
import { causesOf, sentenceOf } from '../../core/kernel/replay/explain.ts';
import { wholeNumber } from '../log/flags.ts';
import { seqOfPlace } from '../log/place.ts';
import { actorMatcher } from '../log/select.ts';
import { shown, sourceOf, withLog } from '../log/source.ts';
import { differenceLines, momentLines, shownState } from '../log/states.ts';
import { PluginWords } from '../log/words.ts';

/** `holdfast replay at`: the state of every actor at a place (C7). */
export const showMoment: CommandRun = async ([place = '', source], flags, context) => {
  const whole = typeof flags.actor === 'string';
  const isWanted = typeof flags.actor === 'string' ? actorMatcher(flags.actor) : () => true;
  const moment = await withLog(
    sourceOf(source, context),
    async (log) => momentAt(log, await seqOfPlace(log, place)),
    context.signal,
  );
  const actors = moment.actors.filter(({ ref }) => isWanted(ref));
  if (context.json) {
    context.print(jsonText({ ...moment, actors: actors.map(shownState) }, 2));
    return;
  }
  for (const line of momentLines({ ...moment, actors }, context.terminal, whole)) context.print(line);
};

/** `holdfast replay diff`: how the actors changed between two places (C7). */
export const showDifference: CommandRun = async ([a = '', b = '', source], _flags, context) => {
  const [before, after] = await withLog(
    sourceOf(source, context),
    async (log) => {
      const seqs = [await seqOfPlace(log, a), await seqOfPlace(log, b)].sort((x, y) => x - y);
      return [momentAt(log, seqs[0] ?? 0), momentAt(log, seqs[1] ?? 0)] as const;
    },
    context.signal,
  );
  if (!context.json) {
    for (const line of differenceLines(before, after, context.terminal)) context.print(line);
    return;
  }
  const then = new Map(before.actors.map((state) => [state.ref, shownState(state)]));
  const actors = after.actors.map(shownState).flatMap((state) => {
    const old = then.get(state.ref);
    if (old?.seq === state.seq) return [];
    return [
      {
        ref: state.ref,
        from: old?.value,
        to: state.value,
        context: diffContext(old?.context, state.context),
      },
    ];
  });
  context.print(jsonText({ from: before.seq, to: after.seq, actors }, 2));
};

/** `holdfast replay explain`: the chain of causes of a record, in sentences (C7). */
export const explainRecord: CommandRun = async ([text, source], _flags, context) => {
  const seq = wholeNumber(text, 'The record', 1, 'replay explain');
  const chain = await withLog(sourceOf(source, context), async (log) => causesOf(log, seq), context.signal);
  const words = new PluginWords(context);
  await words.prepare(chain.flatMap(({ record, cause }) => (cause ? [record, cause] : [record])));
  const wording = {
    describe: words.describe,
    state: stateName,
    duration: duration,
  };
  const steps = chain.map(({ record, cause, cut }) => {
    const step = {
      record: shown(record),
      ...(cause && { cause: shown(cause) }),
      ...(cut && { cut }),
    };
    return { seq: record.seq, at: record.at, text: plainText(sentenceOf(step, wording)) };
  });
  if (context.json) return context.print(jsonText(steps, 2));
  for (const step of steps) {
    context.print(context.terminal.paint('dim', `record ${step.seq}, ${timeOfDay(step.at)}`));
    for (const line of wrapped(step.text, Math.min(context.terminal.columns, 100) - 4))
      context.print(`    ${line}`);
  }
};
