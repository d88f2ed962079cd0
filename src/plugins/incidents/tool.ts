import type { CallToolResult, ServerContext } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { textOf } from '../../core/host/history/answer-text.ts';
import { liveSource } from '../../core/host/history/live-source.ts';
import { type LogQuestion, LogQuestions } from '../../core/host/history/questions.ts';
import type { Services } from '../../core/host/plugin/definition.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { IncidentsError } from './errors.ts';

/** What an answer is made from. */
export interface Question extends LogQuestion {
  readonly services: Services;
  /** Epoch milliseconds. */
  readonly now: number;
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

/** Asked at once; more wait. */
const AT_ONCE = 2;
/** After this part of the deadline a search answers with what it has. */
const ENOUGH = 0.5;

/** Answers questions from the log of one data folder. */
export class Questions {
  readonly #services: Services;
  readonly #questions: LogQuestions;

  /** @param deadlineMs by which an answer must be there, milliseconds */
  constructor(services: Services, deadlineMs: number) {
    this.#services = services;
    const limits = {
      deadlineMs,
      enoughMs: deadlineMs * ENOUGH,
      atOnce: AT_ONCE,
      late: () => new IncidentsError('HF_INCIDENTS_DEADLINE', { seconds: deadlineMs / 1_000 }),
    };
    this.#questions = new LogQuestions(liveSource(services), limits, services.logger);
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
  ask<T>(work: (question: Question) => Promise<T>, { mcpReq }: ServerContext): Promise<T> {
    const services = this.#services;
    return this.#questions.ask(
      (question) => work({ ...question, services, now: services.clock.now() }),
      mcpReq.signal,
    );
  }
}
