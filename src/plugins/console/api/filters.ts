import { z } from 'zod';
import { textSearch } from '../../../core/host/history/pages.ts';
import type { LogQuestion } from '../../../core/host/history/questions.ts';
import type { Selection } from '../../../core/host/history/select.ts';
import { flag, requestRefused, time, whole } from './endpoint.ts';

export const recordRow = z.object({
  seq: z.int(),
  time,
  actor: z.string(),
  machine: z.string(),
  event: z.string(),
  from: z.string().optional(),
  to: z.string(),
  correlation: z.string().meta({ description: 'the id of its story' }),
  cause: z.int().optional(),
  outcome: z.string().optional().meta({ description: 'the effect or timer that it is the outcome of' }),
  failed: z.boolean(),
  ignored: z.boolean(),
  text: z.string().meta({ description: 'what happened, as one sentence' }),
  effects: z.array(z.object({ id: z.string(), type: z.string() })).readonly(),
});

const excluding = 'with - before it: what is left out';

/** What lists of records and stories are filtered by. */
export const filters = {
  actor: z.string().min(1).max(512).optional().meta({ description: excluding }),
  event: z.string().min(1).max(128).optional().meta({ description: excluding }),
  text: z.string().min(1).max(200).optional().meta({
    description:
      'words, "phrases" and /expressions/ that all are there; with - before one: that is not there',
  }),
  failed: flag.optional().meta({ description: 'only what failed or was refused' }),
  outcome: z
    .enum(['done', 'failed', 'lost', 'ignored', 'stale'])
    .optional()
    .meta({ description: 'how an effect ended; ignored and stale: the machine took no notice' }),
};

/** Only between these records. */
export const range = { from: whole(1).optional(), to: whole(1).optional() };

export const limit = (usual: number, most: number) =>
  whole(1, most)
    .optional()
    .transform((given) => given ?? usual);

/** The filters as a selection. @throws HF_CONSOLE_REQUEST the text is no pattern */
export function selectionOf(
  { actor, event, text, failed, outcome }: z.output<z.ZodObject<typeof filters>>,
  question: LogQuestion,
): Selection {
  const { grep, unwanted } =
    text === undefined ? {} : textSearch(text, question, (reason) => requestRefused(`text: ${reason}`));
  const [actors, events] = [signed(actor), signed(event)];
  const isExcluding = (actors.unwanted ?? events.unwanted ?? unwanted) !== undefined;
  return {
    actor: actors.wanted,
    type: partOf(events.wanted),
    outcome,
    ...(failed === true && question.words.problemsOnly),
    ...(grep && { grep }),
    ...(isExcluding && {
      without: { actor: actors.unwanted, type: partOf(events.unwanted), ...(unwanted && { grep: unwanted }) },
    }),
  };
}

/** What is wanted, or with `-` before it, what is not. */
function signed(text: string | undefined): { readonly wanted?: string; readonly unwanted?: string } {
  if (text === undefined) return {};
  return text.length > 1 && text.startsWith('-') ? { unwanted: text.slice(1) } : { wanted: text };
}

/** A type of event is found by a part of its name; `*` stands for anything in one that is given whole. */
function partOf(event: string | undefined): string | undefined {
  return event === undefined || event.includes('*') ? event : `*${event}*`;
}
