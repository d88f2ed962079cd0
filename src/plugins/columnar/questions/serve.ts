import { z } from 'zod';
import type { HttpSurface } from '../../../core/host/http/contract.ts';
import { serveOperation } from '../../../core/host/operations/serve.ts';
import { type Database, MOST_SECONDS } from '../database.ts';
import { explainMistakes } from './mistakes.ts';
import { verifyNas } from './nas.ts';
import { verify } from './verify.ts';

export const MOST_LIMIT = 10_000;

const seconds = z.int().min(1).max(MOST_SECONDS);
const ask = z.strictObject({
  sql: z.string().min(1).max(20_000),
  limit: z.int().min(1).max(MOST_LIMIT),
  seconds,
});
const bounded = z.strictObject({ seconds });
const nas = z.strictObject({ host: z.string().min(1).max(253), seconds });

interface Question<B> {
  readonly schema: z.ZodType<B>;
  readonly answer: (database: Database, asked: B, signal: AbortSignal) => Promise<object>;
}

function question<B>(schema: z.ZodType<B>, answer: Question<B>['answer']): Question<B> {
  return { schema, answer };
}

/** What commands ask of the database: of the running instance as operations, or of a server directly. */
const QUESTIONS = {
  ask: question(ask, async (database, { sql, limit, seconds }, signal) => {
    await explainMistakes(sql, database, signal);
    // As text: the lines are parsed by who asked, not in the process that the gateway shares.
    return database.askText(sql, limit, { signal, maxSeconds: seconds });
  }),
  verify: question(bounded, (database, { seconds }, signal) =>
    verify(database, { signal, maxSeconds: seconds }),
  ),
  nas: question(nas, (database, { host, seconds }, signal) =>
    verifyNas(host, database, { signal, maxSeconds: seconds }),
  ),
  drift: question(bounded, async (database, { seconds }, signal) => ({
    drift: await database.drift({ signal, maxSeconds: seconds }),
    tables: await database.look({ signal, maxSeconds: seconds }),
  })),
} as const;

export type QuestionName = keyof typeof QUESTIONS;
export const pathOf = (name: QuestionName): string => `/columnar/${name}`;

/** Answers commands. @param database throws while there is none, with why */
export function serveQuestions(surface: HttpSurface, database: () => Database): void {
  for (const [name, question] of Object.entries(QUESTIONS)) {
    // Each answers what its own schema lets through.
    const { schema, answer } = question as Question<unknown>;
    serveOperation(surface, pathOf(name as QuestionName), schema, (asked, { signal }) =>
      answer(database(), asked, signal),
    );
  }
}

/** For a server that is asked without an instance. @throws whatever the question throws */
export function answerQuestion(
  name: QuestionName,
  database: Database,
  body: object,
  signal: AbortSignal,
): Promise<object> {
  const { schema, answer } = QUESTIONS[name] as Question<unknown>;
  return answer(database, schema.parse(body), signal);
}
