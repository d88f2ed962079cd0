import { z } from 'zod';
import { type ConsolePage, consolePages, type PageSection } from '../../../core/contracts/console.ts';
import { newestOfActors } from '../../../core/host/history/actor-records.ts';
import { freeOf, textOf } from '../../../core/host/history/answer-text.ts';
import { PAGE } from '../../../core/host/logging/redact.ts';
import { ConsoleError } from '../errors.ts';
import { at, contributedTo, get, momentSeq, status, time } from './endpoint.ts';

/** Rows, facts and points of one section. */
const MOST_ROWS = 1_000;
/** Spans of a waterfall. */
const MOST_SPANS = 2_000;
/** The longest input, characters. */
const LONGEST_INPUT = 4_000;

const cell = z.union([z.string(), z.number(), z.boolean(), z.null()]);
const linked = {
  status: status.exactOptional(),
  actor: z.string().exactOptional(),
  seq: z.int().exactOptional(),
  page: z
    .object({
      name: z.string(),
      title: z.string().exactOptional(),
      inputs: z.record(z.string(), z.string()).exactOptional(),
    })
    .exactOptional(),
};
const title = z.string().exactOptional();
const format = z.enum(['text', 'number', 'time', 'duration', 'bytes']).exactOptional();

const section = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('facts'),
    title,
    facts: z
      .array(
        z.object({
          label: z.string(),
          value: cell,
          since: time.exactOptional(),
          until: time.exactOptional(),
          ...linked,
        }),
      )
      .max(MOST_ROWS),
  }),
  z.object({
    kind: z.literal('table'),
    title,
    columns: z.array(z.object({ name: z.string(), title: z.string(), format })).max(30),
    rows: z.array(z.object({ cells: z.record(z.string(), cell), ...linked })).max(MOST_ROWS),
  }),
  z.object({ kind: z.literal('text'), title, text: z.string().max(50_000) }),
  z.object({
    kind: z.literal('chart'),
    title,
    unit: z.string().exactOptional(),
    series: z
      .array(z.object({ name: z.string(), points: z.array(z.tuple([time, z.number()])).max(MOST_ROWS) }))
      .max(20),
  }),
  z.object({
    kind: z.literal('changes'),
    title,
    changes: z
      .array(z.object({ path: z.string(), from: z.unknown().optional(), to: z.unknown().optional() }))
      .max(MOST_ROWS),
  }),
  z.object({
    kind: z.literal('waterfall'),
    title,
    spans: z
      .array(
        z.object({
          id: z.string(),
          parent: z.string().exactOptional(),
          name: z.string(),
          by: z.string(),
          start: time,
          duration: z.number().meta({ description: 'milliseconds' }),
          status: status.exactOptional(),
          facts: z.record(z.string(), cell).exactOptional(),
        }),
      )
      .max(MOST_SPANS),
  }),
]);
export type Section = z.output<typeof section>;

const input = z.object({
  name: z.string(),
  title: z.string(),
  kind: z.enum(['text', 'long', 'choice']),
  choices: z.array(z.string()).readonly().exactOptional(),
  value: z.string().exactOptional(),
  example: z.string().exactOptional(),
});

export const listPages = get({
  path: '/api/pages',
  summary: 'The pages that plugins bring; of a log that nothing writes those that need no instance',
  answer: z.object({
    pages: z.array(
      z.object({ name: z.string(), title: z.string(), area: z.string(), inputs: z.array(input) }),
    ),
  }),
  run: async (_input, request) => ({
    pages: Array.from(await contributedTo(consolePages, request), ([name, { value, area }]) => ({
      name,
      title: value.title,
      area,
      inputs: [...(value.inputs ?? [])],
    })),
  }),
});

export const showPage = get({
  path: '/api/pages/{name}',
  summary: 'The sections of a page at a moment; what is filled in stands in the query, by name',
  params: z.strictObject({ name: z.string().regex(/^[a-z0-9-]{1,64}$/, 'the name of a page') }),
  query: z.object({ at }).catchall(z.string().max(LONGEST_INPUT)),
  answer: z.object({ at: z.int(), time, name: z.string(), title: z.string(), sections: z.array(section) }),
  run: ({ params: { name }, query: { at: wanted, ...given } }, { ask, moments, services, source }) =>
    ask(async (question) => {
      const page = (await contributedTo(consolePages, { services, source })).get(name)?.value;
      if (!page) throw new ConsoleError('HF_CONSOLE_MISSING', { what: 'page', name: textOf(name, 70) });
      const inputs = inputsOf(page, given);
      const { log, signal } = question;
      const moment = await moments.at(log, momentSeq(question, wanted), signal);
      const live = wanted === undefined ? services : undefined;
      const then = live?.clock.now() ?? moment.at;
      // A page may not change what other questions read.
      const states = new Map(structuredClone(moment.actors).map((state) => [state.ref, state]));
      const sections = await page.data({
        ...{ seq: moment.seq, time: then, isNow: live !== undefined, inputs, signal, states },
        records: (records) => newestOfActors(question, { seq: moment.seq, states }, records),
      });
      return { at: moment.seq, time: then, name, title: page.title, sections: bounded(sections) };
    }),
});

/** @throws HF_CONSOLE_REQUEST the page has no such input, or not this choice */
function inputsOf(
  { inputs = [] }: Pick<ConsolePage, 'inputs'>,
  given: Readonly<Record<string, string>>,
): Record<string, string> {
  const refused = (reason: string) => new ConsoleError('HF_CONSOLE_REQUEST', { reason });
  const unknown = Object.keys(given).find((name) => !inputs.some((one) => one.name === name));
  if (unknown !== undefined) throw refused(`the page has no input ${textOf(unknown, 70)}`);
  return Object.fromEntries(
    inputs.flatMap(({ name, kind, choices = [], value: usual }) => {
      const value = given[name] ?? usual ?? '';
      if (value === '') return [];
      if (kind === 'choice' && !choices.includes(value))
        throw refused(`${name} is none of ${choices.join(', ')}`);
      return [[name, value] as const];
    }),
  );
}

/** As much of the sections as a page may have, redacted. */
function bounded(sections: readonly PageSection[]): Section[] {
  return z.array(section).parse(freeOf(sections.slice(0, 50).map(cutSection), PAGE));
}

function cutSection(one: PageSection): PageSection {
  switch (one.kind) {
    case 'facts':
      return { ...one, facts: one.facts.slice(0, MOST_ROWS) };
    case 'table':
      return { ...one, rows: one.rows.slice(0, MOST_ROWS) };
    case 'text':
      return { ...one, text: one.text.slice(0, 50_000) };
    case 'chart':
      return {
        ...one,
        series: one.series.slice(0, 20).map((each) => ({ ...each, points: each.points.slice(-MOST_ROWS) })),
      };
    case 'changes':
      return { ...one, changes: one.changes.slice(0, MOST_ROWS) };
    case 'waterfall':
      return { ...one, spans: one.spans.slice(0, MOST_SPANS) };
  }
}
