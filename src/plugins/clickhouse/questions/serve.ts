import { z } from 'zod';
import type { ErrorDetails } from '../../../core/errors/holdfast-error.ts';
import { type ErrorCode, HoldfastError, isCoded } from '../../../core/errors/index.ts';
import type { HttpSurface } from '../../../core/http/index.ts';
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

type Question = (database: Database, body: unknown, signal: AbortSignal) => Promise<object>;

/** @returns the question, which throws HF_HTTP_REQUEST_INVALID when its body is not of the schema */
function question<B>(
  schema: z.ZodType<B>,
  answer: (database: Database, body: B, signal: AbortSignal) => Promise<object>,
): Question {
  return async (database, body, signal) => {
    const { data, error } = schema.safeParse(body);
    if (data !== undefined) return answer(database, data, signal);
    const { path = [], message = '' } = error?.issues[0] ?? {};
    throw new HoldfastError('HF_HTTP_REQUEST_INVALID', { reason: `${path.join('.')}: ${message}` });
  };
}

/**
 * What commands ask of the database: of the running instance by its control socket, at `/clickhouse/<name>`, or of a
 * server directly. An answer is `{answer}`, or `{fault}` with what a `HoldfastError` is made of.
 */
export const QUESTIONS = {
  ask: question(ask, async (database, { sql, limit, seconds }, signal) => {
    const options = { signal, maxSeconds: seconds };
    await explainMistakes(sql, database, signal);
    // As text: the lines are parsed by who asked, not in the process that the gateway shares.
    return database.askText(sql, limit, options);
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
} as const satisfies Record<string, Question>;

export type QuestionName = keyof typeof QUESTIONS;
export const pathOf = (name: QuestionName): string => `/clickhouse/${name}`;

export interface Told {
  readonly answer?: unknown;
  readonly fault?: { readonly code: ErrorCode; readonly details: ErrorDetails };
}

/** Answers commands. @param database throws while there is none, with why */
export function serveQuestions(surface: HttpSurface, database: () => Database): void {
  for (const [name, answer] of Object.entries(QUESTIONS)) {
    surface.post(pathOf(name as QuestionName), async ({ body }, reply): Promise<Told> => {
      // Whoever asked may have been interrupted: the engine is told to stop.
      const gone = new AbortController();
      reply.raw.once('close', () => gone.abort(new Error('nobody waits for it any more')));
      try {
        return { answer: await answer(database(), body, gone.signal) };
      } catch (error) {
        if (isCoded(error)) return { fault: { code: error.code, details: error.details } };
        if (gone.signal.aborted) return {};
        throw error;
      }
    });
  }
}
