import type { CommandRun } from '../../core/host/plugin/command.ts';
import { duration, jsonText, plainText, stateName, timeOfDay, wrapped } from '../../core/host/terminal.ts';
import { momentAt } from '../../core/kernel/actors/recover.ts';
import type { ActorState } from '../../core/kernel/actors/transition.ts';
import { diffContext } from '../../core/kernel/json.ts';
import type { SqliteReader } from '../../core/kernel/log/sqlite-reader.ts';
import { causesOf, sentenceOf } from '../../core/kernel/replay/explain.ts';
import { sourcesFrom } from '../log/archived.ts';
import { wholeNumber } from '../log/flags.ts';
import { seqOfPlace } from '../log/place.ts';
import { actorMatcher } from '../log/select.ts';
import { noteDamage, shown, sourcesOf, withLog } from '../log/source.ts';
import { differenceLines, type EnteredState, momentLines, shownState } from '../log/states.ts';
import { PluginWords } from '../log/words.ts';

/** `holdfast replay at`: the state of every actor at a place (C7). */
export const showMoment: CommandRun = async ([place = '', ...sources], flags, context) => {
  const whole = typeof flags.actor === 'string';
  const isWanted = typeof flags.actor === 'string' ? actorMatcher(flags.actor) : () => true;
  const { moment, actors } = await withLog(
    sources.length > 0 ? sourcesOf(sources, context) : await sourcesFrom([place], context),
    async (log) => {
      const moment = momentAt(log, await seqOfPlace(log, place));
      const actors = moment.actors.filter(({ ref }) => isWanted(ref));
      return { moment, actors: actors.map((state) => enteredState(log, state)) };
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

function enteredState(log: SqliteReader, state: ActorState): EnteredState {
  const seq = log.stateEntered(state.ref, state.seq);
  return { ...state, ...(seq !== undefined && { stateSince: { seq, at: log.record(seq).at } }) };
}

/** `holdfast replay diff`: how the actors changed between two places (C7). */
export const showDifference: CommandRun = async ([a = '', b = '', ...sources], _flags, context) => {
  const [before, after] = await withLog(
    sources.length > 0 ? sourcesOf(sources, context) : await sourcesFrom([a, b], context, true),
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
export const explainRecord: CommandRun = async ([text, ...sources], _flags, context) => {
  const seq = wholeNumber(text, 'The record', 1, 'replay explain');
  const read = sources.length > 0 ? sourcesOf(sources, context) : await sourcesFrom([text], context);
  noteDamage(read, context);
  const chain = await withLog(read, async (log) => causesOf(log, seq), context.signal);
  const words = new PluginWords(context);
  await words.prepare(chain.flatMap(({ record, cause }) => (cause ? [record, cause] : [record])));
  const wording = {
    describe: words.describe,
    state: stateName,
    duration: duration,
  };
  const steps = chain.map(({ record, cause, cut, since }) => {
    const { entered, decidedBy } = since ?? {};
    const step = {
      record: shown(record),
      ...(cause && { cause: shown(cause) }),
      ...(cut && { cut }),
      ...(since && {
        since: {
          ...(entered && { entered: shown(entered) }),
          ...(decidedBy && { decidedBy: { ...decidedBy, record: shown(decidedBy.record) } }),
        },
      }),
    };
    const pointers = {
      ...(entered && { stateSince: entered.seq }),
      ...(decidedBy && { decidedBy: decidedBy.record.seq }),
    };
    return { seq: record.seq, at: record.at, ...pointers, text: plainText(sentenceOf(step, wording)) };
  });
  if (context.json) return context.print(jsonText(steps, 2));
  for (const step of steps) {
    context.print(context.terminal.paint('dim', `record ${step.seq}, ${timeOfDay(step.at)}`));
    for (const line of wrapped(step.text, Math.min(context.terminal.columns, 100) - 4))
      context.print(`    ${line}`);
  }
};
