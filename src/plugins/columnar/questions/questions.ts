import { z } from 'zod';
import type { HttpSurface } from '../../../core/host/http/contract.ts';
import { type Asking, askInstance } from '../../../core/host/operations/ask.ts';
import { serveOperation } from '../../../core/host/operations/serve.ts';
import { systemClock } from '../../../core/kernel/clock.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { Database, MOST_SECONDS } from '../database.ts';
import { ColumnarError } from '../errors.ts';
import { openEngine, schemaOptions } from '../open.ts';
import type { ClickhouseOptions } from '../options.ts';
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
    tables: await database.tables({ signal, maxSeconds: seconds }),
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

const NONE_HERE = 'the instance that runs here has none; `holdfast status` says why';

/**
 * Puts a question to the instance that runs on the data folder; where none runs, to the server that the options name.
 * The embedded folder is never opened a second time.
 *
 * @throws HF_COLUMNAR_NOT_RUNNING neither is there; whatever the question throws
 */
export async function put<T extends object>(
  name: QuestionName,
  body: object,
  asking: Asking,
  options: ClickhouseOptions,
): Promise<T> {
  try {
    return await askInstance<T>(asking, pathOf(name), body, NONE_HERE);
  } catch (error) {
    if (!isCoded(error, 'HF_CONTROL_UNREACHABLE')) throw error;
    if (options.url !== undefined) return (await direct(name, body, asking, options)) as T;
    const said = String(error.details.reason);
    const reason = said === NONE_HERE ? said : `${said} (${asking.dataDir}), and it is the embedded one`;
    throw new ColumnarError('HF_COLUMNAR_NOT_RUNNING', { reason });
  }
}

async function direct(
  name: QuestionName,
  body: object,
  { dataDir, signal }: Asking,
  options: ClickhouseOptions,
): Promise<object> {
  const engine = await openEngine(options, dataDir, undefined);
  try {
    const database = new Database({ engine, clock: systemClock, schema: schemaOptions(options) });
    return await answerQuestion(name, database, body, signal);
  } finally {
    await engine.close();
  }
}
