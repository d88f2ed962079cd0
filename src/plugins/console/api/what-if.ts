import { z } from 'zod';
import { textOf } from '../../../core/host/history/answer-text.ts';
import { inWords, short } from '../../../core/host/history/decision-text.ts';
import { runSteps } from '../../../core/host/history/pace.ts';
import { eventName } from '../../../core/host/history/record-rows.ts';
import { shownDifference } from '../../../core/host/history/shown.ts';
import type { Describe } from '../../../core/host/history/words.ts';
import type { Decision } from '../../../core/kernel/actors/transition.ts';
import { delayOf } from '../../../core/kernel/log/record.ts';
import { alterEvent, type Change } from '../../../core/kernel/replay/changes.ts';
import type { Difference } from '../../../core/kernel/replay/findings.ts';
import { whatIfSteps } from '../../../core/kernel/replay/what-if.ts';
import { ConsoleError } from '../errors.ts';
import { momentSeq, post, time } from './endpoint.ts';
import { candidates } from './records.ts';

/** Records that can be changed at once, and differences that are listed. */
const MOST_CHANGES = 20;
const LISTED = 200;

const seq = z.int().min(1);
const event = z.record(z.string().max(128), z.json());
const decision = z
  .object({
    text: z.string(),
    state: z.string(),
    effects: z.array(z.string()),
    refused: z.boolean().meta({ description: 'the machine took no notice of the event' }),
  })
  .optional();

export const whatIf = post({
  path: '/api/what-if',
  summary:
    'Which decisions would differ without some events, with others, or with altered ones; nothing is carried out',
  body: z.strictObject({
    drop: z.array(seq).max(MOST_CHANGES).default([]),
    alter: z
      .array(z.strictObject({ seq, event: event.meta({ description: 'JSON merge patch of the event' }) }))
      .max(MOST_CHANGES)
      .default([]),
    insert: z
      .array(
        z.strictObject({
          after: z.int().min(0),
          actor: z
            .string()
            .regex(/^[^/]+\/.+/s, 'an address such as lamp.bulb/hall')
            .max(512),
          event: event.refine(({ type }) => typeof type === 'string' && type !== '', 'it has no type'),
        }),
      )
      .max(MOST_CHANGES)
      .default([]),
    until: seq.optional().meta({ description: 'records after it are not decided again' }),
  }),
  answer: z.object({
    decidedAgain: z.int(),
    unknown: z.array(z.string()).meta({
      description: 'types of actors whose machines are not here: nothing of theirs was decided again',
    }),
    differing: z.int(),
    differences: z.array(
      z.object({
        seq: z.int().meta({ description: 'of what nobody recorded, that of the record before' }),
        time,
        actor: z.string(),
        event: z.string(),
        kind: z.enum(['decided', 'timer', 'inserted', 'dropped']),
        recorded: decision,
        instead: decision,
        guards: candidates.optional().meta({ description: 'the guards that were asked for `instead`' }),
      }),
    ),
    onlyContext: z.int().meta({ description: 'further decisions in which only the context differs' }),
    untrusted: z.array(z.object({ seq: z.int(), actor: z.string(), event: z.string(), reason: z.string() })),
    untrustedTotal: z.int(),
    open: z.array(z.object({ actor: z.string(), type: z.string(), time, timer: z.boolean() })).meta({
      description: 'what would be waited for, and whose outcome the log cannot know',
    }),
    absent: z.array(z.object({ seq: z.int(), field: z.string() })).meta({
      description: 'fields that a patch names and its event does not have: perhaps misspelt',
    }),
  }),
  run: ({ body }, { askLong, source }) =>
    askLong(async (question) => {
      const { drop, alter, insert, until } = body;
      if (drop.length + alter.length + insert.length === 0)
        throw new ConsoleError('HF_CONSOLE_REQUEST', { reason: 'nothing is dropped, altered or inserted' });
      const changes: Change[] = [
        ...drop.map((one): Change => ({ kind: 'drop', seq: one })),
        ...alter.map((one) => alterEvent(one.event, one.seq)),
        ...insert.map(({ after, actor, event: inserted }): Change => {
          return { kind: 'insert', after, actor, event: { ...inserted, type: String(inserted.type) } };
        }),
      ];
      const { log, words, signal } = question;
      const upTo = momentSeq(question, until);
      const definitions = new Map((await source.actors()).map((one) => [one.type, one]));
      const result = await runSteps(whatIfSteps(log, definitions, changes, false, upTo), signal);
      const { records, unknown, differences, remembered, untrusted, unanswered, absent, more } = result;
      const listed = differences.slice(0, LISTED);
      await words.prepare(listed);
      return {
        decidedAgain: records,
        unknown: unknown.map((type) => textOf(type)),
        differing: differences.length + more.differences,
        differences: listed.map((one) => differenceOf(shownDifference(one), words.describe)),
        onlyContext: remembered.length + more.remembered,
        untrusted: untrusted.slice(0, LISTED).map((one) => ({
          seq: one.seq,
          actor: textOf(one.actor),
          event: eventName(one.event),
          reason: textOf(one.reason),
        })),
        untrustedTotal: untrusted.length + more.untrusted,
        open: unanswered.slice(0, LISTED).map(({ actor, type, at, timer }) => ({
          actor: textOf(actor),
          type: textOf(delayOf(type) ?? type),
          time: at,
          timer,
        })),
        absent: absent.map(({ seq: of, field }) => ({ seq: of, field: textOf(field) })),
      };
    }),
});

function differenceOf(one: Difference, describe: Describe) {
  const { seq: of, at, actor, kind, expected, got } = one;
  const shownDecision = (made: Decision | undefined) =>
    made && {
      text: textOf(inWords(one, made, describe) ?? short(made)),
      state: textOf(short({ ...made, effects: [] })),
      effects: made.effects.map(({ type }) => textOf(type)),
      refused: made.ignored === true || made.stale === true,
    };
  const [recorded, instead] = [shownDecision(expected), shownDecision(got)];
  return {
    seq: of,
    time: at,
    actor: textOf(actor),
    event: eventName(one.event.type),
    kind,
    ...(recorded && { recorded }),
    ...(instead && { instead }),
    ...(one.guards && { guards: one.guards.map((each) => ({ ...each })) }),
  };
}
