import { differencesOf, type EnteredState, enteredState } from '../../core/host/history/entered-state.ts';
import { explanationOf } from '../../core/host/history/explanation.ts';
import { runSteps } from '../../core/host/history/pace.ts';
import { actorMatcher } from '../../core/host/history/select.ts';
import { shownState } from '../../core/host/history/shown.ts';
import { PluginWords } from '../../core/host/history/words.ts';
import type { CommandContext, CommandRun } from '../../core/host/plugin/command.ts';
import { jsonText, timeOfDay, wrapped } from '../../core/host/terminal.ts';
import { type Moment, momentSteps } from '../../core/kernel/actors/recover.ts';
import type { SqliteReader } from '../../core/kernel/log/sqlite-reader.ts';
import { sourcesFrom } from '../log/archived.ts';
import { withChosenLog } from '../log/chosen.ts';
import { wholeNumber } from '../log/flags.ts';
import { seqOfPlace } from '../log/place.ts';
import { noteDamage, sourcesOf } from '../log/source.ts';
import { differenceLines, momentLines } from '../log/states.ts';

/** A moment, and what led its actors into their states. */
interface SeenMoment {
  readonly moment: Moment;
  readonly actors: readonly EnteredState[];
}

/** `holdfast replay at`: the state of every actor at a place (C7). */
export const showMoment: CommandRun = async ([place = '', ...given], flags, context) => {
  const { print, terminal } = context;
  const whole = typeof flags.actor === 'string';
  const isWanted = typeof flags.actor === 'string' ? actorMatcher(flags.actor) : () => true;
  const seenAt = async (log: SqliteReader, seq: number): Promise<SeenMoment> => {
    const moment = await runSteps(momentSteps(log, seq), context.signal);
    const actors: EnteredState[] = [];
    for (const state of moment.actors.filter(({ ref }) => isWanted(ref)))
      actors.push(await enteredState(log, state, context.signal));
    return { moment, actors };
  };
  const linesOf = ({ moment, actors }: SeenMoment) => momentLines(moment, actors, terminal, whole);
  const command = 'replay at';
  if (flags.host === 'all') {
    const { lookAtEveryHost, printOfHosts } = await import('./every-host.ts');
    const all = await lookAtEveryHost([place], { command, given }, context, (log, [seq = 0]) =>
      seenAt(log, seq),
    );
    if (!context.json) return printOfHosts(all, linesOf, context);
    return print(jsonText({ hosts: all.map(({ host, found }) => ({ host, ...momentDocument(found) })) }, 2));
  }
  const here = () => (given.length > 0 ? sourcesOf(given, context) : sourcesFrom([place], context));
  const seen = await withChosenLog(flags, { command, given, here }, context, async (log) =>
    seenAt(log, await seqOfPlace(log, place)),
  );
  if (context.json) return print(jsonText(momentDocument(seen), 2));
  for (const line of linesOf(seen)) print(line);
};

function momentDocument({ moment, actors }: SeenMoment) {
  const states = actors.map(({ stateSince, ...state }) => {
    return { ...shownState(state), ...(stateSince && { stateSince: stateSince.seq }) };
  });
  return { ...moment, actors: states };
}

/** Two moments, the earlier one first. */
type TwoMoments = readonly [before: Moment, after: Moment];

/** `holdfast replay diff`: how the actors changed between two places (C7). */
export const showDifference: CommandRun = async ([a = '', b = '', ...given], flags, context) => {
  const { print, terminal } = context;
  const linesOf = ([before, after]: TwoMoments) => differenceLines(before, after, terminal);
  const command = 'replay diff';
  if (flags.host === 'all') {
    const { lookAtEveryHost, printOfHosts } = await import('./every-host.ts');
    const all = await lookAtEveryHost([a, b], { command, given }, context, (log, seqs) =>
      bothMoments(log, seqs, context),
    );
    if (!context.json) return printOfHosts(all, linesOf, context);
    return print(
      jsonText({ hosts: all.map(({ host, found }) => ({ host, ...differenceDocument(found) })) }, 2),
    );
  }
  const here = () => (given.length > 0 ? sourcesOf(given, context) : sourcesFrom([a, b], context, true));
  const both = await withChosenLog(flags, { command, given, here }, context, async (log) =>
    bothMoments(log, [await seqOfPlace(log, a), await seqOfPlace(log, b)], context),
  );
  if (context.json) return print(jsonText(differenceDocument(both), 2));
  for (const line of linesOf(both)) print(line);
};

async function bothMoments(
  log: SqliteReader,
  seqs: readonly number[],
  { signal }: CommandContext,
): Promise<TwoMoments> {
  const [first = 0, second = 0] = seqs.toSorted((x, y) => x - y);
  return [await runSteps(momentSteps(log, first), signal), await runSteps(momentSteps(log, second), signal)];
}

function differenceDocument([before, after]: TwoMoments) {
  return { from: before.seq, to: after.seq, actors: differencesOf(before, after) };
}

/** `holdfast replay explain`: the chain of causes of a record, in sentences (C7). */
export const explainRecord: CommandRun = async ([text, ...given], flags, context) => {
  const command = 'replay explain';
  const seq = wholeNumber(text, 'The record', 1, command);
  const here = async () => {
    const read = given.length > 0 ? sourcesOf(given, context) : await sourcesFrom([text], context);
    noteDamage(read, context);
    return read;
  };
  const words = new PluginWords(context);
  const steps = await withChosenLog(flags, { command, given, here }, context, (log) =>
    explanationOf(log, seq, words, context),
  );
  if (context.json) return context.print(jsonText(steps, 2));
  for (const step of steps) {
    context.print(context.terminal.paint('dim', `record ${step.seq}, ${timeOfDay(step.at)}`));
    for (const line of wrapped(step.text, Math.min(context.terminal.columns, 100) - 4))
      context.print(`    ${line}`);
  }
};
