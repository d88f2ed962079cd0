import { z } from 'zod';
import { textOf } from '../../../core/host/history/answer-text.ts';
import { Density } from '../../../core/host/history/density.ts';
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
  failure: z.string().optional().meta({ description: 'what failed last; absent where the title says it' }),
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

/** Records of a story that are answered at once. */
const MOST_RECORDS = 1_000;

export const showStory = get({
  path: '/api/stories/{id}',
  summary: 'One story: its records, and its effects and timers as spans',
  params: z.strictObject({ id: z.string().min(1).max(128) }),
  query: z.strictObject({ at, after: whole(1).optional(), limit: limit(MOST_RECORDS, MOST_RECORDS) }),
  answer: z.object({
    id: z.string(),
    title: z.string(),
    next: z.int().optional().meta({ description: 'it has more records than these: the `after` of the next' }),
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
    ends: z
      .array(z.object({ id: z.string(), endedBy: z.int(), ended: time, outcome: z.string() }))
      .meta({ description: 'how effects and timers ended that records before `after` requested' }),
  }),
  run: ({ params: { id }, query }, { ask }) =>
    ask(async (question) => {
      const { words, signal } = question;
      const upTo = momentSeq(question, query.at);
      const [first] = await recordsOf(question, id, { from: 1, upTo, most: 1 });
      if (!first) throw new ConsoleError('HF_CONSOLE_MISSING', { what: 'story', name: textOf(id, 130) });
      const from = (query.after ?? 0) + 1;
      const found = await recordsOf(question, id, { from, upTo, most: query.limit + 1 });
      const records = found.slice(0, query.limit);
      const [title] = await recordRows([first], words);
      return {
        id: textOf(id),
        title: title?.text ?? '',
        ...(found.length > records.length && { next: records.at(-1)?.seq ?? 0 }),
        records: await recordRows(records, words, signal),
        ...(await spansOf(question, records, upTo)),
      };
    }),
});

/** What was found out about each log. */
const densities = new WeakMap<LogSource, Density>();

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
      const known = densities.get(source) ?? new Density();
      densities.set(source, known);
      const from = Math.max(query.from ?? 1, log.firstSeq());
      const to = Math.min(query.to ?? Number.MAX_SAFE_INTEGER, log.lastSeq());
      const actors = await source.actors();
      return { buckets: await known.buckets(question, { from, to, count: query.buckets }, actors) };
    }),
});
