import { z } from 'zod';
import { happenedUntil } from '../../../core/host/history/happened.ts';
import { timeAt } from '../../../core/host/history/moments.ts';
import { problemMarks } from '../../../core/host/history/words.ts';
import { at, get, momentSeq, time } from './endpoint.ts';
import { limit } from './filters.ts';

/** So many stories are looked at for each line that is wanted: many are alike. */
const ALIKE = 5;

export const listHappened = get({
  path: '/api/happened',
  summary: 'What went wrong, and what people did, until a moment; newest first, and what is alike as one',
  query: z.strictObject({ at, limit: limit(100, 500) }),
  answer: z.object({
    at: z.int(),
    time,
    happened: z.array(
      z.object({
        text: z.string(),
        actor: z.string(),
        kind: z.enum(['problem', 'act', 'life']),
        count: z.int(),
        first: z.int().meta({ description: 'the oldest record of it' }),
        last: z.int().meta({ description: 'the newest record of it' }),
        start: time,
        end: time,
        lasts: z.boolean().optional().meta({ description: 'of an alert: whether it lasts at the moment' }),
      }),
    ),
    more: z.int().meta({ description: 'so many more are not listed' }),
    since: time.optional().meta({ description: 'what came before was not looked at' }),
  }),
  run: ({ query }, { ask, moments, source }) =>
    ask(async (question) => {
      const { log, signal } = question;
      const moment = await moments.at(log, momentSeq(question, query.at), signal);
      const { happened, end } = await happenedUntil(question, moment, {
        marks: problemMarks(await source.actors()),
        most: query.limit * ALIKE,
      });
      return {
        ...{ at: moment.seq, time: moment.at },
        happened: happened.slice(0, query.limit),
        more: Math.max(0, happened.length - query.limit),
        ...(end !== undefined && { since: timeAt(log, end) }),
      };
    }),
});
