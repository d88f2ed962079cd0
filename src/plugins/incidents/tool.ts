import type { CallToolResult, ServerContext } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { Semaphore } from '../../core/host/concurrency.ts';
import { PluginWords } from '../../core/host/history/words.ts';
import type { Services } from '../../core/host/plugin/definition.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { SqliteReader } from '../../core/kernel/log/sqlite-reader.ts';
import { IncidentsError } from './errors.ts';
import { textOf } from './output.ts';

/** What an answer is made from: the log as it is now, open for the time of one question. */
export interface Question {
  readonly log: SqliteReader;
  readonly words: PluginWords;
  readonly services: Services;
  /** Epoch milliseconds. */
  readonly now: number;
  /** Aborted when the client leaves, and at the deadline. */
  readonly signal: AbortSignal;
  /** When a search stops and answers with what it has; by `performance.now`. */
  readonly enoughAt: number;
}

/** An answer: the fields of the output schema, and the text of it where that is more than those fields as JSON. */
export interface Answer<T> {
  readonly fields: T;
  readonly text?: string;
}

export interface Tool<I extends z.ZodObject = z.ZodObject, O extends z.ZodObject = z.ZodObject> {
  readonly name: string;
  readonly title: string;
  /** From it an agent picks the tool: what it answers, when to use it, what to do next. */
  readonly description: string;
  readonly input: I;
  readonly output: O;
  readonly answer: (input: z.output<I>, question: Question) => Promise<Answer<z.output<O>>>;
}

/** Declares a tool; its answer is checked against the schemas. */
export function defineTool<I extends z.ZodObject, O extends z.ZodObject>(tool: Tool<I, O>): Tool<I, O> {
  return tool;
}

/** A place in the log, as a tool takes it. */
export const place = z
  .string()
  .min(1)
  .max(64)
  .describe(
    'ISO 8601 time (UTC unless it says otherwise), a relative one such as "2h ago", "now", or a record number',
  );

export const cursor = z
  .string()
  .max(200)
  .optional()
  .describe('nextCursor of the page before, with the same other arguments');

export const recordNumber = z.int().positive();

/** Asked at once; more wait, so that questions never take more than a part of the processor. */
const AT_ONCE = 2;
/** After this part of the deadline a search answers with what it has. */
const ENOUGH = 0.5;

/** Answers questions from the log of one data folder. */
export class Questions {
  readonly #services: Services;
  readonly #deadlineMs: number;
  readonly #permits = new Semaphore(AT_ONCE);

  /** @param deadlineMs by which an answer must be there, milliseconds */
  constructor(services: Services, deadlineMs: number) {
    this.#services = services;
    this.#deadlineMs = deadlineMs;
  }

  /** Runs a tool. A failure is an answer, too: it says what to do. */
  async call<I extends z.ZodObject, O extends z.ZodObject>(
    { answer }: Tool<I, O>,
    input: z.output<I>,
    context: ServerContext,
  ): Promise<CallToolResult> {
    try {
      const { fields, text } = await this.ask((question) => answer(input, question), context);
      return {
        content: [{ type: 'text', text: text ?? JSON.stringify(fields) }],
        structuredContent: { ...fields },
      };
    } catch (error) {
      if (!isCoded(error)) throw error;
      return {
        isError: true,
        content: [{ type: 'text', text: textOf(`${error.code}: ${error.what} ${error.remedy}`) }],
      };
    }
  }

  /** @throws HF_INCIDENTS_DEADLINE; what `work` throws */
  async ask<T>(work: (question: Question) => Promise<T>, { mcpReq }: ServerContext): Promise<T> {
    const late = AbortSignal.timeout(this.#deadlineMs);
    const signal = AbortSignal.any([mcpReq.signal, late]);
    const enoughAt = performance.now() + this.#deadlineMs * ENOUGH;
    const { dataDir, clock, declarations, logger } = this.#services;
    try {
      return await this.#permits.run(async () => {
        signal.throwIfAborted();
        const log = new SqliteReader(dataDir);
        const words = new PluginWords({
          wordsOf: async () =>
            Object.fromEntries(declarations().actors.map(({ type, describe }) => [type, describe])),
          note: (line) => logger.warn({ reason: line }, 'incidents.words_missing'),
        });
        try {
          return await work({ log, words, services: this.#services, now: clock.now(), signal, enoughAt });
        } finally {
          log.close();
        }
      });
    } catch (error) {
      if (error !== late.reason || !late.aborted) throw error;
      throw new IncidentsError('HF_INCIDENTS_DEADLINE', { seconds: this.#deadlineMs / 1_000 });
    }
  }
}
