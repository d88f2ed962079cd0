import { type EnteredState, waits } from '../../core/host/history/entered-state.ts';
import { shownState } from '../../core/host/history/shown.ts';
import type { Terminal } from '../../core/host/terminal.ts';
import {
  cut,
  duration,
  jsonLines,
  plainText,
  shortFields,
  stateName,
  timestamp,
} from '../../core/host/terminal.ts';
import type { Moment } from '../../core/kernel/actors/recover.ts';
import type { ActorState } from '../../core/kernel/actors/transition.ts';
import { diffContext, jsonEqual } from '../../core/kernel/json.ts';

/** Every actor at a moment; with `whole` each context as JSON, otherwise as much as fits on a line. */
export function momentLines(
  moment: Pick<Moment, 'seq' | 'at'>,
  actors: readonly EnteredState[],
  terminal: Terminal,
  whole: boolean,
): string[] {
  const { paint, columns } = terminal;
  return [
    `After record ${moment.seq}, ${timestamp(moment.at, 'ms')}:`,
    ...actors.flatMap(({ stateSince, ...raw }) => {
      const state = shownState(raw);
      const head = `${paint('bold', plainText(state.ref))}  ${plainText(stateName(state.value))}${state.done ? ' (final)' : ''}`;
      const context = state.context as Readonly<Record<string, unknown>>;
      const short = cut(shortFields(context).join('  '), Math.max(20, columns - 4));
      return [
        '',
        `${head}  ${paint('dim', sinceText(state, stateSince, moment.at))}`,
        ...(whole ? jsonLines(context, '    ') : short === '' ? [] : [`    ${short}`]),
        ...waits(state, moment.at).map((line) => `    ${paint('yellow', plainText(line))}`),
      ];
    }),
  ];
}

/** Since when an actor is in its state, and which record changed it last. */
function sinceText({ seq, at }: ActorState, entered: EnteredState['stateSince'], now: number): string {
  const before = (time: number) => `${duration(Math.max(0, now - time))} before`;
  if (entered?.seq === seq) return `since record ${seq}, ${before(at)}`;
  const since = entered
    ? `since record ${entered.seq}, ${before(entered.at)}`
    : 'since before this log begins';
  return `${since}; last touched by record ${seq}, ${before(at)}`;
}

/** The differences between two moments, actor by actor. */
export function differenceLines(before: Moment, after: Moment, terminal: Terminal): string[] {
  const { paint } = terminal;
  const then = new Map(before.actors.map((state) => [state.ref, shownState(state)]));
  const lines = after.actors.map(shownState).flatMap((state) => {
    const old = then.get(state.ref);
    if (old && old.seq === state.seq) return [];
    const from = old ? stateName(old.value) : '(did not exist)';
    const to = stateName(state.value);
    const change = diffContext(old?.context ?? {}, state.context);
    const [had, has] = [old ? waits(old, before.at) : [], waits(state, after.at)];
    const same = from === to && !change && jsonEqual(had, has);
    return [
      '',
      `${paint('bold', plainText(state.ref))}  ${plainText(from === to ? `still ${to}` : `${from} → ${to}`)}`,
      ...(same ? ['    changed in between, and is the same again'] : []),
      ...(change ? jsonLines(change, '    ') : []),
      ...had.filter((line) => !has.includes(line)).map((line) => `  ${paint('red', plainText(`- ${line}`))}`),
      ...has
        .filter((line) => !had.includes(line))
        .map((line) => `  ${paint('green', plainText(`+ ${line}`))}`),
    ];
  });
  const head = `From record ${before.seq} (${timestamp(before.at, 'ms')}) to record ${after.seq}, ${duration(after.at - before.at)} later:`;
  return lines.length > 0
    ? [head, paint('dim', 'contexts show what changed; null: the field was removed'), ...lines]
    : [head, 'No actor differs.'];
}
