import { z } from 'zod';
import {
  type ConsolePage,
  consolePages,
  type PageMoment,
  type PageSection,
} from '../../../core/contracts/console.ts';
import { withDeadline } from '../../../core/host/deadline.ts';
import { newestOfActors } from '../../../core/host/history/actor-records.ts';
import { textOf } from '../../../core/host/history/answer-text.ts';
import type { LogSource } from '../../../core/host/history/log-source.ts';
import type { LogQuestion } from '../../../core/host/history/questions.ts';
import type { Moment } from '../../../core/kernel/actors/recover.ts';
import { ConsoleError } from '../errors.ts';
import { type ApiContext, at, contributedTo, get, momentSeq, time } from './endpoint.ts';
import { boundedSections, section } from './sections.ts';

/** By when a page must have its data, milliseconds. */
const DEADLINE_MS = 20_000;
/** The longest input, characters. */
const LONGEST_INPUT = 4_000;

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
      z.object({
        name: z.string(),
        title: z.string(),
        area: z.string(),
        inputs: z.array(input),
        isListed: z
          .boolean()
          .meta({ description: 'whether it stands among the pages, and not only behind links' }),
        isCostly: z.boolean().meta({ description: 'whether it should be asked again only by a person' }),
      }),
    ),
  }),
  run: async (_input, request) => ({
    pages: Array.from(await pagesOf(request), ([name, { value, area }]) => ({
      name,
      title: value.title,
      area,
      inputs: [...(value.inputs ?? [])],
      isListed: value.isListed ?? true,
      isCostly: value.isCostly ?? false,
    })),
  }),
});

export const showPage = get({
  path: '/api/pages/{name}',
  summary: 'The sections of a page at a moment; what is filled in stands in the query, by name',
  params: z.strictObject({ name: z.string().regex(/^[a-z0-9-]{1,64}$/, 'the name of a page') }),
  query: z.object({ at }).catchall(z.string().max(LONGEST_INPUT)),
  answer: z.object({ at: z.int(), time, name: z.string(), title: z.string(), sections: z.array(section) }),
  run: async ({ params: { name }, query: { at: wanted, ...given } }, request) => {
    const { ask, moments, services, pages, gone } = request;
    const page = (await pagesOf(request)).get(name)?.value;
    if (!page) throw new ConsoleError('HF_CONSOLE_MISSING', { what: 'page', name: textOf(name, 70) });
    const inputs = inputsOf(page, given);
    const live = wanted === undefined ? services : undefined;
    const { seq, at, actors } = await ask((question) =>
      moments.at(question.log, momentSeq(question, wanted), question.signal),
    );
    const then = live?.clock.now() ?? at;
    let copied: PageMoment['states'] | undefined;
    // A page may not change what other questions read.
    const states = () => {
      copied ??= new Map(structuredClone(actors).map((state) => [state.ref, state]));
      return copied;
    };
    // A page that waits for something else than the log does not hold up questions about the log.
    const late = () => new ConsoleError('HF_CONSOLE_DEADLINE', { seconds: DEADLINE_MS / 1_000 });
    const sections = await withDeadline({ ms: DEADLINE_MS, late, signal: gone }, (signal) =>
      pages.run(async () => {
        signal.throwIfAborted();
        return page.data({
          ...{ seq, time: then, isNow: live !== undefined, inputs, signal },
          get states() {
            return states();
          },
          records: (records) =>
            ask((question) => newestOfActors(question, { seq, states: states() }, records)),
        });
      }),
    );
    return { at: seq, time: then, name, title: page.title, sections: await boundedSections(sections, gone) };
  },
});

/**
 * The pages that can be shown, by name. One that needs no running plugin is there also where its plugin does not run; what
 * the running plugin made under the same name takes its place.
 */
async function pagesOf({ services, source }: Pick<ApiContext, 'services' | 'source'>) {
  const fixed = await contributedTo(consolePages, { services: undefined, source });
  const made = services ? await contributedTo(consolePages, { services, source }) : [];
  return new Map([...fixed, ...made].filter(([, { value }]) => services || !value.needsInstance));
}

/** The pages that are folds over the log, with what they say of a moment. One that fails is left out. */
export async function foldedPages(
  moment: Moment,
  source: LogSource,
  question: LogQuestion,
): Promise<{ name: string; title: string; area: string; sections: readonly PageSection[] }[]> {
  const shown: Awaited<ReturnType<typeof foldedPages>> = [];
  // A page may not change what other questions read.
  const states: PageMoment['states'] = new Map(structuredClone(moment.actors).map((one) => [one.ref, one]));
  for (const [name, { value: page, area }] of await pagesOf({ services: undefined, source })) {
    try {
      const sections = await page.data({
        ...{ seq: moment.seq, time: moment.at, isNow: false, inputs: inputsOf(page, {}), states },
        signal: question.signal,
        records: async () => ({ records: [], more: true }), // a history says nothing of how things are
      });
      shown.push({ name, title: page.title, area, sections });
    } catch {
      question.signal.throwIfAborted();
    }
  }
  return shown;
}

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
