import { z } from 'zod';
import { textOf } from '../../../core/host/history/answer-text.ts';
import { bucketsOf, FailureCounts } from '../../../core/host/history/density.ts';
import type { LogSource } from '../../../core/host/history/log-source.ts';
import { recordRows } from '../../../core/host/history/record-rows.ts';
import { recordsOf, spansOf, storiesOf } from '../../../core/host/history/stories.ts';
import { ConsoleError } from '../errors.ts';
import { at, get, momentSeq, time, whole } from './endpoint.ts';
import { filters, limit, range, recordRow, selectionOf } from './filters.ts';

const story = z.object({
  id: z.string(),
  title: z.string(),
  first: z.int(),
  last: z.int(),
  start: time,
  end: time,
  records: z.int(),
  more: z
    .boolean()
    .meta({ description: 'it has more records than were read: the facts are of the first ones' }),
  actors: z.array(z.string()).readonly(),
  failed: z.boolean(),
});

export const listStories = get({
  path: '/api/stories',
  summary: 'Stories (all that followed from one cause), newest first',
  query: z.strictObject({ at, ...range, before: whole(1).optional(), limit: limit(40, 200), ...filters }),
  answer: z.object({ stories: z.array(story), next: z.int().optional() }),
  run: ({ query }, { ask }) =>
    ask((question) => {
      const upTo = momentSeq(question, query.at);
      const to = Math.min(query.to ?? upTo, upTo);
      const before = Math.min(query.before ?? to + 1, to + 1);
      const { from = 1, limit } = query;
      return storiesOf(question, selectionOf(query, question), { from, to, upTo, before, limit });
    }),
});

const MOST_RECORDS = 2_000;

export const showStory = get({
  path: '/api/stories/{id}',
  summary: 'One story: its records, and its effects and timers as spans',
  params: z.strictObject({ id: z.string().min(1).max(128) }),
  query: z.strictObject({ at }),
  answer: z.object({
    id: z.string(),
    title: z.string(),
    more: z.boolean().meta({ description: 'it has more records than these' }),
    records: z.array(recordRow),
    spans: z.array(
      z.object({
        id: z.string(),
        kind: z.enum(['effect', 'timer']),
        type: z.string(),
        actor: z.string(),
        seq: z.int(),
        asked: time,
        due: time.optional(),
        endedBy: z.int().optional(),
        ended: time.optional(),
        outcome: z.string().optional().meta({ description: 'absent while it is open' }),
      }),
    ),
  }),
  run: ({ params: { id }, query }, { ask }) =>
    ask(async (question) => {
      const { log } = question;
      const upTo = momentSeq(question, query.at);
      const found = recordsOf(log, id, upTo, MOST_RECORDS + 1);
      const records = found.slice(0, MOST_RECORDS);
      if (records.length === 0)
        throw new ConsoleError('HF_CONSOLE_MISSING', { what: 'story', name: textOf(id, 130) });
      const rows = await recordRows(records, question.words);
      return {
        id: textOf(id),
        title: rows[0]?.text ?? '',
        more: found.length > MOST_RECORDS,
        records: rows,
        spans: spansOf(log, records, upTo),
      };
    }),
});

/** What was counted of each log. */
const counted = new WeakMap<LogSource, FailureCounts>();

export const density = get({
  path: '/api/density',
  summary: 'How many records there are over time, and how many failed',
  query: z.strictObject({
    buckets: limit(120, 500),
    from: whole(1).optional(),
    to: whole(1).optional(),
  }),
  answer: z.object({
    buckets: z.array(
      z.object({
        first: z.int(),
        last: z.int().meta({ description: 'one before `first` where it has no record' }),
        start: time,
        end: time,
        records: z.int(),
        failed: z.int().optional().meta({ description: 'absent where they were not counted yet: ask again' }),
      }),
    ),
  }),
  run: ({ query }, { ask, source }) =>
    ask(async (question) => {
      const { log } = question;
      const failures = counted.get(source) ?? new FailureCounts();
      counted.set(source, failures);
      const from = Math.max(query.from ?? 1, log.firstSeq());
      const to = Math.min(query.to ?? Number.MAX_SAFE_INTEGER, log.lastSeq());
      return { buckets: await bucketsOf(question, { from, to, count: query.buckets }, failures) };
    }),
});
