import { difference } from '../../core/host/divergence-text.ts';
import { headOf, inWords, short } from '../../core/host/history/decision-text.ts';
import type { Describe } from '../../core/host/history/words.ts';
import type { Terminal } from '../../core/host/terminal.ts';
import { cut, jsonLines, plainText, timestamp } from '../../core/host/terminal.ts';
import type { Decision } from '../../core/kernel/actors/transition.ts';
import { jsonEqual } from '../../core/kernel/json.ts';
import { delayOf } from '../../core/kernel/log/record.ts';
import type { Difference } from '../../core/kernel/replay/findings.ts';
import type { WhatIf } from '../../core/kernel/replay/what-if.ts';

/**
 * The result of a what-if (`-` as recorded, `+` as it would have been): the decisions that differ, the first in full; in one
 * line those that differ in their context alone; the inputs that might have been different; what is still open.
 *
 * @param words the plugins' descriptions, used where they differ for the two decisions
 */
export function whatIfLines(
  answer: WhatIf,
  limit: number,
  { paint }: Terminal,
  words: Describe = () => undefined,
): string[] {
  const { records, unknown, differences, remembered, untrusted, unanswered, absent, more } = answer;
  const notes = [
    ...unknown.map((type) =>
      plainText(`The machine of ${type} is not known here: nothing of it was decided again.`),
    ),
    ...absent.map(({ seq, field }) =>
      plainText(`Record ${seq} has no field ${field}: the patch adds it. A misspelt name changes nothing.`),
    ),
  ];
  const [first, ...others] = differences;
  const total = differences.length + more.differences;
  const beside = rememberedLines(remembered, more.remembered);
  if (!first) {
    return [...notes, `${records} records were decided again, all with the same result.`, ...beside];
  }
  const doubtful = untrusted.length + more.untrusted;
  const title = (text: string) => ['', paint('bold', text)];
  const shown = others.slice(0, limit - 1);
  const left = others.length - shown.length + more.differences;
  return [
    ...notes,
    `${records} records were decided again; ${total} ${total === 1 ? 'decision differs' : 'decisions differ'}. The first:`,
    '',
    `  ${headOf(first)}`,
    ...(describedDifference(first, paint, words) ?? []),
    ...compared(first, paint),
    ...(others.length > 0 ? title('The others:') : []),
    ...shown.flatMap((one) => [`  ${headOf(one)}`, ...inShort(one, paint, words)]),
    ...leftOut(left, more.differences),
    ...(beside.length > 0 ? ['', ...beside] : []),
    ...(unanswered.length > 0 ? title('Still open at the end, so the outcome is unknown:') : []),
    ...unanswered.map(({ actor, type, at, timer }) =>
      plainText(
        timer
          ? `  ${actor}: timer ${delayOf(type) ?? type} expires at ${timestamp(at)}`
          : `  ${actor}: ${type}, requested at ${timestamp(at)}, has no recorded outcome`,
      ),
    ),
    ...title(
      untrusted.length > 0
        ? `${doubtful} recorded inputs might have been different:`
        : 'By their causes, all recorded inputs after the change would have been the same.',
    ),
    ...untrusted.slice(0, limit).map(({ seq, actor, event, reason }) => {
      return plainText(`  record ${seq}  ${actor}  ${delayOf(event) ?? event}: ${reason}`);
    }),
    ...leftOut(doubtful - Math.min(untrusted.length, limit), more.untrusted),
    '',
    'Inputs without a recorded cause (from people or other systems) were used as recorded, though they might have been different, too.',
  ];
}

/** @param unlisted how many of them are not even in the result, which lists only the first of very many */
function leftOut(left: number, unlisted: number): string[] {
  if (left === 0) return [];
  if (left === unlisted) return [`  (${left} more, which are counted and not listed)`];
  return [`  (${left} more; --limit 0 shows ${unlisted > 0 ? `all but ${unlisted} of them` : 'them'})`];
}

/** Decisions that differ in their context alone: one line for all, because most are counters. @param more how many are not listed */
function rememberedLines(remembered: readonly Difference[], more: number): string[] {
  if (remembered.length === 0) return [];
  const names = new Set(
    remembered.flatMap(({ expected, got }) => {
      const [was, is] = [expected?.to.context ?? {}, got?.to.context ?? {}];
      return Object.keys({ ...was, ...is }).filter((name) => !jsonEqual(was[name] ?? null, is[name] ?? null));
    }),
  );
  const what = [...names].sort().join(', ');
  const count = remembered.length + more;
  const where = `In ${count} ${count === 1 ? 'decision' : 'decisions'}`;
  return [plainText(`${where} only the context differs: ${what}.`)];
}

/** Compares two decisions line by line. */
function compared(one: Difference, paint: Terminal['paint']): string[] {
  const { expected, got } = one;
  if (!expected || !got) return inShort(one, paint);
  return difference(jsonLines(expected, ''), jsonLines(got, '')).map(({ mark, text }) => {
    const line = `      ${mark} ${text}`;
    return mark === '-' || mark === '+' ? paint(mark === '-' ? 'green' : 'red', line) : line;
  });
}

function inShort(one: Difference, paint: Terminal['paint'], words?: Describe): string[] {
  const described = describedDifference(one, paint, words);
  if (described) return described;
  const { expected, got } = one;
  // Where only parameters or contexts differ, the whole decisions are shown.
  const whole = expected !== undefined && got !== undefined && short(expected) === short(got);
  const text = (decision: Decision) =>
    whole ? cut(plainText(JSON.stringify(decision)), 160) : short(decision);
  return [
    ...(expected ? [paint('green', `      - ${text(expected)}`)] : []),
    ...(got ? [paint('red', `      + ${text(got)}`)] : []),
  ];
}

/** Two decisions as their plugin describes them, where the descriptions differ. */
function describedDifference(
  one: Difference,
  paint: Terminal['paint'],
  words?: Describe,
): string[] | undefined {
  const [was, is] = [inWords(one, one.expected, words), inWords(one, one.got, words)];
  if (was === undefined || is === undefined || was === is) return undefined;
  return [paint('green', `      - ${was}`), paint('red', `      + ${is}`)];
}
