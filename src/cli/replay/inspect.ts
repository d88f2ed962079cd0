import { differencesOf, type EnteredState, enteredState } from '../../core/host/history/entered-state.ts';
import { explanationOf } from '../../core/host/history/explanation.ts';
import { runSteps } from '../../core/host/history/pace.ts';
import { actorMatcher } from '../../core/host/history/select.ts';
import { shownState } from '../../core/host/history/shown.ts';
import { PluginWords } from '../../core/host/history/words.ts';
import type { CommandRun } from '../../core/host/plugin/command.ts';
import { jsonText, timeOfDay, wrapped } from '../../core/host/terminal.ts';
import { momentSteps } from '../../core/kernel/actors/recover.ts';
import { sourcesFrom } from '../log/archived.ts';
import { wholeNumber } from '../log/flags.ts';
import { seqOfPlace } from '../log/place.ts';
import { noteDamage, sourcesOf, withLog } from '../log/source.ts';
import { differenceLines, momentLines } from '../log/states.ts';

/** `holdfast replay at`: the state of every actor at a place (C7). */
export const showMoment: CommandRun = async ([place = '', ...sources], flags, context) => {
  const whole = typeof flags.actor === 'string';
  const isWanted = typeof flags.actor === 'string' ? actorMatcher(flags.actor) : () => true;
  const { moment, actors } = await withLog(
    sources.length > 0 ? sourcesOf(sources, context) : await sourcesFrom([place], context),
    async (log) => {
      const moment = await runSteps(momentSteps(log, await seqOfPlace(log, place)), context.signal);
      const actors = moment.actors.filter(({ ref }) => isWanted(ref));
      const entered: EnteredState[] = [];
      for (const state of actors) entered.push(await enteredState(log, state, context.signal));
      return { moment, actors: entered };
    },
    context.signal,
  );
  if (context.json) {
    const states = actors.map(({ stateSince, ...state }) => {
      return { ...shownState(state), ...(stateSince && { stateSince: stateSince.seq }) };
    });
    context.print(jsonText({ ...moment, actors: states }, 2));
    return;
  }
  for (const line of momentLines(moment, actors, context.terminal, whole)) context.print(line);
};

/** `holdfast replay diff`: how the actors changed between two places (C7). */
export const showDifference: CommandRun = async ([a = '', b = '', ...sources], _flags, context) => {
  const [before, after] = await withLog(
    sources.length > 0 ? sourcesOf(sources, context) : await sourcesFrom([a, b], context, true),
    async (log) => {
      const seqs = [await seqOfPlace(log, a), await seqOfPlace(log, b)].sort((x, y) => x - y);
      const at = (seq = 0) => runSteps(momentSteps(log, seq), context.signal);
      return [await at(seqs[0]), await at(seqs[1])] as const;
    },
    context.signal,
  );
  if (!context.json) {
    for (const line of differenceLines(before, after, context.terminal)) context.print(line);
    return;
  }
  const actors = differencesOf(before, after);
  context.print(jsonText({ from: before.seq, to: after.seq, actors }, 2));
};

/** `holdfast replay explain`: the chain of causes of a record, in sentences (C7). */
export const explainRecord: CommandRun = async ([text, ...sources], _flags, context) => {
  const seq = wholeNumber(text, 'The record', 1, 'replay explain');
  const read = sources.length > 0 ? sourcesOf(sources, context) : await sourcesFrom([text], context);
  noteDamage(read, context);
  const words = new PluginWords(context);
  const steps = await withLog(read, (log) => explanationOf(log, seq, words, context), context.signal);
  if (context.json) return context.print(jsonText(steps, 2));
  for (const step of steps) {
    context.print(context.terminal.paint('dim', `record ${step.seq}, ${timeOfDay(step.at)}`));
    for (const line of wrapped(step.text, Math.min(context.terminal.columns, 100) - 4))
      context.print(`    ${line}`);
  }
};
