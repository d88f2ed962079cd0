import { z } from 'zod';
import { textOf } from '../../core/host/history/answer-text.ts';
import { firstSeqAt } from '../../core/host/history/place.ts';
import { printedText } from '../../core/host/history/record-text.ts';
import { isAddress, type Selection } from '../../core/host/history/select.ts';
import { newestLines, type StoryLine } from '../../core/host/history/story.ts';
import { fitting, lineOf } from './output.ts';
import { cursorOf, parsePlace, positionOf, seqOf } from './places.ts';
import { cursor, defineTool, place, type Question } from './tool.ts';

/** Records that are searched between two looks at the clock. */
const WINDOW = 10_000;

export const line = z.object({
  record: z.int(),
  at: z.string(),
  actor: z.string(),
  what: z.string(),
  state: z.string().optional().describe('old→new; absent where the state did not change'),
  requests: z.array(z.string()).optional().describe('effects and timers that it asked for'),
  cause: z.int().optional().describe('the record that led to it'),
  others: z.array(z.string()).optional().describe('actors of the same type that did the same'),
});

const output = z.object({
  stories: z.array(z.object({ story: z.string(), lines: z.array(line) })),
  searchedFrom: z.int().describe('records from this number on were searched, up to the end of the range'),
  nextCursor: z.string().optional().describe('there is more, older'),
});

export const searchStories = defineTool({
  name: 'search_stories',
  title: 'Search stories',
  description:
    'Searches what happened: one line for each event that an actor decided on, grouped by story (all that followed from one ' +
    'cause, e.g. a save and its consequences), newest page first. Use it to find a person, an interface, a server or a kind ' +
    'of event in a time range; with `story` it lists a whole story. Next: explain_record with a record number.',
  input: z.object({
    from: place.optional(),
    to: place.optional(),
    actor: z
      .string()
      .max(512)
      .optional()
      .describe(
        'address (router.config/default), type (router.config), its last word, or a key; * stands for anything',
      ),
    event: z.string().max(128).optional().describe('event type, e.g. SET; * stands for anything'),
    outcome: z
      .enum(['done', 'failed', 'lost', 'ignored', 'stale'])
      .optional()
      .describe('how an effect ended; ignored and stale: events that changed nothing'),
    text: z
      .string()
      .min(1)
      .max(200)
      .optional()
      .describe('text in a line, in any case, e.g. a name, a path or an error'),
    failedOnly: z
      .boolean()
      .default(false)
      .describe('only records that say that something failed or was refused'),
    story: z.string().max(128).optional().describe('id of one story'),
    routine: z.boolean().default(false).describe('also events that are routine and changed nothing'),
    limit: z.int().min(1).max(100).default(40),
    cursor,
  }),
  output,
  async answer({ cursor: given, limit, ...asked }, question) {
    const { log, now } = question;
    const from = asked.from === undefined ? log.firstSeq() : await firstFrom(question, asked.from);
    const to = asked.to === undefined ? log.lastSeq() : await seqOf(log, asked.to, now);
    const begin = positionOf(given, asked) ?? to;
    const selection: Selection = {
      actor: asked.actor,
      type: asked.event,
      correlation: asked.story,
      outcome: asked.outcome,
      ...(asked.failedOnly && question.words.problemsOnly),
      ...(asked.text !== undefined && { grep: textSearch(asked.text, question, asked.routine) }),
    };
    const { lines, next } = await search(question, selection, {
      from,
      to: begin,
      limit,
      routine: asked.routine,
    });
    // The newest lines of a page are kept: what does not fit is on the next one.
    const shown = fitting(lines.toReversed(), limit).toReversed();
    const cut = shown.length < lines.length ? firstOf(shown) - 1 : next;
    return {
      fields: {
        stories: byStory(shown),
        searchedFrom: cut === undefined ? from : cut + 1,
        ...(cut !== undefined && { nextCursor: cursorOf(asked, cut) }),
      },
    };
  },
});

/** The first record at or after a place. */
async function firstFrom({ log, now }: Question, text: string): Promise<number> {
  const wanted = parsePlace(text, now);
  return 'seq' in wanted ? wanted.seq : firstSeqAt(log, wanted.at);
}

function textSearch(text: string, { words }: Question, routine: boolean) {
  const wanted = text.toLowerCase();
  return {
    source: text,
    test: (line: string) => line.toLowerCase().includes(wanted),
    textOf: (record: Parameters<typeof printedText>[0]) => printedText(record, words, routine),
  };
}

interface Range {
  readonly from: number;
  readonly to: number;
  readonly limit: number;
  readonly routine: boolean;
}

/**
 * The newest lines of a range, oldest first, searched from its end in windows, so that a long search ends with what it has.
 *
 * @returns `next`: the record from which the search goes on; absent when all was searched
 */
export async function search(
  { log, words, signal, enoughAt }: Question,
  selection: Selection,
  { from, to, limit, routine }: Range,
): Promise<{ lines: StoryLine[]; next?: number }> {
  const { actor, correlation } = selection;
  const isIndexed = correlation !== undefined || (actor !== undefined && isAddress(actor));
  const window = isIndexed ? Number.POSITIVE_INFINITY : WINDOW;
  const all = routine || selection.type !== undefined || selection.outcome !== undefined;
  let lines: StoryLine[] = [];
  for (let high = to; high >= from; ) {
    const low = Math.max(from, high - window + 1);
    const part = { ...selection, from: { seq: low }, to: { seq: high } };
    const found = await newestLines(log, part, limit - lines.length, { all, words, signal });
    lines = [...found.lines, ...lines];
    if (found.more) return { lines, next: firstOf(found.lines) - 1 };
    high = low - 1;
    if (high >= from && (lines.length >= limit || performance.now() > enoughAt)) return { lines, next: high };
  }
  return { lines };
}

function firstOf(lines: readonly StoryLine[]): number {
  return Math.min(...lines.flatMap(({ records }) => records.map(({ seq }) => seq)));
}

/** The lines of each story together, the stories in the order in which they begin on the page. */
export function byStory(lines: readonly StoryLine[]) {
  const stories = Map.groupBy(lines, ({ records }) => records[0]?.correlation ?? '');
  return Array.from(stories, ([story, ofStory]) => ({ story: textOf(story), lines: ofStory.map(lineOf) }));
}
