import { z } from 'zod';
import { textOf } from '../../core/host/history/answer-text.ts';
import { inWords, short } from '../../core/host/history/decision-text.ts';
import { runSteps } from '../../core/host/history/pace.ts';
import { shownDifference } from '../../core/host/history/shown.ts';
import type { Decision } from '../../core/kernel/actors/transition.ts';
import { delayOf } from '../../core/kernel/log/record.ts';
import { alterEvent, type Change } from '../../core/kernel/replay/changes.ts';
import type { Difference } from '../../core/kernel/replay/findings.ts';
import { whatIfSteps } from '../../core/kernel/replay/what-if.ts';
import { IncidentsError } from './errors.ts';
import { fitting } from './output.ts';
import { isoOf, seqOf } from './places.ts';
import { defineTool, place, type Question, recordNumber } from './tool.ts';

/** Records that can be changed at once. */
const MOST_CHANGES = 20;

const HOW = {
  decided: 'decided otherwise',
  dropped: 'would not have come',
  inserted: 'inserted',
  timer: 'a timer that would have expired',
} as const;

export const whatIf = defineTool({
  name: 'what_if',
  title: 'What if an event had not come, or had been another',
  description:
    'Replays the log without some events, or with altered ones, and lists which decisions would have differed: the proof of ' +
    'a suspected cause. Nothing is run or changed. Events from people and other systems are used as recorded; those that ' +
    'might not have come either are in `mightDiffer`.',
  input: z.object({
    drop: z.array(recordNumber).max(MOST_CHANGES).default([]).describe('records whose events never came'),
    alter: z
      .array(
        z.object({
          record: recordNumber,
          patch: z.record(z.string(), z.json()).describe('JSON merge patch of the event'),
        }),
      )
      .max(MOST_CHANGES)
      .default([]),
    until: place
      .default('now')
      .describe('records after this are not decided again: shortens the work on a long log'),
    limit: z.int().min(1).max(100).default(25),
  }),
  output: z.object({
    decidedAgain: z.int().describe('records that were decided again'),
    differing: z.int().describe('decisions that would have differed'),
    differences: z.array(
      z.object({
        record: z.int().describe('its number; of what nobody recorded, that of the record before'),
        at: z.string(),
        actor: z.string(),
        event: z.string(),
        how: z.string(),
        recorded: z.string().optional(),
        instead: z.string().optional(),
      }),
    ),
    onlyContext: z.int().describe('further decisions in which only counters and the like differ'),
    mightDiffer: z.array(
      z.object({ record: z.int(), actor: z.string(), event: z.string(), reason: z.string() }),
    ),
    mightDifferTotal: z.int(),
    stillOpen: z.array(z.string()).describe('effects whose outcome the log cannot know'),
    unknownFields: z
      .array(z.string())
      .describe('fields of a patch that the event does not have: perhaps misspelt'),
  }),
  async answer({ drop, alter, until, limit }, question) {
    if (drop.length + alter.length === 0)
      throw new IncidentsError('HF_INCIDENTS_QUESTION', { reason: 'Nothing is dropped or altered' });
    const { log, now, services, signal, words } = question;
    const changes: Change[] = [
      ...drop.map((seq): Change => ({ kind: 'drop', seq })),
      ...alter.map(({ record, patch }) => alterEvent(patch, record)),
    ];
    const definitions = new Map(services.declarations().actors.map((one) => [one.type, one]));
    const upTo = await seqOf(log, until, now);
    const last = Math.max(...drop, ...alter.map(({ record }) => record));
    if (last > upTo)
      throw new IncidentsError('HF_INCIDENTS_QUESTION', { reason: `Record ${last} comes after \`until\`` });
    const result = await runSteps(whatIfSteps(log, definitions, changes, false, upTo), signal);
    const { records, differences, remembered, untrusted, unanswered, absent, more } = result;
    await words.prepare(differences.slice(0, limit));
    const listed = differences.slice(0, limit).map((one) => differenceOf(shownDifference(one), question));
    const doubtful = untrusted.slice(0, limit).map(({ seq, actor, event, reason }) => ({
      record: seq,
      actor: textOf(actor),
      event: textOf(delayOf(event) ?? event),
      reason: textOf(reason),
    }));
    return {
      fields: {
        decidedAgain: records,
        differing: differences.length + more.differences,
        differences: [...fitting(listed, limit)],
        onlyContext: remembered.length + more.remembered,
        mightDiffer: doubtful,
        mightDifferTotal: untrusted.length + more.untrusted,
        stillOpen: unanswered
          .slice(0, limit)
          .map(({ actor, type, at, timer }) =>
            textOf(
              timer
                ? `${actor}: timer ${delayOf(type) ?? type} expires at ${isoOf(at)}`
                : `${actor}: ${type}, requested at ${isoOf(at)}, has no recorded outcome`,
            ),
          ),
        unknownFields: absent.map(({ seq, field }) => textOf(`${seq}: ${field}`)),
      },
    };
  },
});

function differenceOf(one: Difference, { words }: Question) {
  const { seq, at, actor, event, kind, expected, got } = one;
  const text = (decision: Decision | undefined) =>
    decision && textOf([inWords(one, decision, words.describe), short(decision)].filter(Boolean).join(': '));
  const [recorded, instead] = [text(expected), text(got)];
  return {
    record: seq,
    at: isoOf(at),
    actor: textOf(actor),
    event: textOf(delayOf(event.type) ?? event.type),
    how: HOW[kind],
    ...(recorded !== undefined && { recorded }),
    ...(instead !== undefined && { instead }),
  };
}
