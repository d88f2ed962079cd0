import { z } from 'zod';
import { consolePages, type PageSection } from '../../../core/contracts/console.ts';
import { freeOf, textOf } from '../../../core/host/history/answer-text.ts';
import { PAGE } from '../../../core/host/logging/redact.ts';
import { ConsoleError } from '../errors.ts';
import { at, contributedBy, get, momentSeq, status, time } from './endpoint.ts';

/** Rows, facts and points of one section. */
const MOST_ROWS = 1_000;

const cell = z.union([z.string(), z.number(), z.boolean(), z.null()]);
const linked = {
  status: status.exactOptional(),
  actor: z.string().exactOptional(),
  seq: z.int().exactOptional(),
};
const title = z.string().exactOptional();
const format = z.enum(['text', 'number', 'time', 'duration', 'bytes']).exactOptional();

const section = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('facts'),
    title,
    facts: z
      .array(z.object({ label: z.string(), value: cell, since: time.exactOptional(), ...linked }))
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
]);
export type Section = z.output<typeof section>;

export const listPages = get({
  path: '/api/pages',
  summary: 'The pages that plugins bring',
  answer: z.object({ pages: z.array(z.object({ name: z.string(), title: z.string(), area: z.string() })) }),
  run: async (_input, { services }) => ({
    pages: Array.from(contributedBy(services, consolePages), ([name, { value, area }]) => ({
      name,
      title: value.title,
      area,
    })),
  }),
});

export const showPage = get({
  path: '/api/pages/{name}',
  summary: 'The sections of a page at a moment',
  params: z.strictObject({ name: z.string().regex(/^[a-z0-9-]{1,64}$/, 'the name of a page') }),
  query: z.strictObject({ at }),
  answer: z.object({ at: z.int(), time, name: z.string(), title: z.string(), sections: z.array(section) }),
  run: ({ params: { name }, query }, { ask, moments, services }) =>
    ask(async (question) => {
      const page = contributedBy(services, consolePages).get(name)?.value;
      if (!page) throw new ConsoleError('HF_CONSOLE_MISSING', { what: 'page', name: textOf(name, 70) });
      const { log, signal } = question;
      const moment = await moments.at(log, momentSeq(question, query.at), signal);
      const isNow = query.at === undefined;
      const then = isNow ? (services?.clock.now() ?? moment.at) : moment.at;
      const sections = await page.data({
        ...{ seq: moment.seq, time: then, isNow },
        // A page may not change what other questions read.
        states: new Map(structuredClone(moment.actors).map((state) => [state.ref, state])),
      });
      return { at: moment.seq, time: then, name, title: page.title, sections: bounded(sections) };
    }),
});

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
  }
}
